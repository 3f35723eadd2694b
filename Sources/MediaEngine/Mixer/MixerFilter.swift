/// Adds several sources into one.
///
///     audio 0 ─┐
///     audio 1 ─┼─► mixer ─► audio
///     …        ┘
///
/// The sum is formed in 32 bits and clipped once. An input without a link is silent.
public final class MixerFilter: Filter, @unchecked Sendable {
    private let inputCount: Int
    private let sums: UnsafeMutableBufferPointer<Int32>

    /// A mixer of `inputCount` sources of `format`, for ticks of `tickDuration`.
    public init(format: AudioFormat, inputCount: Int, tickDuration: Duration = .milliseconds(10)) {
        self.inputCount = inputCount
        sums = .allocate(capacity: max(format.frameCount(in: tickDuration) * format.channelCount, 1))
        sums.initialize(repeating: 0)
        super.init(
            FilterDescription(
                name: "mixer",
                purpose: "adds its sources into one",
                inputs: (0..<inputCount).map { .audio(format, name: "audio \($0)", isRequired: false) },
                outputs: [.audio(format)]
            )
        )
    }

    deinit {
        sums.deallocate()
    }

    public override func process(_ io: borrowing FilterIO) {
        let output = io.output()
        guard inputCount > 1 else {
            if inputCount == 1 { output.copy(from: io.input()) } else { output.fillWithSilence() }
            return
        }
        var total = sums.mutableSpan
        for index in 0..<inputCount {
            let source = io.input(index)
            if index == 0 { store(source.samples, in: &total) } else { add(source.samples, to: &total) }
        }
        var samples = output.mutableSamples
        clip(total.span, into: &samples)
    }
}

@_noAllocation @_noLocks
private func store(_ samples: Span<Int16>, in sums: inout MutableSpan<Int32>) {
    for index in 0..<min(samples.count, sums.count) { sums[index] = Int32(samples[index]) }
}

@_noAllocation @_noLocks
private func add(_ samples: Span<Int16>, to sums: inout MutableSpan<Int32>) {
    for index in 0..<min(samples.count, sums.count) { sums[index] &+= Int32(samples[index]) }
}

@_noAllocation @_noLocks
private func clip(_ sums: Span<Int32>, into samples: inout MutableSpan<Int16>) {
    for index in 0..<min(samples.count, sums.count) { samples[index] = Int16(clamping: sums[index]) }
}
