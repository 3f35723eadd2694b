package import CallBasics

/// What travels with the payload of one packet between filters.
package struct PacketHeader: Sendable, BitwiseCopyable, Equatable {
    /// RTP timestamp, in units of the codec's clock rate (RFC 3550, section 5.1).
    package var rtpTimestamp: UInt32 = 0
    /// Where the packet lies on the stream's one time line, whatever codecs its packets are of; the playout finds out.
    package var position: UInt32 = 0
    /// RTP sequence number; the RTP sender assigns it.
    package var sequenceNumber: UInt16 = 0
    /// RTP payload type, 0 to 127.
    package var payloadType: UInt8 = 0
    /// RTP marker: the first packet after a silence (RFC 3551, section 4.1).
    package var isMarked = false
    /// Whether the packet is the first of another source than the one before it.
    package var beginsSource = false
    /// Whether the packet is the first of new numbers and time stamps of the same source, which follow those before.
    package var beginsNumbers = false
    /// Whether the packet only holds its sequence number: it carried something else than the codec's sound, such as a
    /// telephone event, and has no payload here.
    package var isNumberOnly = false
    /// Whether the packet, of a number only, had a payload type that nothing here decodes: sound may have been in it.
    package var isUndecodable = false
    /// Whether the packet is a copy that a later one brought (RED): its own may still come, and `arrival` is when the
    /// later one came, so it says nothing of the network's delay.
    package var isRedundant = false
    /// Whether the packet holds no sound but the level of the noise to be heard until sound comes (RFC 3389).
    package var isComfortNoise = false
    /// Whether the packet holds a copy of the one before it (in-band FEC); the playout finds out.
    var carriesCopy = false
    /// When the packet reached this host; for packets to send, the start of the tick.
    package var arrival = MediaTime.zero

    /// A header with the given fields.
    package init(
        rtpTimestamp: UInt32 = 0,
        sequenceNumber: UInt16 = 0,
        payloadType: UInt8 = 0,
        isMarked: Bool = false,
        isNumberOnly: Bool = false,
        arrival: MediaTime = .zero
    ) {
        self.rtpTimestamp = rtpTimestamp
        position = rtpTimestamp
        self.sequenceNumber = sequenceNumber
        self.payloadType = payloadType
        self.isMarked = isMarked
        self.isNumberOnly = isNumberOnly
        self.arrival = arrival
    }
}

/// The packets that one port carries in one tick: a view of memory that the graph's plan owns.
///
/// Shape: at most `capacity` packets with payloads of at most `maximumPayloadByteCount` bytes.
/// Thread: media. Valid during the `process` call that it was handed to. A producer finds its outputs empty.
package struct PacketBatch {
    /// Packets that fit in a batch: 160 ms of 10 ms packets in one tick.
    package static let capacity = 16
    /// Bytes of the largest payload: 20 ms of 44.1 kHz stereo L16 are 3528.
    package static let maximumPayloadByteCount = 4000

    struct Slot {
        var header: PacketHeader
        var byteCount: Int32
    }

    static let slotByteCount = 4096
    static let payloadOffset = 96
    static let byteCount = 64 + capacity * slotByteCount

    let base: UnsafeMutableRawPointer

    init(base: UnsafeMutableRawPointer) {
        self.base = base
    }

    /// Packets in the batch.
    package var count: Int { Int(base.load(as: Int32.self)) }

    /// The fields of packet `index`.
    package func header(_ index: Int) -> PacketHeader {
        slot(index).pointee.header
    }

    /// The payload of packet `index`.
    @_lifetime(borrow self)
    package func payload(_ index: Int) -> Span<UInt8> {
        let start = payloadStart(index).assumingMemoryBound(to: UInt8.self)
        let buffer = UnsafeBufferPointer(start: start, count: Int(slot(index).pointee.byteCount))
        return _overrideLifetime(buffer.span, borrowing: self)
    }

    /// Adds a packet whose payload `write` writes; `write` answers its byte count, or 0 to add nothing (one of a
    /// number only is added all the same).
    ///
    /// Answers false when the batch is full or nothing was written.
    @discardableResult
    package func append(_ header: PacketHeader, write: (inout MutableSpan<UInt8>) -> Int) -> Bool {
        let index = count
        guard index < Self.capacity else { return false }
        let start = payloadStart(index).assumingMemoryBound(to: UInt8.self)
        var payload = UnsafeMutableBufferPointer(start: start, count: Self.maximumPayloadByteCount).mutableSpan
        let written = write(&payload)
        guard written > 0 || header.isNumberOnly else { return false }
        precondition(written <= Self.maximumPayloadByteCount)
        slot(index).initialize(to: Slot(header: header, byteCount: Int32(written)))
        base.storeBytes(of: Int32(index + 1), as: Int32.self)
        return true
    }

    /// Empties the batch.
    package func removeAll() {
        base.storeBytes(of: 0, as: Int32.self)
    }

    private func slot(_ index: Int) -> UnsafeMutablePointer<Slot> {
        precondition(index >= 0 && index < Self.capacity)
        return (base + 64 + index * Self.slotByteCount).assumingMemoryBound(to: Slot.self)
    }

    private func payloadStart(_ index: Int) -> UnsafeMutableRawPointer {
        base + 64 + index * Self.slotByteCount + Self.payloadOffset
    }
}
