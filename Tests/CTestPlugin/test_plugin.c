#include "test_plugin.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int alive;

struct coder {
    uint32_t frame_count;
};

static void *new_encoder(void *user, const struct ms_encoder_options *options) {
    (void)user;
    struct coder *coder = calloc(1, sizeof *coder);
    if (coder == NULL) return NULL;
    coder->frame_count = options->frame_count;
    alive += 1;
    return coder;
}

static void *new_decoder(void *user, uint32_t channels) {
    (void)user;
    if (channels != 1) return NULL;
    alive += 1;
    return calloc(1, sizeof(struct coder));
}

static void free_coder(void *coder) {
    alive -= 1;
    free(coder);
}

static int32_t invert(void *encoder, const int16_t *samples, uint32_t frame_count, uint8_t *payload, uint32_t capacity) {
    (void)encoder;
    if (frame_count * 2 > capacity) return -1;
    for (uint32_t i = 0; i < frame_count; i++) {
        uint16_t sample = (uint16_t)~samples[i];
        payload[2 * i] = (uint8_t)(sample >> 8);
        payload[2 * i + 1] = (uint8_t)sample;
    }
    return (int32_t)(frame_count * 2);
}

static int32_t half(void *decoder, const uint8_t *payload, uint32_t byte_count) {
    (void)decoder;
    (void)payload;
    return byte_count % 2 == 0 ? (int32_t)(byte_count / 2) : 0;
}

static int32_t revert(void *decoder, const uint8_t *payload, uint32_t byte_count, int16_t *samples, uint32_t capacity) {
    (void)decoder;
    if (byte_count / 2 > capacity) return -1;
    for (uint32_t i = 0; i < byte_count / 2; i++) {
        samples[i] = (int16_t)~(uint16_t)(payload[2 * i] << 8 | payload[2 * i + 1]);
    }
    return (int32_t)(byte_count / 2);
}

static struct ms_codec inverting(const char *name) {
    struct ms_codec codec = {
        .abi_version = MS_PLUGIN_ABI_VERSION,
        .size = sizeof codec,
        .name = name,
        .clock_rate = 16000,
        .sample_rate = 16000,
        .channels = 1,
        .ptime_ms = 20,
        .static_payload_type = -1,
        .fmtp = "mode=inverted",
        .new_encoder = new_encoder,
        .encode = invert,
        .free_encoder = free_coder,
        .new_decoder = new_decoder,
        .frame_count = half,
        .decode = revert,
        .free_decoder = free_coder,
    };
    return codec;
}

void libmstest_init(ms_registry *registry) {
    char name[16] = "X-INVERT";
    struct ms_codec codec = inverting(name);
    ms_registry_add_codec(registry, &codec);
    memset(name, 'z', sizeof name);
    memset(&codec, 0xFF, sizeof codec);
}

int libmstest_alive_count(void) { return alive; }

static int32_t constant(void *encoder, const int16_t *samples, uint32_t frame_count, uint8_t *payload, uint32_t capacity) {
    (void)encoder;
    (void)samples;
    (void)capacity;
    memset(payload, 0x55, frame_count);
    return (int32_t)frame_count;
}

static int32_t whole(void *decoder, const uint8_t *payload, uint32_t byte_count) {
    (void)decoder;
    (void)payload;
    return (int32_t)byte_count;
}

static int32_t silence(void *decoder, const uint8_t *payload, uint32_t byte_count, int16_t *samples, uint32_t capacity) {
    (void)decoder;
    (void)payload;
    (void)capacity;
    memset(samples, 0, byte_count * 2);
    return (int32_t)byte_count;
}

static int32_t seventy_seven(void *decoder, int16_t *samples, uint32_t frame_count) {
    (void)decoder;
    uint32_t written = frame_count / 2;
    for (uint32_t i = 0; i < written; i++) samples[i] = 77;
    return (int32_t)written;
}

void libmspcmu_init(ms_registry *registry) {
    struct ms_codec codec = inverting("pcmu");
    codec.clock_rate = codec.sample_rate = 8000;
    codec.static_payload_type = 0;
    codec.fmtp = NULL;
    codec.encode = constant;
    codec.frame_count = whole;
    codec.decode = silence;
    codec.conceal = seventy_seven;
    ms_registry_add_codec(registry, &codec);
}

static int bad_count, accepted_count;

static void offer(ms_registry *registry, struct ms_codec codec) {
    bad_count += 1;
    if (ms_registry_add_codec(registry, &codec) == MS_PLUGIN_OK) accepted_count += 1;
}

