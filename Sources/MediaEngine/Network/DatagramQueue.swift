import CallBasics

/// Datagrams that wait for their time, earliest first: a binary heap over memory that is allocated once.
///
/// Equal times keep the order of insertion. A full queue refuses, and counts.
/// Thread: media; nothing allocates after `init`.
struct DatagramQueue: ~Copyable {
    struct Entry: BitwiseCopyable {
        var due: MediaTime
        var order: UInt64
        var source: SocketAddress
        var byteCount: Int32
        var slot: Int32
    }

    static let maximumByteCount = 4096

    private let heap: UnsafeMutablePointer<Entry>
    private var contents: SlotPool
    private let capacity: Int
    private(set) var count = 0
    private(set) var refusedCount = 0
    private var nextOrder: UInt64 = 0

    init(capacity: Int) {
        self.capacity = capacity
        heap = .allocate(capacity: capacity)
        contents = SlotPool(capacity: capacity, slotByteCount: Self.maximumByteCount)
    }

    deinit {
        heap.deallocate()
    }

    /// When the first datagram is due; nil when none waits.
    var nextDue: MediaTime? { count == 0 ? nil : heap[0].due }

    /// Adds a copy of `datagram` that is due at `due`.
    mutating func insert(_ datagram: Span<UInt8>, from source: SocketAddress, due: MediaTime) {
        guard count < capacity, let slot = contents.claim(datagram) else {
            refusedCount &+= 1
            return
        }
        var index = count
        let entry = Entry(
            due: due,
            order: nextOrder,
            source: source,
            byteCount: Int32(datagram.count),
            slot: slot
        )
        nextOrder &+= 1
        count &+= 1
        while index > 0, Self.precedes(entry, heap[(index &- 1) / 2]) {
            heap[index] = heap[(index &- 1) / 2]
            index = (index &- 1) / 2
        }
        (heap + index).initialize(to: entry)
    }

    /// Moves the first datagram that is due by `now` into `buffer`.
    mutating func remove(into buffer: inout MutableSpan<UInt8>, dueBy now: MediaTime) -> ReceivedDatagram? {
        guard count > 0, heap[0].due <= now else { return nil }
        let first = heap[0]
        let source = contents.address(first.slot, byteCount: Int(first.byteCount))
        for index in 0..<min(Int(first.byteCount), buffer.count) { buffer[index] = source[index] }
        count &-= 1
        contents.release(first.slot)
        if count > 0 { sift(heap[count]) }
        return ReceivedDatagram(byteCount: Int(first.byteCount), source: first.source, arrival: first.due)
    }

    /// Puts `entry` in the place that became free at the top.
    private func sift(_ entry: Entry) {
        var index = 0
        while true {
            var child = 2 &* index &+ 1
            guard child < count else { break }
            if child &+ 1 < count, Self.precedes(heap[child &+ 1], heap[child]) { child &+= 1 }
            guard Self.precedes(heap[child], entry) else { break }
            heap[index] = heap[child]
            index = child
        }
        heap[index] = entry
    }

    private static func precedes(_ left: Entry, _ right: Entry) -> Bool {
        left.due < right.due || (left.due == right.due && left.order < right.order)
    }
}
