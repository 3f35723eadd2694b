import CallBasics

/// Reckons how many frames an xrun has cost, from what a card held when it was last seen to move.
///
/// A card that was never seen to move has lost nothing. No time is too long.
/// Pure: the present time is an argument. Units: frames.
struct XrunLoss: Sendable, BitwiseCopyable {
    private let direction: CardDirection
    private let sampleRate: UInt32
    private var level = 0
    private var last: MediaTime?

    init(_ direction: CardDirection, sampleRate: Int) {
        self.direction = direction
        self.sampleRate = UInt32(clamping: sampleRate)
    }

    /// Notes that the card moves, and holds `level` frames.
    mutating func note(level: Int, at now: MediaTime) {
        self.level = level
        last = now
    }

    /// The frames that are lost when the card turns out, at `now`, to have run empty or over.
    ///
    /// In playback the card has been silent since what it held ran out. In capture all is gone that came since, with what
    /// it held.
    func frameCount(at now: MediaTime) -> Int {
        guard let last else { return 0 }
        let passed = Int(clamping: max(now - last, .zero).clockUnits(at: sampleRate))
        return direction == .playback ? max(0, passed - level) : passed + level
    }
}
