import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import MediaTransport

/// What the media thread does with packets that go by a relay, and come from there.
@Suite struct MediaRelayTests {
    private static let server = SocketAddress(ipv4: 0xC633_6401, port: 3478)

    private static func allocation(
        at server: SocketAddress = server,
        by carrier: (any TURNCarrier)? = nil
    ) -> TURNAllocation {
        let generator = SeededGenerator(seed: 1)
        return TURNAllocation(at: server, by: carrier, user: "a", password: "b", generator, at: .zero)
    }

    private static let peer = SocketAddress(ipv4: 0xCB00_7109, port: 9)

    private func kind(_ relay: MediaRelay, _ bytes: [UInt8]) -> MediaRelay.Kind? { relay.kind(of: bytes.span) }

    @Test func `sound for the peer waits for its channel, and for others goes as it is`() {
        let allocation = Self.allocation()
        let relay = MediaRelay(allocation)
        #expect(relay.way(to: Self.peer) == .asItIs && relay.server == Self.server)
        let route = Route(Self.peer, isRelayed: true)
        relay.use(route, nil)
        #expect(relay.way(to: Self.peer) == .none && relay.way(to: Self.server) == .asItIs)
        relay.use(route, 0x4001)
        #expect(relay.way(to: Self.peer) == .channel(0x4001, at: Self.server) && relay.way(to: Self.server) == .asItIs)
        // The engine goes on with the way of before until it has been told.
        relay.use(Route(Self.server), nil)
        #expect(relay.way(to: Self.peer) == .none && relay.way(to: Self.server) == .asItIs)
        relay.use(Route(Self.peer), nil)
        #expect(relay.way(to: Self.peer) == .asItIs)
    }

    @Test func `what goes by a relay that is gone waits for another way, and does not go directly`() {
        let relay = MediaRelay(Self.allocation())
        relay.use(Route(Self.peer, isRelayed: true), 0x4001)
        let next = SocketAddress(ipv4: 0xC633_6402, port: 3478)
        for server in [next, nil] {
            relay.change(to: server.map { Self.allocation(at: $0) })
            #expect(relay.way(to: Self.peer) == .none && relay.way(to: Self.server) == .asItIs)
            #expect(relay.server == server)
        }
        // The direct way may lead to the same address.
        relay.use(Route(Self.peer), nil)
        #expect(relay.way(to: Self.peer) == .asItIs)
        relay.change(to: Self.allocation(at: next))
        relay.use(Route(Self.peer, isRelayed: true), 0x4000)
        #expect(relay.way(to: Self.peer) == .channel(0x4000, at: next))
    }

    @Test func `what the server passes on is told from what it answers`() {
        let allocation = Self.allocation()
        let relay = MediaRelay(allocation)
        relay.use(Route(Self.peer, isRelayed: true), 0x4001)
        let sound = Packets.media(1)
        let place = 4..<4 + sound.count
        #expect(kind(relay, ChannelData.wrapped(sound, 0x4001)) == .passedOn(place, from: Self.peer))
        #expect(kind(relay, ChannelData.wrapped(sound, 0x4002)) == .passedOn(place, from: Self.server))
        #expect(kind(relay, sound) == nil)
        let indication = Self.message(.indication, .data, sound)
        #expect(kind(relay, indication) == .passedOn(36..<36 + sound.count, from: Self.server))
        let tag = allocation.tag
        #expect(kind(relay, Self.message(.success, .createPermission, tag: tag, [])) == .answer)
        #expect(kind(relay, Self.message(.failure, .refresh, tag: tag, [])) == .answer)
        let others = [
            Self.message(.success, .createPermission, tag: tag &+ 1, []), Self.message(.indication, .send, sound),
            Self.message(.request, .binding, []), [], [0x40], [0x40, 1, 0, 9, 1],
        ]
        for datagram in others { #expect(kind(relay, datagram) == nil, "\(datagram)") }
        for count in 0..<indication.count { _ = kind(relay, Array(indication[..<count])) }
        // Where a connection leads to the server, it is its end.
        #expect(kind(MediaRelay(Self.allocation(by: TestCarrier(at: Self.server))), []) == .answer)
    }

    private static func message(
        _ kind: STUNMessage.Class,
        _ method: STUNMessage.Method,
        tag: UInt32 = 7,
        _ data: [UInt8]
    ) -> [UInt8] {
        var writer = STUNWriter(kind, method, STUNMessage.Transaction(high: tag, low: 1))
        writer.append(.xorPeerAddress, Self.peer)
        writer.append(.data, data)
        return writer.finish(withFingerprint: false)
    }

    /// Whoever is let through by the relay does not keep ICE from what it waits for.
    @Test func `of what is passed on that is handed on which names this side, or is of DTLS`() {
        let queue = HandshakeQueue(checksFor: "ours", by: LegServer(), relay: Self.allocation())
        func takes(_ data: [UInt8]) -> Bool {
            let datagram = ChannelData.wrapped(data, 0x4001)
            return queue.take(
                datagram.span,
                ReceivedDatagram(byteCount: datagram.count, source: Self.server, arrival: .zero)
            ) == nil
        }
        var checks = ICEChecks()
        for _ in 0..<100 {
            #expect(!takes(Self.message(.request, .binding, [])) && !takes(checks.check(name: "other")))
            #expect(takes(Self.message(.indication, .binding, [])))
        }
        for _ in 0..<16 { #expect(takes([22, 0xFE, 0xFD])) }
        #expect(!takes([22, 0xFE, 0xFD]) && takes(checks.check()))
    }
}
