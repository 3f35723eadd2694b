/// Packets in the order of their sequence numbers, in memory that is allocated once.
///
/// Shape: at most `capacity` packets of at most `PacketBatch.maximumPayloadByteCount` bytes.
struct PacketStore: ~Copyable {
    struct Entry: BitwiseCopyable {
        var header: PacketHeader
        var sequence: Int64
        var timestamp: Int64
        var duration: Int
        var byteCount: Int32
        var slot: Int32
    }

    private let entries: UnsafeMutablePointer<Entry>
    private var payloads: SlotPool
    private let capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        entries = .allocate(capacity: capacity)
        payloads = SlotPool(capacity: capacity, slotByteCount: PacketBatch.maximumPayloadByteCount)
    }

    deinit {
        entries.deallocate()
    }

    /// The packet with the lowest sequence number.
    var first: Entry? { count == 0 ? nil : entries[0] }

    /// Adds a packet in its place; the sequence number is extended, so that it never wraps.
    mutating func insert(
        _ header: PacketHeader,
        payload: Span<UInt8>,
        sequence: Int64,
        timestamp: Int64,
        duration: Int
    ) -> InsertionResult {
        guard count < capacity else { return .refused }
        var index = count
        while index > 0, entries[index &- 1].sequence >= sequence {
            guard entries[index &- 1].sequence != sequence else { return .duplicate }
            index &-= 1
        }
        guard let slot = payloads.claim(payload) else { return .refused }
        var position = count
        while position > index {
            entries[position] = entries[position &- 1]
            position &-= 1
        }
        (entries + index).initialize(
            to: Entry(
                header: header,
                sequence: sequence,
                timestamp: timestamp,
                duration: duration,
                byteCount: Int32(payload.count),
                slot: slot
            )
        )
        count &+= 1
        return .accepted
    }

    /// Hands the packet with the lowest sequence number to `body`.
    ///
    /// The store must not be empty.
    func withFirst<Result>(_ body: (PacketHeader, Span<UInt8>) -> Result) -> Result {
        precondition(count > 0)
        let byteCount = Int(entries[0].byteCount)
        let start = payloads.address(entries[0].slot, byteCount: byteCount)
        return body(entries[0].header, UnsafeBufferPointer(start: start, count: byteCount).span)
    }

    /// Drops the packet with the lowest sequence number.
    mutating func removeFirst() {
        guard count > 0 else { return }
        let slot = entries[0].slot
        count &-= 1
        for index in 0..<count { entries[index] = entries[index &+ 1] }
        payloads.release(slot)
    }

    /// Drops every packet, after `body` has seen its header.
    mutating func removeAll(_ body: (PacketHeader) -> Void) {
        for index in 0..<count {
            body(entries[index].header)
            payloads.release(entries[index].slot)
        }
        count = 0
    }
}
