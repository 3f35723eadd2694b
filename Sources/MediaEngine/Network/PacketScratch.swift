import RTP

/// Memory for the packet that is being made or taken, shared by all legs of one media thread.
///
/// One for all stays in the processor's cache; one for each would be fetched from memory with every packet.
/// Thread: media.
package final class PacketScratch: @unchecked Sendable {
    /// Bytes of the largest packet.
    static let packetByteCount = PacketBatch.slotByteCount

    let bytes: UnsafeMutableBufferPointer<UInt8>
    /// Where a payload is put together before it becomes a packet.
    let payload: UnsafeMutableBufferPointer<UInt8>

    /// Memory for one packet of the largest size.
    package init() {
        bytes = .allocate(capacity: Self.packetByteCount)
        bytes.initialize(repeating: 0)
        payload = .allocate(capacity: REDSender.maximumPayloadByteCount)
        payload.initialize(repeating: 0)
    }

    deinit {
        bytes.deallocate()
        payload.deallocate()
    }
}
