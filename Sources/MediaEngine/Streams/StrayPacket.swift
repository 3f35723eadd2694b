import CallBasics
import RTP

/// Memory for one packet whose number is far from all others, until the next one tells whether it was the first of new
/// numbers.
///
/// Thread: media; nothing allocates after `init`.
struct StrayPacket: ~Copyable {
    /// Bytes of the largest datagram that is kept: what an Ethernet carries, and some more.
    private static var capacity: Int { 2048 }

    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private var byteCount = 0
    private var content: (media: RTPReception.Media, arrival: MediaTime)?

    init() {
        bytes = .allocate(capacity: Self.capacity)
        bytes.initialize(repeating: 0)
    }

    deinit {
        bytes.deallocate()
    }

    /// Whether a packet is kept.
    var isKept: Bool { content != nil }

    /// Keeps `media`, a packet of `datagram` that came at `arrival`, in place of the one before.
    mutating func keep(_ media: RTPReception.Media, _ datagram: Span<UInt8>, _ arrival: MediaTime) {
        content = nil
        guard datagram.count <= Self.capacity else { return }
        for index in 0..<datagram.count { bytes[index] = datagram[index] }
        byteCount = datagram.count
        content = (media, arrival)
    }

    /// Forgets the packet.
    mutating func drop() { content = nil }

    /// Hands the packet to `body`, if `header` is of the one that follows it.
    func withPacket(before header: RTPHeader, _ body: (RTPReception.Media, Span<UInt8>, MediaTime) -> Void) {
        guard let (media, arrival) = content, media.packet.header.ssrc == header.ssrc,
            media.packet.header.sequenceNumber &+ 1 == header.sequenceNumber
        else { return }
        body(media, UnsafeBufferPointer(start: bytes.baseAddress, count: byteCount).span, arrival)
    }
}
