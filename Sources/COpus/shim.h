// Inline wrappers: Swift cannot call the variadic opus_encoder_ctl and opus_decoder_ctl.
#pragma once
#include <opus.h>

static inline int copus_encoder_set(OpusEncoder *encoder, int request, opus_int32 value) {
    return opus_encoder_ctl(encoder, request, value);
}

static inline int copus_encoder_get(OpusEncoder *encoder, int request, opus_int32 *value) {
    return opus_encoder_ctl(encoder, request, value);
}

static inline int copus_encoder_reset(OpusEncoder *encoder) { return opus_encoder_ctl(encoder, OPUS_RESET_STATE); }

static inline int copus_decoder_get(OpusDecoder *decoder, int request, opus_int32 *value) {
    return opus_decoder_ctl(decoder, request, value);
}

static inline int copus_decoder_get_final_range(OpusDecoder *decoder, opus_uint32 *value) {
    return opus_decoder_ctl(decoder, OPUS_GET_FINAL_RANGE(value));
}

static inline int copus_decoder_reset(OpusDecoder *decoder) { return opus_decoder_ctl(decoder, OPUS_RESET_STATE); }
