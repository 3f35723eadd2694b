import NIOCore

/// What has arrived on a connection and waits for its handlers, in its order.
struct Inbox {
    /// Room that an empty inbox may keep.
    private static let keptCapacity = 64

    private var frames = CircularBuffer<ReceivedFrame>()
    /// What the frames take that no handler has ended with yet.
    private(set) var cost = 0
    /// Whether somebody takes frames out until there are none.
    private var isServed = false

    /// Whether nothing waits, and nobody is handling what did.
    var isIdle: Bool { !isServed }

    /// Puts a frame behind the others; true when nobody takes frames out, and somebody has to from now on.
    mutating func append(_ frame: ReceivedFrame) -> Bool {
        frames.append(frame)
        cost += frame.cost
        defer { isServed = true }
        return !isServed
    }

    /// Takes the next frame out; nil when there is none, and then the inbox is not served any more.
    mutating func takeFirst() -> ReceivedFrame? {
        if let frame = frames.popFirst() { return frame }
        isServed = false
        // A peer that was once ahead must not cost its most for ever.
        if frames.capacity > Self.keptCapacity { frames = CircularBuffer() }
        return nil
    }

    /// Counts a frame as handled; true when that leaves less than `level`, and there was more.
    mutating func handled(_ frame: ReceivedFrame, below level: Int) -> Bool {
        defer { cost -= frame.cost }
        return cost > level && cost - frame.cost <= level
    }
}
