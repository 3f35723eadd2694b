/// A digit, or a pause, that waits its turn in a `ToneGenerator`.
struct QueuedDigit: BitwiseCopyable {
    /// Nil for a pause.
    var digit: DTMFDigit?
    /// Whether it sounds until it is released.
    var isHeld: Bool
    /// Frames of sound, when it is not held.
    var frameCount: Int
    /// Frames of silence afterwards.
    var gapFrameCount: Int
    /// The frame before which it must not start, counted since the generator was made.
    var earliestStart: Int
    var tag: Int64
}

/// A bounded first-in first-out queue of digits for one thread, allocated once.
struct DigitQueue: ~Copyable {
    private let storage: UnsafeMutablePointer<QueuedDigit>
    private let capacity: Int
    private var head = 0
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        storage = .allocate(capacity: self.capacity)
    }

    deinit {
        storage.deallocate()
    }

    /// The oldest, or nil when there is none.
    var first: QueuedDigit? { count > 0 ? storage[head] : nil }

    /// Adds `digit`, or answers false when the queue is full.
    mutating func append(_ digit: QueuedDigit) -> Bool {
        guard count < capacity else { return false }
        (storage + (head &+ count) % capacity).initialize(to: digit)
        count &+= 1
        return true
    }

    mutating func removeFirst() {
        guard count > 0 else { return }
        head = (head &+ 1) % capacity
        count &-= 1
    }

    mutating func removeAll() {
        head = 0
        count = 0
    }

    /// Gives every held `digit` (every held one for nil) a length of `frameCount` frames.
    mutating func release(_ digit: DTMFDigit?, frameCount: Int) {
        for index in 0..<count {
            let slot = storage + (head &+ index) % capacity
            guard slot.pointee.isHeld, digit == nil || digit == slot.pointee.digit else { continue }
            slot.pointee.isHeld = false
            slot.pointee.frameCount = frameCount
        }
    }
}
