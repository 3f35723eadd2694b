import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// What a description is to tell: who is asked at once, and for how long a call waits; time is an argument.
@Suite(.tags(.rfc)) struct GatheringQueryTests {
    private static let stun = SocketAddress(ipv4: 0xC633_6402, port: 3478)
    private static let own = SocketAddress(ipv4: 0xCB00_7101, port: 5000)

    /// Who answers, and after which time in ms all is over.
    private static func run(
        stun answers: Bool,
        relayTakes limit: Int,
        password: String = RelayServer.password
    ) -> (query: GatheringQuery, end: Int64) {
        var relay = RelayServer(at: SocketAddress(ipv4: 0xC633_6401, port: 3478))
        var (mapping, now) = (RelayServer(at: stun), MediaTime.zero)
        var generator = SeededGenerator(seed: 1)
        let allocation = TURNAllocation(
            at: relay.address,
            user: RelayServer.user,
            password: password,
            generator,
            at: now
        )
        var query = GatheringQuery(MappingQuery([stun], &generator, at: now), allocation, at: now)
        var underWay: [(time: MediaTime, datagram: RelayServer.Datagram)] = []
        while let next = query.advance(to: now) {
            for (bytes, destination) in query.takeDatagrams() {
                var sent: [RelayServer.Datagram] = []
                if destination == stun, answers { sent = mapping.take(bytes, from: own, to: destination, at: now) }
                if destination == relay.address, relay.asked.count < limit {
                    sent = relay.take(bytes, from: own, to: destination, at: now)
                }
                underWay += sent.map { (now + .milliseconds(20), $0) }
            }
            if let first = underWay.first, first.time <= next {
                now = first.time
                query.take(first.datagram.bytes, from: first.datagram.source, at: now)
                underWay.removeFirst()
            } else {
                now = next
            }
        }
        return (query, now.nanoseconds / 1_000_000)
    }

    @Test func `when all have answered it is over`() {
        let (query, end) = Self.run(stun: true, relayTakes: 9)
        #expect(end == 40 && query.answers.count == 1 && query.failure == nil)
        #expect(query.relay?.relayed?.port == 50_001 && query.relay?.mapped == Self.own)
    }

    @Test func `a relay that is silent has 300 ms beside a server that is not`() {
        let (query, end) = Self.run(stun: true, relayTakes: 0)
        #expect(end == 300 && query.answers.count == 1 && query.relay == nil && query.failure == .silent)
    }

    @Test func `a relay that has begun to answer is waited for`() {
        let (query, end) = Self.run(stun: true, relayTakes: 1)
        #expect(end == 1000 && query.answers.count == 1 && query.relay == nil)
    }

    @Test func `an address that comes too late is given back`() throws {
        var (query, _) = Self.run(stun: true, relayTakes: 1)
        let sent = query.withdrawal(at: .zero + .seconds(1)).compactMap { STUNMessage(parsing: $0.bytes) }
        #expect(sent.map(\.method) == [.refresh])
        #expect(sent.last?.number(.lifetime) == 0)
        var (granted, _) = Self.run(stun: true, relayTakes: 9)
        let none = granted.withdrawal(at: .zero + .seconds(1))
        #expect(none.isEmpty && granted.relay != nil)
    }

    @Test func `a server that is silent has 300 ms beside a relay that is not`() {
        let (query, end) = Self.run(stun: false, relayTakes: 9)
        #expect(end == 300 && query.answers.isEmpty && query.relay?.mapped == Self.own)
    }

    @Test func `where nobody answers it is over after 1 s`() {
        let (query, end) = Self.run(stun: false, relayTakes: 0)
        #expect(end == 1000 && query.answers.isEmpty && query.failure == .silent)
    }

    @Test func `a relay that refuses is not waited for`() {
        let (query, end) = Self.run(stun: true, relayTakes: 9, password: "another")
        #expect(end == 40 && query.relay == nil && query.failure == .unauthorized)
    }
}
