import CallBasics

/// The clock of one direction of a card, seen from the ticks: its rate, the correction that follows it, its faults.
///
/// Pure: the present time is an argument.
struct CardClock: Sendable, BitwiseCopyable {
    /// Where frames belong.
    var alignment: CardAlignment
    /// What holds the level.
    private(set) var controller: LatencyController
    private var estimator: RateEstimator
    /// Frames per second that the clock should count.
    let sampleRate: Double
    private var lastTick: MediaTime?
    private var lastLook = MediaTime.zero

    init(_ direction: CardDirection, sampleRate: Int) {
        self.sampleRate = Double(sampleRate)
        alignment = CardAlignment(direction, sampleRate: sampleRate)
        controller = LatencyController(sampleRate: sampleRate)
        estimator = RateEstimator(nominalRate: sampleRate)
    }

    /// By how much the card's clock is fast, in parts per million; nil before it is known.
    var ppm: Double? { estimator.ppm }

    /// Begins with another card.
    mutating func reset() {
        alignment.forget()
        controller.restart(keepsRate: false)
        estimator = RateEstimator(nominalRate: Int(sampleRate))
        lastTick = nil
    }

    /// Begins a tick at `now` that sees the card at `look`; answers the frames that the card's clock has moved since
    /// the last look, and the ticks that the graph has skipped.
    mutating func advance(to now: MediaTime, look: MediaTime, tickDuration: Duration) -> (frames: Double, skipped: Int)
    {
        defer {
            lastTick = now
            lastLook = look
        }
        guard let lastTick else { return (0, 0) }
        let elapsed = Double(look.nanoseconds &- lastLook.nanoseconds) / 1e9
        let frames = elapsed * sampleRate * (1 + (estimator.ppm ?? 0) / 1e6)
        // Skipped ticks are whole ones; a tick that a card's period has started may be late by any part of one.
        let step = now.nanoseconds &- lastTick.nanoseconds
        let tick = tickDuration.nanoseconds
        let count = (step &+ tick / 2) / tick
        guard count > 1, abs(step &- count &* tick) < tick / 100 else { return (frames, 0) }
        return (frames, Int(count) &- 1)
    }

    /// Takes the count of frames that the card has moved in all, in a tick without a fault.
    mutating func observe(frames: Int64, at look: MediaTime) { estimator.observe(frames: frames, at: look) }

    /// Notes that the card's count of frames has a break.
    mutating func noteBreak() { estimator.rebase() }

    /// Takes the level at the time the tick was due, and answers the correction of the ratio.
    mutating func control(level: Double, tickDuration: Duration) -> Double {
        controller.update(level: level, elapsed: Double(tickDuration.nanoseconds) / 1e9)
        return controller.ppm
    }

    /// Holds another level from now on: the one that there is.
    mutating func accept(level: Int) {
        alignment.begin(level: level)
        controller.restart(keepsRate: true)
    }
}
