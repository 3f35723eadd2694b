import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// What a description is to tell: who is asked at once, and for how long a call waits; time is an argument.
@Suite(.tags(.rfc)) struct GatheringQueryTests {
    private static let stun = SocketAddress(ipv4: 0xC633_6402, port: 3478)
    private static let own = SocketAddress(ipv4: 0xCB00_7101, port: 5000)

    /// Who answers, and after which time in ms all is over.
    ///
    /// - Parameters:
    ///   - answers: Whether the server of STUN does.
    ///   - limit: How many requests the relay takes by UDP.
    ///   - losesFirst: Whether the first of them is lost.
    ///   - connectionDelay: What a connection to it needs, in ms, which is the second way; nil where there is only one.
    ///   - password: What is shown to the relay.
    /// - Returns: What was asked and answered, when it was over, and the connection.
    private static func run(
        stun answers: Bool,
        relayTakes limit: Int,
        losesFirst: Bool = false,
        byConnection connectionDelay: Int64? = nil,
        password: String = RelayServer.password
    ) -> (query: GatheringQuery, end: Int64, carrier: TestCarrier) {
        var relay = RelayServer(at: SocketAddress(ipv4: 0xC633_6401, port: 3478))
        let carrier = TestCarrier(at: SocketAddress(ipv4: 0xC633_6403, port: 50_000))
        var connected = RelayServer(at: carrier.address)
        var (mapping, now) = (RelayServer(at: stun), MediaTime.zero)
        var generator = SeededGenerator(seed: 1)
        let allocation = TURNAllocation(
            at: relay.address,
            user: RelayServer.user,
            password: password,
            generator,
            at: now
        )
        let other = TURNAllocation(
            at: carrier.address,
            by: carrier,
            user: RelayServer.user,
            password: password,
            generator,
            at: now
        )
        let relays = connectionDelay == nil ? [allocation] : [allocation, other]
        var query = GatheringQuery(MappingQuery([stun], &generator, at: now), relays, at: now)
        var underWay: [(time: MediaTime, datagram: RelayServer.Datagram)] = []
        while let next = query.advance(to: now) {
            for (bytes, destination) in query.takeDatagrams() {
                var sent: [RelayServer.Datagram] = []
                if destination == stun, answers { sent = mapping.take(bytes, from: own, to: destination, at: now) }
                if destination == relay.address, relay.asked.count < limit, !losesFirst || now > .zero {
                    sent = relay.take(bytes, from: own, to: destination, at: now)
                }
                if destination == carrier.address {
                    carrier.isConnected = true
                    sent = connected.take(bytes, from: own, to: destination, at: now + .milliseconds(1))
                }
                let delay = destination == carrier.address ? connectionDelay ?? 0 : 20
                underWay += sent.map { (now + .milliseconds(delay), $0) }
            }
            underWay.sort { $0.time < $1.time }
            if let first = underWay.first, first.time <= next {
                now = first.time
                query.take(first.datagram.bytes, from: first.datagram.source, at: now)
                underWay.removeFirst()
            } else {
                now = next
            }
        }
        return (query, now.nanoseconds / 1_000_000, carrier)
    }

    @Test func `when all have answered it is over`() {
        let (query, end, _) = Self.run(stun: true, relayTakes: 9)
        #expect(end == 40 && query.answers.count == 1 && query.failure == nil)
        #expect(query.relay?.relayed?.port == 50_001 && query.relay?.mapped == Self.own)
    }

    @Test func `a relay that is silent has 300 ms beside a server that is not`() {
        let (query, end, _) = Self.run(stun: true, relayTakes: 0)
        #expect(end == 300 && query.answers.count == 1 && query.relay == nil && query.failure == .silent)
    }

    @Test func `a relay that has begun to answer is waited for`() {
        let (query, end, _) = Self.run(stun: true, relayTakes: 1)
        #expect(end == 1000 && query.answers.count == 1 && query.relay == nil)
    }

    @Test func `an address that comes too late is given back`() throws {
        var (query, _, _) = Self.run(stun: true, relayTakes: 1)
        let sent = query.withdrawal(at: .zero + .seconds(1)).compactMap { STUNMessage(parsing: $0.bytes) }
        #expect(sent.map(\.method) == [.refresh])
        #expect(sent.last?.number(.lifetime) == 0)
        var (granted, _, _) = Self.run(stun: true, relayTakes: 9)
        let none = granted.withdrawal(at: .zero + .seconds(1))
        #expect(none.isEmpty && granted.relay != nil)
    }

    @Test func `a server that is silent has 300 ms beside a relay that is not`() {
        let (query, end, _) = Self.run(stun: false, relayTakes: 9)
        #expect(end == 300 && query.answers.isEmpty && query.relay?.mapped == Self.own)
    }

    @Test func `where nobody answers it is over after 1 s`() {
        let (query, end, _) = Self.run(stun: false, relayTakes: 0)
        #expect(end == 1000 && query.answers.isEmpty && query.failure == .silent)
    }

    @Test func `a relay that refuses is not waited for`() {
        let (query, end, _) = Self.run(stun: true, relayTakes: 9, password: "another")
        #expect(end == 40 && query.relay == nil && query.failure == .unauthorized)
    }

    // MARK: Several ways to the relay

    @Test func `where the relay answers by UDP it is not connected to`() {
        var (query, end, carrier) = Self.run(stun: true, relayTakes: 9, byConnection: 10)
        #expect(end == 40 && query.relay?.isCarried == false && !carrier.isConnected)
        let sent = query.withdrawal(at: .zero + .milliseconds(40))
        #expect(sent.isEmpty && carrier.isClosed)
    }

    @Test func `where UDP is silent for 150 ms the relay is connected to`() {
        let (query, end, carrier) = Self.run(stun: false, relayTakes: 0, byConnection: 10)
        #expect(end == 300 && query.relay?.isCarried == true && query.relay?.relayed?.port == 50_001)
        #expect(query.relay?.mapped == nil && query.failure == nil && !carrier.isClosed)
        #expect(query.relay?.delay == .milliseconds(170))
    }

    @Test func `a relay that has taken the connection is waited for`() {
        let (query, end, _) = Self.run(stun: true, relayTakes: 0, byConnection: 120)
        #expect(end == 390 && query.relay?.isCarried == true)
    }

    @Test func `an address by UDP goes before one by a connection, which is given back`() throws {
        // UDP answers the second request, sent at 150 ms, the connection at once.
        var (query, _, carrier) = Self.run(stun: true, relayTakes: 9, losesFirst: true, byConnection: 1)
        #expect(query.relay?.isCarried == false && carrier.isConnected)
        let sent = query.withdrawal(at: .zero + .seconds(1))
        #expect(sent.map(\.destination) == [carrier.address] && carrier.isClosed)
        #expect(sent.first.flatMap { STUNMessage(parsing: $0.bytes) }?.number(.lifetime) == 0)
    }
}
