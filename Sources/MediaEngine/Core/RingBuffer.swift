import Synchronization

/// A bounded queue between one producer thread and one consumer thread, without locks.
///
/// A full ring refuses the element and counts it: it neither grows nor overwrites.
/// Shape: a power-of-two number of trivial elements, allocated once.
/// Thread: `push` from one thread at a time, `pop` from one thread at a time; the two may run at once. A side that
/// several threads share brings its own lock.
package final class RingBuffer<Element: BitwiseCopyable>: @unchecked Sendable {
    private let storage: UnsafeMutablePointer<Element>
    private let mask: Int
    private let head = Atomic<Int>(0)
    private let tail = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)

    /// A ring of at least `minimumCapacity` elements.
    package init(minimumCapacity: Int) {
        var capacity = 2
        while capacity < minimumCapacity { capacity *= 2 }
        storage = .allocate(capacity: capacity)
        mask = capacity - 1
    }

    deinit {
        storage.deallocate()
    }

    /// Elements that the ring can hold.
    package var capacity: Int { mask + 1 }

    /// Elements waiting now.
    package var count: Int { tail.load(ordering: .acquiring) &- head.load(ordering: .acquiring) }

    /// Elements that can be pushed now.
    package var freeCount: Int { capacity - count }

    /// Elements refused because the ring was full.
    package var droppedCount: Int { dropped.load(ordering: .relaxed) }

    /// Adds `element`, or counts it as dropped and answers false when the ring is full.
    @discardableResult
    package func push(_ element: Element) -> Bool {
        let end = tail.load(ordering: .relaxed)
        guard end &- head.load(ordering: .acquiring) <= mask else {
            dropped.wrappingAdd(1, ordering: .relaxed)
            return false
        }
        (storage + (end & mask)).initialize(to: element)
        tail.store(end &+ 1, ordering: .releasing)
        return true
    }

    /// Takes the oldest element, or nil when the ring is empty.
    package func pop() -> Element? {
        let start = head.load(ordering: .relaxed)
        guard start != tail.load(ordering: .acquiring) else { return nil }
        let element = storage[start & mask]
        head.store(start &+ 1, ordering: .releasing)
        return element
    }

    /// Adds as many of `elements` as fit, counts the rest as dropped, and answers how many went in.
    @discardableResult
    package func push(contentsOf elements: Span<Element>) -> Int {
        let end = tail.load(ordering: .relaxed)
        let room = capacity &- (end &- head.load(ordering: .acquiring))
        let accepted = min(room, elements.count)
        for index in 0..<accepted {
            (storage + ((end &+ index) & mask)).initialize(to: elements[index])
        }
        if accepted < elements.count { dropped.wrappingAdd(elements.count - accepted, ordering: .relaxed) }
        tail.store(end &+ accepted, ordering: .releasing)
        return accepted
    }

    /// Moves the oldest elements into `target` and answers how many there were, at most its count.
    package func pop(into target: inout MutableSpan<Element>) -> Int {
        let start = head.load(ordering: .relaxed)
        let taken = min(tail.load(ordering: .acquiring) &- start, target.count)
        for index in 0..<taken {
            target[index] = storage[(start &+ index) & mask]
        }
        head.store(start &+ taken, ordering: .releasing)
        return taken
    }

    /// Throws away the oldest elements, at most `count`, and answers how many.
    ///
    /// Thread: the consumer's.
    @discardableResult
    func drop(_ count: Int) -> Int {
        let start = head.load(ordering: .relaxed)
        let dropped = min(tail.load(ordering: .acquiring) &- start, count)
        head.store(start &+ dropped, ordering: .releasing)
        return dropped
    }

    /// Throws away everything that waits.
    ///
    /// Thread: the consumer's.
    package func removeAll() {
        head.store(tail.load(ordering: .acquiring), ordering: .releasing)
    }
}
