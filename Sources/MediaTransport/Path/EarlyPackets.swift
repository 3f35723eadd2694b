internal import MediaEngine

/// The newest packets that came before there were keys, in the order in which they came.
///
/// Thread: media. Allocates nothing after `init`.
final class EarlyPackets {
    /// Keys come a tick later than the handshake ends: the shortest packets have 5 ms.
    private static let capacity = 4
    private static let byteCount = DatagramPipe.maximumByteCount

    private let bytes: UnsafeMutableRawBufferPointer
    private var packets = [ReceivedDatagram?](repeating: nil, count: capacity)
    private var first = 0
    private var count = 0

    /// Memory that nothing is written to is not there yet.
    init() { bytes = .allocate(byteCount: Self.capacity * Self.byteCount, alignment: 16) }

    deinit { bytes.deallocate() }

    /// Keeps a packet; answers whether another one has gone for it, or it is too long itself.
    func keep(_ packet: Span<UInt8>, _ datagram: ReceivedDatagram) -> Bool {
        guard packet.count <= Self.byteCount else { return true }
        let isFull = count == Self.capacity
        if isFull { leave() }
        let place = (first + count) % Self.capacity
        packet.withUnsafeBytes { bytes.part((place * Self.byteCount)...).copyMemory(from: $0) }
        packets[place] = datagram
        count += 1
        return isFull
    }

    /// Moves the oldest one into `buffer`; nil when there is none.
    func take(into buffer: inout MutableSpan<UInt8>) -> ReceivedDatagram? {
        let start = first * Self.byteCount
        guard count > 0, let datagram = packets[first] else { return nil }
        let kept = UnsafeRawBufferPointer(bytes.part(start..<start + min(datagram.byteCount, buffer.count)))
        buffer.withUnsafeMutableBytes { $0.copyMemory(from: kept) }
        leave()
        return datagram
    }

    private func leave() {
        first = (first + 1) % Self.capacity
        count -= 1
    }
}
