/* A codec plugin in C: DVI4 (RFC 3551, section 4.5.1).
 *
 *     0                   1                   2                   3
 *     |       first predicted value   |  step index   |       0       |  then 4 bits for each sample,
 *                                                                        the earlier one in the high half */
#include "example_plugin.h"

#include <stdlib.h>

struct adpcm { /* one direction of one call */
    int32_t value;
    int32_t index;
};

static const int16_t steps[89] = {
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118,
    130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060,
    1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132,
    7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};
static const int8_t index_changes[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

static int32_t clamp(int32_t value, int32_t low, int32_t high) { return value < low ? low : value > high ? high : value; }

/* Follows one code, as encoder and decoder both do. */
static void follow(struct adpcm *state, uint8_t code) {
    int32_t step = steps[state->index], difference = step >> 3;
    if (code & 4) difference += step;
    if (code & 2) difference += step >> 1;
    if (code & 1) difference += step >> 2;
    state->value = clamp(state->value + (code & 8 ? -difference : difference), -32768, 32767);
    state->index = clamp(state->index + index_changes[code & 7], 0, 88);
}

static uint8_t nearest(const struct adpcm *state, int16_t sample) {
    int32_t step = steps[state->index], difference = sample - state->value;
    uint8_t code = difference < 0 ? 8 : 0;
    if (difference < 0) difference = -difference;
    for (uint8_t bit = 4; bit != 0; bit >>= 1, step >>= 1) {
        if (difference < step) continue;
        code |= bit;
        difference -= step;
    }
    return code;
}

/* Control threads: the only place to allocate. */
static void *new_encoder(void *user, const struct ms_encoder_options *options) {
    (void)user;
    return options->channels == 1 ? calloc(1, sizeof(struct adpcm)) : NULL;
}
static void *new_decoder(void *user, uint32_t channels) {
    (void)user;
    return channels == 1 ? calloc(1, sizeof(struct adpcm)) : NULL;
}

/* The media thread: no allocation, no lock, no waiting; and payloads of any bytes at all. */
static int32_t encode(void *encoder, const int16_t *samples, uint32_t count, uint8_t *payload, uint32_t capacity) {
    struct adpcm *state = encoder;
    if (count % 2 != 0 || capacity < 4 + count / 2) return 0;
    payload[0] = (uint8_t)((uint32_t)state->value >> 8);
    payload[1] = (uint8_t)state->value;
    payload[2] = (uint8_t)state->index;
    payload[3] = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t code = nearest(state, samples[i]);
        follow(state, code);
        payload[4 + i / 2] = i % 2 == 0 ? (uint8_t)(code << 4) : (uint8_t)(payload[4 + i / 2] | code);
    }
    return (int32_t)(4 + count / 2);
}
static int32_t frame_count(void *decoder, const uint8_t *payload, uint32_t byte_count) {
    (void)decoder;
    return byte_count > 4 && payload[2] <= 88 ? (int32_t)(byte_count - 4) * 2 : 0;
}
static int32_t decode(void *decoder, const uint8_t *payload, uint32_t byte_count, int16_t *samples, uint32_t capacity) {
    struct adpcm *state = decoder;
    uint32_t count = (uint32_t)frame_count(decoder, payload, byte_count);
    if (count == 0 || count > capacity) return 0;
    *state = (struct adpcm){(int16_t)(payload[0] << 8 | payload[1]), payload[2]};
    for (uint32_t i = 0; i < count; i++) {
        follow(state, i % 2 == 0 ? payload[4 + i / 2] >> 4 : payload[4 + i / 2] & 15);
        samples[i] = (int16_t)state->value;
    }
    return (int32_t)count;
}

void libmsexample_init(ms_registry *registry) {
    struct ms_codec dvi4 = {
        .abi_version = MS_PLUGIN_ABI_VERSION, .size = sizeof dvi4, .name = "DVI4", .clock_rate = 16000,
        .sample_rate = 16000, .channels = 1, .ptime_ms = 20, .static_payload_type = 6,
        .new_encoder = new_encoder, .encode = encode, .free_encoder = free,
        .new_decoder = new_decoder, .frame_count = frame_count, .decode = decode, .free_decoder = free,
    };
    ms_registry_add_codec(registry, &dvi4);
}
