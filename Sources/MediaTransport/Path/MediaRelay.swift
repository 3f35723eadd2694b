import CallBasics
import MediaEngine
import RTP

/// What the media thread knows of a relay: where its server is, and the channel that media goes by.
///
///     packet ──► four bytes before it ──► server ──► the other side
///
/// Thread: `use` that of DTLS; the rest media.
/// Source: RFC 8656, section 12.
final class MediaRelay: @unchecked Sendable {
    /// A way by the relay; one without a peer is none.
    private final class Channel: Sendable {
        let peer: SocketAddress?
        /// Nil before the server knows it.
        let number: UInt16?

        init(_ peer: SocketAddress?, _ number: UInt16?) { (self.peer, self.number) = (peer, number) }
    }

    let server: SocketAddress
    private let next = HandOff<Channel>()
    private var current: Channel?
    private var offered: (peer: SocketAddress?, number: UInt16?)

    init(_ server: SocketAddress) { self.server = server }

    /// Has media for `peer` go by `number`, and kept back while that is nil.
    ///
    /// Without a peer, all goes as it is.
    func use(_ peer: SocketAddress?, _ number: UInt16?) {
        guard offered != (peer, number) else { return }
        offered = (peer, number)
        next.offer(Channel(peer, number))
    }

    // MARK: The media thread

    private var channel: Channel? {
        if let taken = next.take() {
            let former = current
            current = taken.takeRetainedValue()
            if let former { next.retire(.passRetained(former)) }
        }
        return current
    }

    /// How a packet leaves.
    enum Way: Equatable {
        case asItIs
        /// With this number before it, to the server.
        case channel(UInt16)
        /// Not yet.
        case none
    }

    /// How a packet for `destination` leaves.
    func way(to destination: SocketAddress) -> Way {
        guard let channel, channel.peer == destination else { return .asItIs }
        return channel.number.map { .channel($0) } ?? .none
    }

    /// What kind of thing the server has passed on, or says; nil for a datagram of somebody else, and for what is nothing.
    enum Kind: Equatable {
        /// Of ICE, of DTLS or of TURN.
        case control
        case media(Range<Int>, from: SocketAddress)
        /// An answer that nobody waits for, as to what was said before a call had the port.
        case late
    }

    /// What a datagram of the server is; `tag` begins the transactions that it may answer.
    func kind(of datagram: Span<UInt8>, tag: UInt32) -> Kind? {
        if let (number, place) = ChannelData.place(in: datagram) {
            if Self.isControl(datagram.extracting(place)) { return .control }
            guard let channel, channel.number == number, let peer = channel.peer else { return nil }
            return .media(place, from: peer)
        }
        guard datagram.count >= STUNMessage.headerByteCount, datagram.uint32(at: 4) == STUNMessage.cookie else {
            return nil
        }
        if datagram.uint16(at: 0) == Self.dataIndication { return hasControl(datagram) ? .control : nil }
        guard datagram[0] == 1 else { return nil }
        return datagram.uint32(at: 8) == tag ? .control : .late
    }

    /// Whether a Data indication has something of ICE or DTLS in it; media before its channel is not waited for.
    private func hasControl(_ datagram: Span<UInt8>) -> Bool {
        var place = STUNMessage.headerByteCount
        while place + 4 <= datagram.count {
            let (value, count) = (place + 4, Int(datagram.uint16(at: place + 2)))
            guard value + count <= datagram.count else { return false }
            if datagram.uint16(at: place) == STUNAttribute.data.rawValue {
                return Self.isControl(datagram.extracting(value..<value + count))
            }
            place = value + (count + 3) & ~3
        }
        return false
    }

    private static func isControl(_ bytes: Span<UInt8>) -> Bool {
        switch DatagramKind(of: bytes) {
        case .stun, .dtls: true
        case .rtp, .rtcp, .unknown: false
        }
    }

    /// The type of a message (RFC 8489, section 5).
    private static let dataIndication: UInt16 = 0x0017
}
