import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// Two legs that reach each other by a relay alone; time is an argument, and the test is the threads that serve them.
@Suite struct RelayedLegTests {
    private final class Side {
        let address: SocketAddress
        let leg: DTLSLeg
        let wire = Wire()
        let link: SecureLink
        let ways: Watched<[Route]>
        var heard: [(bytes: [UInt8], from: SocketAddress)] = []

        init(_ identity: DTLSIdentity, at address: SocketAddress, _ relay: TURNAllocation?, _ name: String) {
            let ways = Watched<[Route]>([])
            (self.address, self.ways) = (address, ways)
            leg = DTLSLeg(identity, name, relay, by: LegServer()) { route in ways.update { $0.append(route) } }
            link = SecureLink(leg.path, leg.queue, over: wire)
        }

        func serve(at now: MediaTime) {
            var buffer = [UInt8](repeating: 0, count: DatagramPipe.maximumByteCount)
            _ = leg.serve(at: now, &buffer)
            var span = buffer.mutableSpan
            while let datagram = link.receive(into: &span, at: now) {
                heard.append(
                    (span.span.extracting(..<datagram.byteCount).withUnsafeBytes { Array($0) }, datagram.source)
                )
            }
        }

        /// Sends sound as the media thread does, to where it was told.
        func say(_ number: UInt16, at now: MediaTime) -> Bool {
            guard let route = ways.value.last else { return false }
            return link.send(Packets.media(number).span, to: route.peer, at: now)
        }
    }

    private static let server = SocketAddress(ipv4: 0xC633_6401, port: 3478)
    private static let addresses = [5000, 6000].map { SocketAddress(ipv4: 0xCB00_7100 + UInt32($0), port: UInt16($0)) }
    private static let credentials = ["one", "two"].map {
        ICECredentials(userFragment: "side-\($0)", password: "the password of side \($0)")
    }

    /// Both sides, a network between them that lets nothing through but by the relay, and the relay.
    private final class Stage {
        var relay = RelayServer(at: RelayedLegTests.server)
        var sides: [Side] = []
        var now = MediaTime.zero
        /// Whether the relay is there.
        var isOn = true
        /// What has come to the server.
        var toServer: [[UInt8]] = []
        private var relayed: [SocketAddress?] = []

        init(relayed: Set<Int>) throws {
            let identities = [DTLSPair.one, DTLSPair.other]
            let relays = [0, 1].map { relayed.contains($0) ? allocate(for: RelayedLegTests.addresses[$0]) : nil }
            for index in [0, 1] {
                let (address, name) = (
                    RelayedLegTests.addresses[index], RelayedLegTests.credentials[index].userFragment
                )
                sides.append(Side(identities[index], at: address, relays[index], name))
            }
            self.relayed = relays.map { $0?.relayed }
            try connect(RelayedLegTests.credentials)
        }

        /// Has both take on what descriptions tell, with names and passwords of each side.
        func connect(_ credentials: [ICECredentials]) throws {
            let identities = [DTLSPair.one, DTLSPair.other]
            for index in [0, 1] {
                func lines(_ identity: DTLSIdentity, _ role: SetupRole) -> [SDPAttribute] {
                    [SDPAttribute("fingerprint", identity.fingerprint.value), SDPAttribute("setup", role.rawValue)]
                }
                let own = lines(identities[index], index == 0 ? .active : .passive)
                let other = lines(identities[1 - index], index == 0 ? .passive : .active)
                let association = try #require(AgreedAssociation(own, other, isOfferer: index == 1))
                let places = [sides[1 - index].address, relayed[1 - index]].compactMap(\.self)
                let ice = AgreedICE(
                    AgreedICE.Session(local: credentials[index], remote: credentials[1 - index]),
                    isFull: true,
                    isControlling: index == 0,
                    candidates: places.map { ICECandidate(.host, $0, priority: UInt32($0.port)) }
                )
                sides[index].leg.connect(association, ice, to: nil)
            }
        }

        private func allocate(for own: SocketAddress) -> TURNAllocation {
            var allocation = TURNAllocation(
                at: RelayedLegTests.server,
                user: RelayServer.user,
                password: RelayServer.password,
                SeededGenerator(seed: UInt64(own.port)),
                at: now
            )
            for _ in 0..<2 {
                for (bytes, destination) in allocation.takeDatagrams() {
                    for answer in relay.take(bytes, from: own, to: destination, at: now) {
                        _ = allocation.take(answer.bytes, at: now)
                    }
                }
            }
            return allocation
        }

        /// Lets so many ticks go by.
        func run(_ ticks: Int = 50) {
            for _ in 0..<ticks {
                for side in sides {
                    side.serve(at: now)
                    for (bytes, destination) in side.wire.sent { carry(bytes, from: side.address, to: destination) }
                    side.wire.sent = []
                }
                now += .milliseconds(20)
            }
        }

        private func carry(_ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress) {
            guard isOn, relay.has(destination) else { return }
            if destination == RelayedLegTests.server { toServer.append(bytes) }
            for passed in relay.take(bytes, from: source, to: destination, at: now) {
                if relay.has(passed.destination) {
                    carry(passed.bytes, from: passed.source, to: passed.destination)
                } else if let side = sides.first(where: { $0.address == passed.destination }), relay.has(passed.source)
                {
                    side.wire.arrived.append((passed.bytes, passed.source))
                }
            }
        }
    }

