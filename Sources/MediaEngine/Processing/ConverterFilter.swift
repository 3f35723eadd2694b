/// Turns one audio format into another: sample rate by a `Resampler`, channels by copying or averaging.
///
///     audio (one format) ─► converter ─► audio (another)
///
/// `Graph.connect` with `converting: true` puts one between ports that differ.
package final class ConverterFilter: Filter, @unchecked Sendable {
    private let inputChannelCount: Int
    private let outputChannelCount: Int
    private let resampler: Resampler?
    /// One tick of input in the output's channels.
    private let mapped: UnsafeMutableBufferPointer<Int16>

    /// A converter for ticks of `tickDuration`.
    package init(from input: AudioFormat, to output: AudioFormat, tickDuration: Duration) {
        inputChannelCount = input.channelCount
        outputChannelCount = output.channelCount
        mapped = .allocate(capacity: max(input.frameCount(in: tickDuration) * output.channelCount, 1))
        mapped.initialize(repeating: 0)
        var latency = Duration.zero
        if input.sampleRate == output.sampleRate {
            resampler = nil
        } else {
            let resampler = Resampler(
                from: input.sampleRate,
                to: output.sampleRate,
                channelCount: output.channelCount,
                maximumFrameCount: max(input.frameCount(in: tickDuration), 1)
            )
            latency = input.duration(ofFrames: resampler.delayFrameCount)
            self.resampler = resampler
        }
        super.init(
            FilterDescription(
                name: "converter",
                purpose: "turns \(input) into \(output)",
                inputs: [.audio(input)],
                outputs: [.audio(output)],
                latency: latency
            )
        )
    }

    deinit {
        mapped.deallocate()
    }

    /// Makes converters for `Graph.converterFactory`.
    package static let factory: Graph.ConverterFactory = { input, output, tickDuration in
        ConverterFilter(from: input, to: output, tickDuration: tickDuration)
    }

    package override func process(_ io: borrowing FilterIO) {
        let (source, target) = (io.input(), io.output())
        var samples = target.mutableSamples
        guard let resampler else {
            map(source.samples, into: &samples)
            return
        }
        let produced: Int
        if inputChannelCount == outputChannelCount {
            produced = resampler.process(source.samples, into: &samples).produced
        } else {
            var between = mapped.mutableSpan
            map(source.samples, into: &between)
            produced = resampler.process(between.span, into: &samples).produced
        }
        for index in (produced * outputChannelCount)..<max(samples.count, produced * outputChannelCount) {
            samples[index] = 0
        }
    }

    /// One channel goes to all; several are averaged into one; otherwise each goes to its own.
    private func map(_ source: Span<Int16>, into target: inout MutableSpan<Int16>) {
        let (from, to) = (inputChannelCount, outputChannelCount)
        let frameCount = min(source.count / from, target.count / to)
        for frame in 0..<frameCount {
            if to == 1 {
                var sum: Int32 = 0
                for channel in 0..<from { sum &+= Int32(source[frame &* from &+ channel]) }
                target[frame] = Int16(clamping: sum / Int32(from))
            } else {
                for channel in 0..<to {
                    target[frame &* to &+ channel] =
                        channel < from || from == 1
                        ? source[frame &* from &+ min(channel, from &- 1)] : 0
                }
            }
        }
    }
}
