internal import CSpeexDSP

/// Makes steady noise softer, by SpeexDSP's spectral gains.
///
/// Pure. Shape: mono `Int16`, 10 ms at a time. `process` allocates nothing. Thread: one at a time, any.
final class NoiseSuppressor {
    /// The time by which sound comes out later: the windows overlap by half.
    var latency: Duration { .milliseconds(10) }

    private let state: OpaquePointer

    /// A suppressor of noise by 18 dB at most, for sound at `sampleRate` frames per second.
    init(sampleRate: Int) {
        // Only exhausted memory is left as a reason for it to fail.
        guard let state = speex_preprocess_state_init(Int32(sampleRate / 100), Int32(sampleRate)) else {
            fatalError("speex_preprocess_state_init failed")
        }
        self.state = state
        set(SPEEX_PREPROCESS_SET_DENOISE, 1)
        set(SPEEX_PREPROCESS_SET_NOISE_SUPPRESS, -18)
    }

    deinit {
        speex_preprocess_state_destroy(state)
    }

    /// Works on 10 ms where they lie.
    func process(_ samples: inout MutableSpan<Int16>) {
        samples.withUnsafeMutableBufferPointer { samples in
            _ = speex_preprocess_run(state, samples.baseAddress)
        }
    }

    private func set(_ request: Int32, _ value: Int32) {
        var value = value
        speex_preprocess_ctl(state, request, &value)
    }
}
