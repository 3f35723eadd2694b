/// One block of samples that a filter of one plan leaves for filters of plans that run later in the same tick.
///
/// Thread: made and freed on the control side; samples media.
final class SharedBlock: @unchecked Sendable {
    /// The shape of the block.
    let format: AudioFormat
    private let samples: UnsafeMutableBufferPointer<Int16>

    /// A block of silence, of `tickDuration`.
    init(format: AudioFormat, tickDuration: Duration) {
        self.format = format
        samples = .allocate(capacity: max(format.frameCount(in: tickDuration) * format.channelCount, 1))
        samples.initialize(repeating: 0)
    }

    deinit {
        samples.deallocate()
    }

    /// Calls `body` with the samples that were left last.
    @inline(__always)
    func withSamples(_ body: (Span<Int16>) -> Void) { body(samples.span) }

    func load(into target: inout MutableSpan<Int16>) {
        for index in 0..<min(target.count, samples.count) { target[index] = samples[index] }
    }

    func store(_ source: Span<Int16>) {
        for index in 0..<min(source.count, samples.count) { samples[index] = source[index] }
    }

    func silence() { samples.update(repeating: 0) }
}

/// Leaves what it hears in a `SharedBlock`.
///
///     audio ─► shared block (of a later plan)
final class SharedBlockWriter: Filter, @unchecked Sendable {
    private let block: SharedBlock

    init(_ block: SharedBlock, purpose: String) {
        self.block = block
        super.init(FilterDescription(name: "to others", purpose: purpose, inputs: [.audio(block.format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        block.store(io.input().samples)
    }
}

/// Gives what lies in a `SharedBlock`.
///
///     (an earlier plan) shared block ─► audio
final class SharedBlockReader: Filter, @unchecked Sendable {
    private let block: SharedBlock

    init(_ block: SharedBlock, purpose: String) {
        self.block = block
        super.init(FilterDescription(name: "from others", purpose: purpose, outputs: [.audio(block.format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        var samples = io.output().mutableSamples
        block.load(into: &samples)
    }
}
