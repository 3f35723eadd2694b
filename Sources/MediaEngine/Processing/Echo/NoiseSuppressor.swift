internal import CSpeexDSP

/// Makes steady noise softer, and what an echo canceller leaves, by SpeexDSP's spectral gains.
///
/// Pure. Shape: mono `Int16`, 10 ms at a time. `process` allocates nothing. Thread: one at a time, any.
final class NoiseSuppressor {
    /// The time by which sound comes out later: the windows overlap by half.
    var latency: Duration { .milliseconds(10) }

    private let state: OpaquePointer

    /// A suppressor.
    ///
    /// - Parameters:
    ///   - sampleRate: Frames per second.
    ///   - suppressesNoise: Whether noise is made softer, by 18 dB at most.
    ///   - adaptive: The echo canceller whose residual echo is made softer, which must live as long; nil for none.
    init(sampleRate: Int, suppressesNoise: Bool, residualEchoOf adaptive: OpaquePointer?) {
        // Only exhausted memory is left as a reason for it to fail.
        guard let state = speex_preprocess_state_init(Int32(sampleRate / 100), Int32(sampleRate)) else {
            fatalError("speex_preprocess_state_init failed")
        }
        self.state = state
        // Without "denoise" no gain at all is applied, not even to residual echo.
        set(SPEEX_PREPROCESS_SET_DENOISE, 1)
        set(SPEEX_PREPROCESS_SET_NOISE_SUPPRESS, suppressesNoise ? -18 : 0)
        guard let adaptive else { return }
        set(SPEEX_PREPROCESS_SET_ECHO_SUPPRESS, -45)
        set(SPEEX_PREPROCESS_SET_ECHO_SUPPRESS_ACTIVE, -15)
        speex_preprocess_ctl(state, SPEEX_PREPROCESS_SET_ECHO_STATE, UnsafeMutableRawPointer(adaptive))
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
