import Synchronization

/// Adds what other plans leave for it into one.
///
///     (shared block) ─┐
///     (shared block) ─┼─► mixer ─► audio
///     …               ┘
///
/// Sources come and go while it runs: who joins or leaves is not heard by the others. The sum is formed in 32 bits and
/// clipped once.
/// Thread: `makeInput` and `removeInput` control; the rest media.
package final class MixerFilter: ControlledFilter<MixerFilter.Command, Never>, @unchecked Sendable {
    /// What it can be asked for.
    package enum Command: Sendable, BitwiseCopyable {
        /// Hears that input from now on.
        case open(Int)
        /// Hears it no longer.
        case close(Int)
    }

    /// Sources that it can hear at once.
    static let capacity = 256

    private let format: AudioFormat
    private let tickDuration: Duration
    private let sums: UnsafeMutableBufferPointer<Int32>
    /// The blocks of the inputs, each made when its place is first used, and kept.
    private let blocks: UnsafeMutablePointer<SharedBlock?>
    private let used = Mutex(Set<Int>())
    /// The inputs that are heard, the first `openCount`.
    private let open: UnsafeMutablePointer<Int>
    private var openCount = 0

    /// A mixer of sources of `format`, for ticks of `tickDuration`.
    init(format: AudioFormat, tickDuration: Duration) {
        self.format = format
        self.tickDuration = tickDuration
        sums = .allocate(capacity: max(format.frameCount(in: tickDuration) * format.channelCount, 1))
        sums.initialize(repeating: 0)
        blocks = .allocate(capacity: Self.capacity)
        blocks.initialize(repeating: nil, count: Self.capacity)
        open = .allocate(capacity: Self.capacity)
        open.initialize(repeating: 0, count: Self.capacity)
        super.init(
            FilterDescription(
                name: "mixer",
                purpose: "adds what is heard of the calls into one",
                outputs: [.audio(format)]
            )
        )
    }

    deinit {
        sums.deallocate()
        blocks.deinitialize(count: Self.capacity)
        blocks.deallocate()
        open.deallocate()
    }

    /// A place for one more source: its number, and where it leaves its samples once the place is open; nil when all are
    /// taken.
    func makeInput() -> (number: Int, block: SharedBlock)? {
        used.withLock { used in
            guard let number = (0..<Self.capacity).first(where: { !used.contains($0) }) else { return nil }
            used.insert(number)
            // A place that is not open is not looked at by the media thread.
            let block = blocks[number] ?? SharedBlock(format: format, tickDuration: tickDuration)
            block.silence()
            blocks[number] = block
            return (number, block)
        }
    }

    /// Gives back a place that has been closed.
    func removeInput(_ number: Int) {
        _ = used.withLock { $0.remove(number) }
    }

    /// Gives the sum of the last tick without what one of its inputs has left for it.
    func loadOthers(than block: SharedBlock, into samples: inout MutableSpan<Int16>) {
        guard openCount > 0 else { return }
        let total = sums.span
        block.withSamples { own in subtract(own, from: total, into: &samples) }
    }

    package override func handle(_ command: Command) {
        switch command {
        case .open(let number):
            guard openCount < Self.capacity else { return }
            open[openCount] = number
            openCount &+= 1
        case .close(let number):
            for index in 0..<openCount where open[index] == number {
                openCount &-= 1
                open[index] = open[openCount]
                return
            }
        }
    }

    package override func process(_ io: borrowing FilterIO) {
        let output = io.output()
        var samples = output.mutableSamples
        guard openCount > 0 else { return output.fillWithSilence() }
        var total = sums.mutableSpan
        for index in 0..<openCount {
            guard let block = blocks[open[index]] else { continue }
            block.withSamples { source in
                if index == 0 { store(source, in: &total) } else { add(source, to: &total) }
            }
        }
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
private func subtract(_ samples: Span<Int16>, from sums: Span<Int32>, into target: inout MutableSpan<Int16>) {
    for index in 0..<min(min(samples.count, sums.count), target.count) {
        target[index] = Int16(clamping: sums[index] &- Int32(samples[index]))
    }
}

@_noAllocation @_noLocks
private func clip(_ sums: Span<Int32>, into samples: inout MutableSpan<Int16>) {
    for index in 0..<min(samples.count, sums.count) { samples[index] = Int16(clamping: sums[index]) }
}
