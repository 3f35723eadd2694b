#include "webrtc_voice.h"

#ifdef WEBRTC_TRAIT

// The library's own flags, which SwiftPM does not take over from pkg-config.
#define WEBRTC_AUDIO_PROCESSING_ONLY_BUILD
#define WEBRTC_POSIX

#include <cmath>
#include <memory>
#include <vector>
#include <webrtc/modules/audio_processing/include/audio_processing.h>

struct webrtc_voice {
    std::unique_ptr<webrtc::AudioProcessing> processing;
    webrtc::StreamConfig format;
    std::vector<float> captured;
    std::vector<float> played;

    explicit webrtc_voice(int32_t sample_rate)
        : format(sample_rate, 1), captured(sample_rate / 100), played(sample_rate / 100) {}
};

namespace {

void widen(const int16_t *samples, std::vector<float> &target) {
    for (size_t index = 0; index < target.size(); ++index) target[index] = samples[index] / 32768.0f;
}

}  // namespace

extern "C" webrtc_voice *webrtc_voice_new(
    int32_t sample_rate, int32_t cancels_echo, int32_t suppresses_noise, int32_t controls_gain) {
    auto voice = std::make_unique<webrtc_voice>(sample_rate);
    webrtc::Config config;
    config.Set<webrtc::DelayAgnostic>(new webrtc::DelayAgnostic(true));
    config.Set<webrtc::ExtendedFilter>(new webrtc::ExtendedFilter(true));
    voice->processing.reset(webrtc::AudioProcessing::Create(config));
    if (!voice->processing) return nullptr;
    auto &processing = *voice->processing;
    const webrtc::ProcessingConfig formats = {{voice->format, voice->format, voice->format, voice->format}};
    int error = processing.Initialize(formats);
    if (cancels_echo) {
        error |= processing.high_pass_filter()->Enable(true);
        error |= processing.echo_cancellation()->set_suppression_level(
            webrtc::EchoCancellation::kModerateSuppression);
        error |= processing.echo_cancellation()->Enable(true);
    }
    if (suppresses_noise) {
        error |= processing.noise_suppression()->set_level(webrtc::NoiseSuppression::kHigh);
        error |= processing.noise_suppression()->Enable(true);
    }
    if (controls_gain) {
        error |= processing.gain_control()->set_mode(webrtc::GainControl::kAdaptiveDigital);
        error |= processing.gain_control()->Enable(true);
    }
    return error == webrtc::AudioProcessing::kNoError ? voice.release() : nullptr;
}

extern "C" void webrtc_voice_free(webrtc_voice *voice) { delete voice; }

extern "C" int32_t webrtc_voice_process(
    webrtc_voice *voice, const int16_t *captured, const int16_t *played, int16_t *output) {
    auto &processing = *voice->processing;
    widen(played, voice->played);
    float *reference = voice->played.data();
    int error = processing.ProcessReverseStream(&reference, voice->format, voice->format, &reference);
    if (error != webrtc::AudioProcessing::kNoError) return error;
    widen(captured, voice->captured);
    processing.set_stream_delay_ms(0);
    float *samples = voice->captured.data();
    error = processing.ProcessStream(&samples, voice->format, voice->format, &samples);
    if (error != webrtc::AudioProcessing::kNoError) return error;
    for (size_t index = 0; index < voice->captured.size(); ++index) {
        const float sample = voice->captured[index] * 32768.0f;
        output[index] = static_cast<int16_t>(std::lrint(sample < -32768 ? -32768 : sample > 32767 ? 32767 : sample));
    }
    return 0;
}

extern "C" void webrtc_voice_reset(webrtc_voice *voice) { voice->processing->Initialize(); }

#else

extern "C" webrtc_voice *webrtc_voice_new(int32_t, int32_t, int32_t, int32_t) { return nullptr; }
extern "C" void webrtc_voice_free(webrtc_voice *) {}
extern "C" int32_t webrtc_voice_process(webrtc_voice *, const int16_t *, const int16_t *, int16_t *) { return -1; }
extern "C" void webrtc_voice_reset(webrtc_voice *) {}

#endif
