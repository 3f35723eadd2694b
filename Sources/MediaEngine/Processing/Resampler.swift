internal import CSpeexDSP

/// Converts samples from one rate to another, stretch by stretch.
///
/// The filter of SpeexDSP looks ahead: its output comes out later than its input by `delayFrameCount`. A resampler that
/// skips its delay leaves that silence out, so that frame n of the output stands for the same instant as frame
/// n × input rate / output rate of the input; `drain` then gives what the filter still holds at the end.
/// Pure: it owns nothing but its filter's memory. Shape: interleaved `Int16`. `process` allocates nothing.
/// Thread: one at a time, any.
package final class Resampler {
    /// Frames per second that go in.
    package let inputRate: Int
    /// Frames per second that come out.
    package let outputRate: Int
    /// Samples per frame.
    package let channelCount: Int

    private let state: OpaquePointer
    private let isAligned: Bool
    private var consumedFrameCount = 0
    private var producedFrameCount = 0
    private let silence: UnsafeMutableBufferPointer<Int16>

    /// A resampler that has heard nothing yet.
    ///
    /// - Parameters:
    ///   - inputRate: Frames per second that go in.
    ///   - outputRate: Frames per second that come out.
    ///   - channelCount: Samples per frame.
    ///   - quality: 0 (fast) to 10 (best); 5 is transparent for speech.
    ///   - skipsDelay: Whether the silence that the filter's look-ahead puts in front is left out.
    package init(from inputRate: Int, to outputRate: Int, channelCount: Int = 1, quality: Int = 5, skipsDelay: Bool) {
        precondition(inputRate > 0 && outputRate > 0 && channelCount > 0 && (0...10).contains(quality))
        self.inputRate = inputRate
        self.outputRate = outputRate
        self.channelCount = channelCount
        isAligned = skipsDelay
        var error: Int32 = 0
        let state = speex_resampler_init(
            UInt32(channelCount),
            UInt32(inputRate),
            UInt32(outputRate),
            Int32(quality),
            &error
        )
        // The arguments were checked above, so that only exhausted memory is left as a reason.
        guard let state else { fatalError("speex_resampler_init failed with code \(error)") }
        self.state = state
        if skipsDelay { speex_resampler_skip_zeros(state) }
        silence = .allocate(capacity: 256 * channelCount)
        silence.initialize(repeating: 0)
    }

    deinit {
        speex_resampler_destroy(state)
        silence.deallocate()
    }

    /// Frames of output by which sound comes out late; 0 when the delay is skipped.
    package var delayFrameCount: Int { isAligned ? 0 : Int(speex_resampler_get_output_latency(state)) }

    /// Frames that the filter looks ahead, at the input's rate.
    package var lookaheadFrameCount: Int { Int(speex_resampler_get_input_latency(state)) }

    /// Converts frames of `input` until it is used up or `output` is full.
    ///
    /// - Returns: The frames taken from the start of `input`, and those written to the start of `output`.
    package func process(_ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> (consumed: Int, produced: Int)
    {
        let counts = convert(input, into: &output)
        consumedFrameCount &+= counts.consumed
        producedFrameCount &+= counts.produced
        return counts
    }

    /// Writes frames that the filter still holds after the last input, and answers how many; 0 when all are out.
    ///
    /// With the delay skipped, the output is in all as long as the input, rounded up to a frame.
    package func drain(into output: inout MutableSpan<Int16>) -> Int {
        let exact = Int128(consumedFrameCount) * Int128(outputRate)
        let total = Int((exact + Int128(inputRate) - 1) / Int128(inputRate)) + delayFrameCount
        var produced = 0
        let wanted = min(total - producedFrameCount, output.count / channelCount)
        guard wanted > 0 else { return 0 }
        while produced < wanted {
            let range = produced * channelCount..<wanted * channelCount
            let count = output.withUnsafeMutableBufferPointer { output in
                var part = UnsafeMutableBufferPointer(rebasing: output[range]).mutableSpan
                return convert(UnsafeBufferPointer(silence).span, into: &part).produced
            }
            produced += count
        }
        producedFrameCount += produced
        return produced
    }

    /// Forgets the past: the next input begins another stretch.
    package func reset() {
        speex_resampler_reset_mem(state)
        if isAligned { speex_resampler_skip_zeros(state) }
        consumedFrameCount = 0
        producedFrameCount = 0
    }

    private func convert(_ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> (consumed: Int, produced: Int)
    {
        var consumed = UInt32(input.count / channelCount)
        var produced = UInt32(output.count / channelCount)
        guard consumed > 0, produced > 0 else { return (0, 0) }
        input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                _ = speex_resampler_process_interleaved_int(
                    state,
                    input.baseAddress,
                    &consumed,
                    output.baseAddress,
                    &produced
                )
            }
        }
        return (Int(consumed), Int(produced))
    }
}
