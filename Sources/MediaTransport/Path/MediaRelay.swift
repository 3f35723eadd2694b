import CallBasics
import MediaEngine

/// What the media thread knows of a relay: where its server is, where there is one, and the channel that media goes by.
///
///     packet ──► four bytes before it ──► server ──► the other side
///
/// Thread: `use` and `change` that of DTLS; the rest media.
/// Source: RFC 8656, section 12.
final class MediaRelay: @unchecked Sendable {
    /// A server, and a way in use.
    private struct Station {
        /// Nil without a relay.
        var server: SocketAddress?
        /// Whether a connection leads to the server, of whose end an empty datagram tells.
        var isCarried = false
        /// What begins the transactions that the server may answer.
        var tag: UInt32 = 0
        var route: Route?
        /// Nil before the server knows it, and where the way does not go by the relay.
        var number: UInt16?
        /// Whom media went to by the relay before: what is still sent to it does not go there directly.
        var former: SocketAddress?

        init(_ relay: TURNAllocation?) {
            guard let relay else { return }
            (server, isCarried, tag) = (relay.server, relay.isCarried, relay.tag)
        }
    }

    private final class Offer: Sendable {
        let station: Station
        init(_ station: Station) { self.station = station }
    }

    private let next = HandOff<Offer>()
    // Of the thread of DTLS.
    private var offered: Station
    // Of the media thread.
    private var current: Offer

    /// What passes on by `relay`; nothing without.
    init(_ relay: TURNAllocation?) {
        offered = Station(relay)
        current = Offer(offered)
    }

    /// Has media go by `route`: where that goes by the relay, by the channel `number`, and kept back while that is nil.
    ///
    /// Without a route all goes as it is.
    func use(_ route: Route?, _ number: UInt16?) {
        guard (offered.route, offered.number) != (route, number) else { return }
        noteFormer()
        if route == nil { offered.former = nil }
        (offered.route, offered.number) = (route, number)
        next.offer(Offer(offered))
    }

    /// Goes by another relay from now on, as soon as a way does; what is still sent by the former is lost with it.
    func change(to relay: TURNAllocation?) {
        noteFormer()
        let former = offered.former
        offered = Station(relay)
        offered.former = former
        next.offer(Offer(offered))
    }

    private func noteFormer() {
        if let last = offered.route, last.isRelayed { offered.former = last.peer }
    }

    // MARK: The media thread

    private var station: Station {
        if let taken = next.take() {
            let former = current
            current = taken.takeRetainedValue()
            next.retire(.passRetained(former))
        }
        return current.station
    }

    /// Where it is; nil without.
    var server: SocketAddress? { station.server }

    /// How a packet leaves.
    enum Way: Equatable {
        case asItIs
        /// With this number before it, to the server.
        case channel(UInt16, at: SocketAddress)
        /// Not yet.
        case none
    }

    /// How a packet for `destination` leaves.
    func way(to destination: SocketAddress) -> Way {
        let station = station
        guard let route = station.route, route.peer == destination else {
            return station.former == destination ? .none : .asItIs
        }
        guard route.isRelayed else { return .asItIs }
        guard let server = station.server, let number = station.number else { return .none }
        return .channel(number, at: server)
    }

    /// What the server has sent.
    enum Kind: Equatable {
        /// It answers what this side has asked, or the connection to it has ended.
        case answer
        /// What a peer has sent is there in the datagram; whose it is, is known for the channel in use alone, and else is the server.
        case passedOn(Range<Int>, from: SocketAddress)
    }

    /// What a datagram of the server is; nil for what is nothing.
    func kind(of datagram: Span<UInt8>) -> Kind? {
        let station = station
        if let (number, place) = ChannelData.place(in: datagram) {
            let peer = station.number == number ? station.route?.peer : nil
            return (peer ?? station.server).map { .passedOn(place, from: $0) }
        }
        if station.isCarried, datagram.isEmpty { return .answer }
        guard datagram.count >= STUNMessage.headerByteCount, datagram.uint32(at: 4) == STUNMessage.cookie else {
            return nil
        }
        if datagram.uint16(at: 0) == Self.dataIndication {
            guard let server = station.server else { return nil }
            return STUNMessage.place(of: .data, in: datagram).map { .passedOn($0, from: server) }
        }
        return datagram[0] == 1 && datagram.uint32(at: 8) == station.tag ? .answer : nil
    }

    /// The type of a message (RFC 8489, section 5).
    private static let dataIndication: UInt16 = 0x0017
}
