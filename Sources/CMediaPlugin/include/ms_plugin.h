/*
 * Codec plugins in C.
 *
 * A plugin has one entry, `void libmsNAME_init(ms_registry *registry)`. It describes each codec in a `struct ms_codec` and
 * hands it to `ms_registry_add_codec`. The registry copies what it is given; only callbacks and `user` must stay valid.
 * The registry pointer is good for the duration of the call.
 *
 * Threads: new_ and free_ callbacks run on control threads. `encode`, `frame_count`, `decode`, `conceal` and `reset` run
 * on the media thread and must not allocate, lock, wait or print; calls for one encoder or decoder never overlap.
 */
#ifndef MS_PLUGIN_H
#define MS_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when the meaning of a field changes. Fields that are added grow `size` instead. */
#define MS_PLUGIN_ABI_VERSION 1

/* Answers of ms_registry_add_codec and ms_registry_note_missing. */
#define MS_PLUGIN_OK 0
#define MS_PLUGIN_REFUSED (-1)

typedef struct ms_registry ms_registry;

/* What an encoder is made for. */
struct ms_encoder_options {
    uint32_t size;                  /* of this structure, in bytes */
    uint32_t frame_count;           /* frames in every packet */
    uint32_t channels;
    uint32_t bitrate;               /* bit/s; 0: the codec's default */
    uint32_t complexity;            /* 0 to 10 */
    uint32_t uses_fec;              /* 0 or 1 */
    uint32_t expected_loss_percent; /* 0 to 100 */
    uint32_t uses_dtx;              /* 0 or 1 */
    const char *remote_fmtp;        /* the receiver's format parameters, maybe empty; valid during the call */
};

struct ms_codec {
    uint32_t abi_version;         /* MS_PLUGIN_ABI_VERSION */
    uint32_t size;                /* sizeof(struct ms_codec) */
    const char *name;             /* encoding name as in a=rtpmap */
    uint32_t clock_rate;          /* RTP timestamp units per second */
    uint32_t sample_rate;         /* Hz: 8000 to 192000 in whole hundreds */
    uint32_t channels;            /* 1 or 2 */
    uint32_t ptime_ms;            /* default audio per packet: 10 to 120, a multiple of 10 */
    int32_t static_payload_type;  /* 0 to 127, or -1 when negotiated */
    const char *fmtp;             /* format parameters of this receiver, or NULL for none */
    void *user;                   /* handed to new_encoder and new_decoder */

    /* An encoder, or NULL on failure. */
    void *(*new_encoder)(void *user, const struct ms_encoder_options *options);
    /* Encodes frame_count interleaved frames. Answers payload bytes, at most capacity; 0 when nothing need be sent. */
    int32_t (*encode)(void *encoder, const int16_t *samples, uint32_t frame_count, uint8_t *payload, uint32_t capacity);
    void (*free_encoder)(void *encoder);

    /* A decoder, or NULL on failure. */
    void *(*new_decoder)(void *user, uint32_t channels);
    /* Frames that a payload of any bytes holds, without decoding it; 0 or less when it is not of this codec. */
    int32_t (*frame_count)(void *decoder, const uint8_t *payload, uint32_t byte_count);
    /* Decodes a payload. Answers frames written, at most capacity; 0 or less when it cannot. */
    int32_t (*decode)(void *decoder, const uint8_t *payload, uint32_t byte_count, int16_t *samples, uint32_t capacity);
    /* Writes frame_count frames in place of a loss and answers how many; NULL: the engine substitutes waveforms. */
    int32_t (*conceal)(void *decoder, int16_t *samples, uint32_t frame_count);
    /* Forgets the past: the next payload belongs to another source. NULL: there is nothing to forget. */
    void (*reset)(void *decoder);
    void (*free_decoder)(void *decoder);
};

/* Registers a codec. Answers MS_PLUGIN_OK, or MS_PLUGIN_REFUSED when the description is not sound: the reason is then
 * kept with the plugin's state. A codec of the same name and rates that is there already is overridden. */
int ms_registry_add_codec(ms_registry *registry, const struct ms_codec *codec);

/* Says that this plugin cannot offer `codec` in this build, why, and what to do about it. */
int ms_registry_note_missing(ms_registry *registry, const char *codec, const char *reason, const char *remedy);

/* The engine's own entries. One that was not compiled in is a stub: it registers nothing and notes why. */
void libmssilk_init(ms_registry *registry);
void libmsamr_init(ms_registry *registry);
void libmsx264_init(ms_registry *registry);
void libmsopenh264_init(ms_registry *registry);
void libmsbcg729_init(ms_registry *registry);
void libmswebrtc_init(ms_registry *registry);

#ifdef __cplusplus
}
#endif

#endif
