import NIOCore

/// What a connection still has to send, and who waits for room in it.
///
/// Senders are let in as long as the peer has fewer than `capacity` bytes to take; from there on they wait, and half of
/// that must be gone before they are let in again, in their order.
struct Outbox {
    /// A sender that waits with its frame.
    struct Waiter {
        let id: UInt64
        let frame: OutgoingFrame
        let continuation: CheckedContinuation<Void, any Error>
    }

    let capacity: Int
    private(set) var frames: [OutgoingFrame] = []
    /// Bytes of frames that were let in and are not written yet.
    private(set) var byteCount = 0
    private(set) var waiters: [Waiter] = []

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Whether a frame of any size may come in now.
    var hasRoom: Bool { waiters.isEmpty && byteCount < capacity }

    mutating func append(_ frame: OutgoingFrame) {
        frames.append(frame)
        byteCount += frame.byteCount
    }

    mutating func wait(_ waiter: Waiter) {
        waiters.append(waiter)
    }

    /// Takes a waiter out that gave up; nil when it was let in already.
    mutating func removeWaiter(_ id: UInt64) -> Waiter? {
        waiters.firstIndex { $0.id == id }.map { waiters.remove(at: $0) }
    }

    /// Frames to be written now.
    mutating func takeFrames() -> [OutgoingFrame] {
        defer { frames = [] }
        return frames
    }

    /// Counts bytes as written; answers the waiters whose frames came in by that.
    mutating func written(_ count: Int) -> [Waiter] {
        byteCount -= count
        guard byteCount <= capacity / 2, !waiters.isEmpty else { return [] }
        var admitted = 0
        while admitted < waiters.count, byteCount < capacity {
            append(waiters[admitted].frame)
            admitted += 1
        }
        defer { waiters.removeFirst(admitted) }
        return Array(waiters[..<admitted])
    }

    /// Takes all waiters out, for a connection that takes no more of them.
    mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [] }
        return waiters
    }
}
