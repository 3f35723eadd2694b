package import CallBasics
import Synchronization

/// One direction of a network in memory: datagrams of one thread on their way to another, without locks.
///
///     (sender) ─► slot ─► ring ─► heap, by their times ─► (receiver)
///                  ▲                                          │
///                  └──────────── ring of free slots ◄─────────┘
///
/// The sender claims a slot for each datagram and fills it before the entry goes into the ring; the receiver reads it and
/// sends the slot back. So there are never more datagrams than slots, and no ring is ever full.
/// Thread: `send` one at a time, `receive` one at a time; the two may run at once. Nothing allocates after `init`.
package final class DatagramPipe: @unchecked Sendable {
    private let sent: RingBuffer<DatagramHeap.Entry>
    private let freed: RingBuffer<Int32>
    private let memory: SlotPool.Memory
    private let refused = Atomic<Int>(0)
    private let closed = Atomic(false)

    /// The sender's own.
    private var slots: SlotPool
    /// The receiver's own.
    private var waiting: DatagramHeap

    /// The longest datagram that goes through.
    package static let maximumByteCount = DatagramQueue.maximumByteCount

    /// A pipe in which `capacity` datagrams can wait.
    package init(capacity: Int) {
        let pool = SlotPool(capacity: capacity, slotByteCount: Self.maximumByteCount)
        memory = pool.memory
        slots = pool
        sent = RingBuffer(minimumCapacity: capacity)
        freed = RingBuffer(minimumCapacity: capacity)
        waiting = DatagramHeap(capacity: capacity)
    }

    /// Datagrams that found no room, or were too long.
    ///
    /// Thread: any.
    var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// Whether there is nobody to receive.
    ///
    /// Thread: any.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Nobody receives any more.
    ///
    /// Thread: any.
    func close() { closed.store(true, ordering: .releasing) }

    /// Puts a copy of `datagram` on its way; answers false, and counts it as refused, when there is no room.
    @discardableResult
    package func send(_ datagram: Span<UInt8>, from source: SocketAddress, due: MediaTime) -> Bool {
        while let slot = freed.pop() { slots.release(slot) }
        guard let slot = slots.claim(datagram) else {
            refused.wrappingAdd(1, ordering: .relaxed)
            return false
        }
        sent.push(DatagramHeap.Entry(due: due, source: source, byteCount: Int32(datagram.count), slot: slot))
        return true
    }

    /// Moves the first datagram that is due by `now` into `buffer`.
    package func receive(into buffer: inout MutableSpan<UInt8>, dueBy now: MediaTime) -> ReceivedDatagram? {
        while let entry = sent.pop() { waiting.insert(entry) }
        guard let first = waiting.removeFirst(dueBy: now) else { return nil }
        let datagram = memory.read(first, into: &buffer)
        freed.push(first.slot)
        return datagram
    }
}
