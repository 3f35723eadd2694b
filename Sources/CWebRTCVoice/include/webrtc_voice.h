/*
 * WebRTC's audio processing behind a C interface: echo cancelling, noise suppression, gain control of one voice.
 *
 * Without the package trait WebRTC, webrtc_voice_new answers NULL.
 */
#ifndef WEBRTC_VOICE_H
#define WEBRTC_VOICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct webrtc_voice webrtc_voice;

/* A processor of mono audio of sample_rate Hz, or NULL when the library refuses. The others are 0 or 1. */
webrtc_voice *webrtc_voice_new(int32_t sample_rate, int32_t cancels_echo, int32_t suppresses_noise, int32_t controls_gain);
void webrtc_voice_free(webrtc_voice *voice);

/* Works on 10 ms; answers 0, or the library's error code. */
int32_t webrtc_voice_process(webrtc_voice *voice, const int16_t *captured, const int16_t *played, int16_t *output);

/* Forgets the room. */
void webrtc_voice_reset(webrtc_voice *voice);

#ifdef __cplusplus
}
#endif

#endif
