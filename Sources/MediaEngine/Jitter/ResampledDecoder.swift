/// A decoder whose sound is brought to another rate.
///
/// Thread: media; nothing allocates after `init`.
final class ResampledDecoder: AudioDecoder {
    /// The samples that come out.
    let format: AudioFormat
    private let decoder: any AudioDecoder
    private let resampler: Resampler
    private let decoded: UnsafeMutableBufferPointer<Int16>

    /// A decoder that gives what `decoder` gives, at `sampleRate`, at most `longest` at once.
    init(_ decoder: any AudioDecoder, to sampleRate: Int, longest: Duration) {
        let own = decoder.format
        self.decoder = decoder
        format = AudioFormat(sampleRate: sampleRate, channelCount: own.channelCount)
        // With its delay, the resampler gives as many frames as it is due for each stretch.
        resampler = Resampler(from: own.sampleRate, to: sampleRate, channelCount: own.channelCount)
        decoded = .allocate(capacity: own.frameCount(in: longest) * own.channelCount)
        decoded.initialize(repeating: 0)
    }

    deinit {
        decoded.deallocate()
    }

    func frameCount(of payload: Span<UInt8>) -> Int {
        decoder.frameCount(of: payload) &* format.sampleRate / decoder.format.sampleRate
    }

    func carriesFEC(_ payload: Span<UInt8>) -> Bool { decoder.carriesFEC(payload) }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        var target = decoded.mutableSpan
        return resample(decoder.decode(payload, into: &target), into: &samples)
    }

    func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int {
        var target = decoded.mutableSpan
        return resample(decoder.decodeFEC(in: next, frameCount: own(frameCount), into: &target), into: &samples)
    }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        let count = min(max(own(frameCount), 1), decoded.count / format.channelCount)
        var target = decoded.mutableSpan
        decoder.conceal(frameCount: count, into: &target)
        let produced = resample(count, into: &samples)
        for index in min(produced, frameCount) &* format.channelCount..<frameCount &* format.channelCount {
            samples[index] = 0
        }
    }

    func reset() {
        decoder.reset()
        resampler.reset()
    }

    private func resample(_ frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int {
        guard frameCount > 0 else { return 0 }
        let input = UnsafeBufferPointer(rebasing: decoded[..<(frameCount &* format.channelCount)])
        return resampler.process(input.span, into: &samples).produced
    }

    private func own(_ frameCount: Int) -> Int { frameCount &* decoder.format.sampleRate / format.sampleRate }
}
