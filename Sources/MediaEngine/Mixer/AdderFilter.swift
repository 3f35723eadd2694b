/// Adds two sounds; the sum is clipped.
///
///     audio ─┐
///            ├─► adder ─► audio
///     other ─┘
final class AdderFilter: Filter, @unchecked Sendable {
    /// An adder of sounds of `format`.
    init(format: AudioFormat) {
        super.init(
            FilterDescription(
                name: "adder",
                purpose: "adds two sounds",
                inputs: [.audio(format), .audio(format, name: "other", isRequired: false)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    override func process(_ io: borrowing FilterIO) {
        let (other, output) = (io.input(1), io.output())
        output.copy(from: io.input())
        var samples = output.mutableSamples
        add(other.samples, to: &samples)
    }
}

@_noAllocation @_noLocks
private func add(_ source: Span<Int16>, to samples: inout MutableSpan<Int16>) {
    for index in 0..<min(source.count, samples.count) {
        // In place, `Int16(clamping:)` would not become vector code.
        let sum = Int32(samples[index]) &+ Int32(source[index])
        samples[index] = Int16(truncatingIfNeeded: min(max(sum, -32768), 32767))
    }
}
