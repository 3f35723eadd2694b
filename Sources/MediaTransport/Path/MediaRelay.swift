import CallBasics
import MediaEngine

/// What the media thread knows of a relay: where its server is, and the channel that media goes by.
///
///     packet ──► four bytes before it ──► server ──► the other side
///
/// Thread: `use` that of DTLS; the rest media.
/// Source: RFC 8656, section 12.
final class MediaRelay: @unchecked Sendable {
    /// A way in use.
    private final class Channel: Sendable {
        let route: Route?
        /// Nil before the server knows it, and where the way does not go by the relay.
        let number: UInt16?
        /// Whom media went to by the relay before: what is still sent to it does not go there directly.
        let former: SocketAddress?

        init(_ route: Route?, _ number: UInt16?, after former: SocketAddress?) {
            (self.route, self.number, self.former) = (route, number, former)
        }
    }

    let server: SocketAddress
    /// Whether a connection leads to the server, of whose end an empty datagram tells.
    private let isCarried: Bool
    private let next = HandOff<Channel>()
    // Of the thread of DTLS.
    private var offered: (route: Route?, number: UInt16?)
    private var former: SocketAddress?
    // Of the media thread.
    private var current: Channel?

    init(_ relay: TURNAllocation) { (server, isCarried) = (relay.server, relay.isCarried) }

    /// Has media go by `route`: where that goes by the relay, by the channel `number`, and kept back while that is nil.
    ///
    /// Without a route all goes as it is.
    func use(_ route: Route?, _ number: UInt16?) {
        guard offered != (route, number) else { return }
        if let last = offered.route, last.isRelayed { former = last.peer }
        if route == nil { former = nil }
        offered = (route, number)
        next.offer(Channel(route, number, after: former))
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
        guard let channel else { return .asItIs }
        guard channel.route?.peer == destination else { return channel.former == destination ? .none : .asItIs }
        guard channel.route?.isRelayed ?? false else { return .asItIs }
        return channel.number.map { .channel($0) } ?? .none
    }

    /// What the server has sent.
    enum Kind: Equatable {
        /// It answers what this side has asked, or the connection to it has ended.
        case answer
        /// What a peer has sent is there in the datagram; whose it is, is known for the channel in use alone, and else is the server.
        case passedOn(Range<Int>, from: SocketAddress)
    }

    /// What a datagram of the server is, `tag` begins the transactions that it may answer; nil for what is nothing.
    func kind(of datagram: Span<UInt8>, tag: UInt32) -> Kind? {
        if let (number, place) = ChannelData.place(in: datagram) {
            let peer = channel.flatMap { $0.number == number ? $0.route?.peer : nil }
            return .passedOn(place, from: peer ?? server)
        }
        if isCarried, datagram.isEmpty { return .answer }
        guard datagram.count >= STUNMessage.headerByteCount, datagram.uint32(at: 4) == STUNMessage.cookie else {
            return nil
        }
        if datagram.uint16(at: 0) == Self.dataIndication {
            return STUNMessage.place(of: .data, in: datagram).map { .passedOn($0, from: server) }
        }
        return datagram[0] == 1 && datagram.uint32(at: 8) == tag ? .answer : nil
    }

    /// The type of a message (RFC 8489, section 5).
    private static let dataIndication: UInt16 = 0x0017
}
