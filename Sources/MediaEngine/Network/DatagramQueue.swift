package import CallBasics

/// Datagrams that wait for their time, earliest first, in memory that is allocated once.
///
/// Equal times keep the order of insertion. A full queue refuses, and counts.
/// Thread: media; nothing allocates after `init`.
package struct DatagramQueue: ~Copyable {
    /// The longest datagram that it takes.
    package static let maximumByteCount = 4096

    private var heap: DatagramHeap
    private var contents: SlotPool
    private(set) var refusedCount = 0

    /// One in which `capacity` datagrams can wait; memory is touched only when one is put there.
    package init(capacity: Int) {
        heap = DatagramHeap(capacity: capacity)
        contents = SlotPool(capacity: capacity, slotByteCount: Self.maximumByteCount)
    }

    /// Datagrams that wait.
    var count: Int { heap.count }

    /// When the first datagram is due; nil when none waits.
    var nextDue: MediaTime? { heap.nextDue }

    /// Whether the next one is refused.
    package var isFull: Bool { heap.isFull }

    /// Adds a copy of `datagram` that is due at `due`.
    package mutating func insert(_ datagram: Span<UInt8>, from source: SocketAddress, due: MediaTime) {
        guard let slot = contents.claim(datagram) else {
            refusedCount &+= 1
            return
        }
        heap.insert(
            DatagramHeap.Entry(due: due, source: source, byteCount: Int32(datagram.count), slot: slot)
        )
    }

    /// Lets the first datagram go, due or not.
    package mutating func removeFirst() {
        guard let due = heap.nextDue, let first = heap.removeFirst(dueBy: due) else { return }
        contents.release(first.slot)
    }

    /// Moves the first datagram that is due by `now` into `buffer`.
    package mutating func remove(into buffer: inout MutableSpan<UInt8>, dueBy now: MediaTime) -> ReceivedDatagram? {
        guard let first = heap.removeFirst(dueBy: now) else { return nil }
        let datagram = contents.memory.read(first, into: &buffer)
        contents.release(first.slot)
        return datagram
    }
}

extension SlotPool.Memory {
    /// Copies what `entry` holds into `buffer`, as much as has room there.
    func read(_ entry: DatagramHeap.Entry, into buffer: inout MutableSpan<UInt8>) -> ReceivedDatagram {
        let byteCount = Int(entry.byteCount)
        let content = address(entry.slot, byteCount: byteCount)
        for index in 0..<min(byteCount, buffer.count) { buffer[index] = content[index] }
        return ReceivedDatagram(byteCount: byteCount, source: entry.source, arrival: entry.due)
    }
}