    @Test(arguments: [[0], [1], [0, 1]] as [Set<Int>])
    func `sound goes by the relay, both ways, and not in the clear`(relayed: Set<Int>) throws {
        let stage = try Stage(relayed: relayed)
        stage.run()
        for (index, side) in stage.sides.enumerated() {
            #expect(side.ways.value.last?.isRelayed == relayed.contains(index) || relayed.count == 2)
        }
        stage.toServer = []
        for number in 1...5 as ClosedRange<UInt16> {
            for side in stage.sides { #expect(side.say(number, at: stage.now)) }
            stage.run(1)
        }
        stage.run(3)
        for side in stage.sides {
            #expect(side.heard.map(\.bytes) == (1...5 as ClosedRange<UInt16>).map { Packets.media($0) })
            #expect(side.heard.allSatisfy { $0.from == side.ways.value.last?.peer })
        }
        let sound = Packets.media(1)[12...]
        let sent = stage.toServer.filter { ChannelData.unwrapped($0) != nil }
        #expect(sent.count >= 5 && !sent.contains { $0.dropFirst(16).starts(with: sound) })
    }

    @Test func `while ICE is restarted, and then, no sound is lost by the relay`() throws {
        let stage = try Stage(relayed: [0, 1])
        stage.run()
        let permitCount = stage.relay.asked.count { $0 == .createPermission }
        var generator = SeededGenerator(seed: 5)
        let renewed = Self.credentials.map { $0.renewed(using: &generator) }
        try stage.connect(renewed)
        // Without consent by the new names, a leg would have ended after 30 s.
        let numbers = 1...UInt16(50 * 40)
        for number in numbers {
            for side in stage.sides { #expect(side.say(number, at: stage.now)) }
            stage.run(1)
        }
        stage.run(3)
        for side in stage.sides {
            #expect(side.heard.map(\.bytes) == numbers.map { Packets.media($0) })
            #expect(side.leg.failure == nil && side.leg.refusedCheckCount == 0)
        }
        #expect(stage.sides.contains { $0.ways.value.last?.isRelayed == true })
        #expect(stage.relay.asked.count { $0 == .createPermission } > permitCount)
    }

    @Test func `it is given back when the leg ends, after DTLS has said so`() async throws {
        let stage = try Stage(relayed: [0])
        stage.run()
        #expect(stage.relay.clientCount == 1)
        let leg = stage.sides[0].leg
        let isClosed = Watched(false)
        Task {
            await leg.close()
            isClosed.update { $0 = true }
        }
        for _ in 0..<100_000 where !isClosed.value {
            stage.run(1)
            await Task.yield()
        }
        #expect(isClosed.value && stage.relay.clientCount == 0)
        #expect(!stage.sides[1].say(1, at: stage.now) && stage.sides[1].leg.failure == nil)
    }

    @Test func `a leg whose relay falls silent ends after 30 s`() async throws {
        let stage = try Stage(relayed: [0])
        stage.run()
        stage.isOn = false
        stage.run(50 * 29)
        #expect(stage.sides[0].say(1, at: stage.now))
        stage.run(50 * 8)
        #expect(!stage.sides[0].say(2, at: stage.now) && stage.sides[0].leg.failure == .silent)
    }

    // MARK: The media thread

    private static func allocation(by carrier: (any TURNCarrier)? = nil) -> TURNAllocation {
        let generator = SeededGenerator(seed: 1)
        return TURNAllocation(at: server, by: carrier, user: "a", password: "b", generator, at: .zero)
    }

    private static let peer = SocketAddress(ipv4: 0xCB00_7109, port: 9)

    private func kind(_ relay: MediaRelay, _ bytes: [UInt8]) -> MediaRelay.Kind? { relay.kind(of: bytes.span, tag: 7) }

    @Test func `sound for the peer waits for its channel, and for others goes as it is`() {
        let relay = MediaRelay(Self.allocation())
        #expect(relay.way(to: Self.peer) == .asItIs)
        let route = Route(Self.peer, isRelayed: true)
        relay.use(route, nil)
        #expect(relay.way(to: Self.peer) == .none && relay.way(to: Self.server) == .asItIs)
        relay.use(route, 0x4001)
        #expect(relay.way(to: Self.peer) == .channel(0x4001) && relay.way(to: Self.server) == .asItIs)
        // The engine goes on with the way of before until it has been told.
        relay.use(Route(Self.server), nil)
        #expect(relay.way(to: Self.peer) == .none && relay.way(to: Self.server) == .asItIs)
        relay.use(Route(Self.peer), nil)
        #expect(relay.way(to: Self.peer) == .asItIs)
    }

    @Test func `what the server passes on is told from what it answers`() {
        let relay = MediaRelay(Self.allocation())
        relay.use(Route(Self.peer, isRelayed: true), 0x4001)
        let sound = Packets.media(1)
        let place = 4..<4 + sound.count
        #expect(kind(relay, ChannelData.wrapped(sound, 0x4001)) == .passedOn(place, from: Self.peer))
        #expect(kind(relay, ChannelData.wrapped(sound, 0x4002)) == .passedOn(place, from: Self.server))
        #expect(kind(relay, sound) == nil)
        let indication = Self.message(.indication, .data, sound)
        #expect(kind(relay, indication) == .passedOn(36..<36 + sound.count, from: Self.server))
        #expect(kind(relay, Self.message(.success, .createPermission, [])) == .answer)
        #expect(kind(relay, Self.message(.failure, .refresh, [])) == .answer)
        let others = [
            Self.message(.success, .createPermission, tag: 8, []), Self.message(.indication, .send, sound),
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
        }
        for _ in 0..<16 { #expect(takes([22, 0xFE, 0xFD])) }
        #expect(!takes([22, 0xFE, 0xFD]) && takes(checks.check()))
    }
}