#define OFFER(change)                              \
    do {                                           \
        struct ms_codec codec = inverting("X-BAD"); \
        change;                                    \
        offer(registry, codec);                    \
    } while (0)

void libmsbad_init(ms_registry *registry) {
    static char endless[4096];
    memset(endless, 'a', sizeof endless - 1);
    bad_count = accepted_count = 0;
    OFFER(codec.abi_version = 0);
    OFFER(codec.abi_version = MS_PLUGIN_ABI_VERSION + 1);
    OFFER(codec.size = 8);
    OFFER(codec.size = 0);
    OFFER(codec.name = NULL);
    OFFER(codec.name = "");
    OFFER(codec.name = "two words");
    OFFER(codec.name = "sla/sh");
    OFFER(codec.name = "\xff\xfe");
    OFFER(codec.name = endless);
    OFFER(codec.fmtp = endless);
    OFFER(codec.fmtp = "a=1\r\nb=2");
    OFFER(codec.clock_rate = 0);
    OFFER(codec.clock_rate = UINT32_MAX);
    OFFER(codec.clock_rate = 16001);
    OFFER(codec.sample_rate = 0);
    OFFER(codec.sample_rate = 7999);
    OFFER(codec.sample_rate = 11025);
    OFFER(codec.sample_rate = UINT32_MAX);
    OFFER(codec.channels = 0);
    OFFER(codec.channels = 3);
    OFFER(codec.ptime_ms = 0);
    OFFER(codec.ptime_ms = 15);
    OFFER(codec.ptime_ms = 130);
    OFFER(codec.static_payload_type = -2);
    OFFER(codec.static_payload_type = 128);
    OFFER(codec.new_encoder = NULL);
    OFFER(codec.encode = NULL);
    OFFER(codec.free_encoder = NULL);
    OFFER(codec.new_decoder = NULL);
    OFFER(codec.frame_count = NULL);
    OFFER(codec.decode = NULL);
    OFFER(codec.free_decoder = NULL);
    bad_count += 2;
    if (ms_registry_add_codec(registry, NULL) == MS_PLUGIN_OK) accepted_count += 1;
    struct ms_codec sound = inverting("X-BAD");
    if (ms_registry_add_codec(NULL, &sound) == MS_PLUGIN_OK) accepted_count += 1;
}

int libmsbad_accepted_count(void) { return accepted_count; }

int libmsbad_count(void) { return bad_count; }

static int32_t too_many_bytes(void *encoder, const int16_t *samples, uint32_t frame_count, uint8_t *payload,
                              uint32_t capacity) {
    (void)encoder;
    (void)frame_count;
    (void)payload;
    return samples[0] < 0 ? INT32_MIN : samples[0] == 0 ? INT32_MAX : (int32_t)capacity + 1;
}

static int32_t first_byte(void *decoder, const uint8_t *payload, uint32_t byte_count) {
    (void)decoder;
    return byte_count == 0 ? 1 : payload[0] == 0xFF ? INT32_MIN : payload[0] == 0xFE ? INT32_MAX : payload[0];
}

static int32_t too_many_frames(void *decoder, const uint8_t *payload, uint32_t byte_count, int16_t *samples,
                               uint32_t capacity) {
    (void)decoder;
    (void)byte_count;
    (void)samples;
    return payload[1] == 0 ? INT32_MAX : payload[1] == 1 ? INT32_MIN : (int32_t)capacity + 1;
}

static int32_t far_too_much(void *decoder, int16_t *samples, uint32_t frame_count) {
    (void)decoder;
    (void)samples;
    (void)frame_count;
    return INT32_MAX;
}

static void *no_encoder(void *user, const struct ms_encoder_options *options) {
    (void)user;
    (void)options;
    return NULL;
}

static void *no_decoder(void *user, uint32_t channels) {
    (void)user;
    (void)channels;
    return NULL;
}

void libmsliar_init(ms_registry *registry) {
    struct ms_codec codec = inverting("X-LIAR");
    codec.encode = too_many_bytes;
    codec.frame_count = first_byte;
    codec.decode = too_many_frames;
    codec.conceal = far_too_much;
    ms_registry_add_codec(registry, &codec);
    struct ms_codec nothing = inverting("X-NULL");
    nothing.new_encoder = no_encoder;
    nothing.new_decoder = no_decoder;
    ms_registry_add_codec(registry, &nothing);
}

static ms_registry *kept;

void libmslate_init(ms_registry *registry) { kept = registry; }

int libmslate_use_now(void) {
    struct ms_codec codec = inverting("X-LATE");
    return ms_registry_add_codec(kept, &codec);
}
