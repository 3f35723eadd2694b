package import CallBasics
internal import MediaEngine

/// Asks how this side is seen from outside, and for an address at a relay where one is wished: what its description tells then.
///
/// A server that is reached in several ways is asked by the next one, beside the former, when nothing has been heard for 150 ms.
/// It is over when all have answered, 300 ms after the beginning when one has and nobody else has begun to, and after 1 s in any
/// case: a call waits for it.
/// Source: RFC 8445, section 5.1.1.2.
package struct GatheringQuery: PortQuery {
    private var mapping: MappingQuery
    private var relays: [TURNAllocation]
    /// How many of the ways to the relay are asked by.
    private var askedCount = 1
    private let begin: MediaTime

    /// Questions of `mapping` and for one of `relays`, from `now` on.
    package init(_ mapping: MappingQuery, _ relays: [TURNAllocation], at now: MediaTime) {
        (self.mapping, self.relays, begin) = (mapping, relays, now)
    }

    /// What servers have said of how they see this side, in their order.
    package var answers: [MappingQuery.Answer] { mapping.answers }

    /// The relay, by the first way that it has given an address by.
    package var relay: TURNAllocation? { relays.first { $0.relayed != nil } }

    /// Whom what is told has come from: the ways to them are to be kept open.
    package var askers: [SocketAddress] {
        [mapping.answers.first?.server, relay?.server].compactMap(\.self)
    }

    /// Why there is no relay; nil where there is one, or none was wished.
    package var failure: TURNError? {
        guard relay == nil, !relays.isEmpty else { return nil }
        return relays.lazy.compactMap(\.failure).first { $0 != .silent } ?? .silent
    }

    /// What gives back the addresses that are not taken, came too late, or may yet come.
    package mutating func withdrawal(at now: MediaTime) -> [(bytes: [UInt8], destination: SocketAddress)] {
        let taken = relay?.server
        return relays.indices.flatMap { index -> [(bytes: [UInt8], destination: SocketAddress)] in
            guard relays[index].server != taken else { return [] }
            relays[index].close(at: now)
            return isAsked(index) ? relays[index].takeDatagrams() : []
        }
    }

    private func isAsked(_ index: Int) -> Bool { index < askedCount }

    package mutating func advance(to now: MediaTime) -> MediaTime? {
        var times = [mapping.advance(to: now)]
        let next = begin + Self.pause * askedCount
        if askedCount < relays.count, relay == nil, !relays.prefix(askedCount).contains(where: \.isHeard) {
            if now >= next { askedCount += 1 } else { times.append(next) }
        }
        for index in relays.indices where isAsked(index) && relays[index].isPending {
            relays[index].advance(to: now)
            times.append(relays[index].next)
        }
        guard let next = times.compactMap(\.self).min(), now < end else { return nil }
        return min(next, end)
    }

    private var end: MediaTime {
        let isComing = relays.prefix(askedCount).contains { $0.isPending && $0.isHeard }
        let isHeard = relay != nil || !mapping.answers.isEmpty
        return begin + (isHeard && !isComing ? MappingQuery.patience : MappingQuery.limit)
    }

    package mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
        mapping.takeDatagrams() + relays.indices.filter(isAsked).flatMap { relays[$0].takeDatagrams() }
    }

    package mutating func take(_ datagram: [UInt8], from source: SocketAddress, at now: MediaTime) {
        mapping.take(datagram, from: source, at: now)
        for index in relays.indices where source == relays[index].server { _ = relays[index].take(datagram, at: now) }
    }

    /// How long nothing is heard before the next way is tried.
    private static let pause = Duration.milliseconds(150)
}
