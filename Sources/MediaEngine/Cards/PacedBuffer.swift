import CallBasics

/// The fill level of a sound card's buffer, moved by time alone: what a card does, without the sound.
///
/// In playback time empties the buffer and `write` fills it; in capture time fills it and `read` empties it. Running
/// empty or over is an xrun: the buffer then stands until it is started again.
/// Pure: the present time is an argument. Units: frames.
struct PacedBuffer: Sendable {
    let capacity: Int
    private(set) var level = 0
    /// Whether time moves the level.
    private(set) var isRunning = false

    private let direction: CardDirection
    /// Frames per second times a million, so that a deviation of one part per million is exact.
    private let microframesPerSecond: Int64
    private var last = MediaTime.zero
    /// What is left of a frame, in units of a frame / 10^15.
    private var fraction: Int128 = 0

    /// An empty buffer of `capacity` frames that stands; the card's crystal runs faster than `sampleRate` by
    /// `driftPPM` parts per million.
    init(direction: CardDirection, sampleRate: Int, capacity: Int, driftPPM: Int = 0) {
        self.direction = direction
        self.capacity = capacity
        microframesPerSecond = Int64(sampleRate) * Int64(1_000_000 + driftPPM)
    }

    /// Sets the level and lets time move it from `now` on.
    mutating func start(level: Int, at now: MediaTime) {
        self.level = min(level, capacity)
        last = now
        fraction = 0
        isRunning = true
    }

    /// Lets time pass until `now`; answers the frames by which the card ran empty or over, or nil without an xrun.
    mutating func advance(to now: MediaTime) -> Int? {
        guard isRunning, now > last else { return nil }
        fraction += Int128(now.nanoseconds &- last.nanoseconds) * Int128(microframesPerSecond)
        last = now
        let (whole, rest) = fraction.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
        fraction = rest
        let moved = Int(clamping: whole)
        let room = direction == .playback ? level : capacity - level
        guard moved > room else {
            level += direction == .playback ? -moved : moved
            return nil
        }
        isRunning = false
        level = direction == .playback ? 0 : capacity
        return moved - room
    }

    /// Adds up to `frameCount` frames (playback) and answers how many fit.
    mutating func write(_ frameCount: Int) -> Int {
        let accepted = min(frameCount, capacity - level)
        level += accepted
        return accepted
    }

    /// Takes up to `frameCount` frames (capture) and answers how many there were.
    mutating func read(_ frameCount: Int) -> Int {
        let taken = min(frameCount, level)
        level -= taken
        return taken
    }
}
