package import CallBasics
internal import MediaEngine

/// Asks how this side is seen from outside, and for an address at a relay where one is wished: what its description tells then.
///
/// It is over when all have answered, 300 ms after the beginning when one has and nobody else has begun to, and after 1 s in any
/// case: a call waits for it.
/// Source: RFC 8445, section 5.1.1.2.
package struct GatheringQuery: PortQuery {
    private var mapping: MappingQuery
    private var allocation: TURNAllocation?
    private let begin: MediaTime

    /// Questions of `mapping` and for `allocation`, from `now` on.
    package init(_ mapping: MappingQuery, _ allocation: TURNAllocation?, at now: MediaTime) {
        (self.mapping, self.allocation, begin) = (mapping, allocation, now)
    }

    /// What servers have said of how they see this side, in their order.
    package var answers: [MappingQuery.Answer] { mapping.answers }

    /// The relay, once it has given an address.
    package var relay: TURNAllocation? { allocation.flatMap { $0.relayed == nil ? nil : $0 } }

    /// Why there is no relay; nil where there is one, or none was wished.
    package var failure: TURNError? {
        allocation.flatMap { $0.relayed == nil ? $0.failure ?? .silent : nil }
    }

    /// What gives an address back that came too late, or may yet come.
    package mutating func withdrawal(at now: MediaTime) -> [(bytes: [UInt8], destination: SocketAddress)] {
        guard relay == nil else { return [] }
        allocation?.close(at: now)
        return allocation?.takeDatagrams() ?? []
    }

    package mutating func advance(to now: MediaTime) -> MediaTime? {
        var times = [mapping.advance(to: now)]
        if allocation?.isPending ?? false {
            allocation?.advance(to: now)
            times.append(allocation?.next)
        }
        guard let next = times.compactMap(\.self).min(), now < end else { return nil }
        return min(next, end)
    }

    private var end: MediaTime {
        let isComing = allocation.map { $0.isPending && $0.isAnswered } ?? false
        let isHeard = relay != nil || !mapping.answers.isEmpty
        return begin + (isHeard && !isComing ? MappingQuery.patience : MappingQuery.limit)
    }

    package mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
        mapping.takeDatagrams() + (allocation?.takeDatagrams() ?? [])
    }

    package mutating func take(_ datagram: [UInt8], from source: SocketAddress, at now: MediaTime) {
        mapping.take(datagram, from: source, at: now)
        if source == allocation?.server { _ = allocation?.take(datagram, at: now) }
    }
}
