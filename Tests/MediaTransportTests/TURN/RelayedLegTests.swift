import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// Two legs that reach each other by a relay alone; time is an argument, and the test is the threads that serve them.
@Suite struct RelayedLegTests {
    private final class Side {
        var address: SocketAddress
        let leg: DTLSLeg
        let wire = Wire()
        let link: SecureLink
        let ways: Watched<[Route]>
        let lossCount = Watched(0)
        var heard: [(bytes: [UInt8], from: SocketAddress)] = []

        init(_ identity: DTLSIdentity, at address: SocketAddress, _ relay: TURNAllocation?, _ name: String) {
            let ways = Watched<[Route]>([])
            (self.address, self.ways) = (address, ways)
            let lossCount = lossCount
            leg = DTLSLeg(identity, name, relay, by: LegServer()) { news in
                switch news {
                case .found(let route): ways.update { $0.append(route) }
                case .lost: lossCount.update { $0 += 1 }
                }
            }
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
        /// Whether checks of ICE, and their answers, are lost.
        var dropsChecks = false
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

        /// Has a side go to another port, for which the relay gives another address, and both restart ICE.
        func move(_ index: Int, using generator: inout SeededGenerator) throws {
            sides[index].address = SocketAddress(ipv4: 0xCB00_7201, port: 7000 + UInt16(index))
            let renewed = allocate(for: sides[index].address)
            relayed[index] = renewed.relayed
            sides[index].leg.renew(renewed)
            try connect(RelayedLegTests.credentials.map { $0.renewed(using: &generator) })
        }

        /// How many packets in a row both hear of each other.
        func talk(_ numbers: ClosedRange<UInt16>) -> [Int] {
            for side in sides { side.heard = [] }
            for number in numbers {
                for side in sides { _ = side.say(number, at: now) }
                run(1)
            }
            run(3)
            return sides.map { side in
                numbers.count { number in side.heard.contains { $0.bytes == Packets.media(number) } }
            }
        }

        func allocate(for own: SocketAddress) -> TURNAllocation {
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
                } else if dropsChecks, ChannelData.unwrapped(passed.bytes)?.bytes.first ?? passed.bytes[0] < 4 {
                    continue
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
        try await close(leg, on: stage)
        #expect(stage.relay.clientCount == 0)
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

    @Test func `at another port the leg goes on by another address at the relay`() throws {
        let stage = try Stage(relayed: [0])
        stage.run()
        #expect(stage.talk(1...10) == [10, 10])
        var generator = SeededGenerator(seed: 8)
        try stage.move(0, using: &generator)
        stage.run(1)
        // By the former address nothing leads to it any more.
        #expect(stage.sides[0].leg.hasRelay && !stage.sides[0].say(11, at: stage.now))
        stage.run()
        #expect(stage.talk(12...21) == [10, 10])
        #expect(stage.sides[0].lossCount.value == 0 && stage.sides[0].leg.failure == nil)
        // As many times as it moves.
        for number in 3...5 as ClosedRange<UInt16> {
            try stage.move(0, using: &generator)
            stage.run()
            #expect(stage.talk(number * 10...number * 10 + 9) == [10, 10])
        }
    }

    @Test func `that a relay is gone is told once, and another address there helps`() throws {
        let stage = try Stage(relayed: [0])
        stage.run(50 * 4)
        stage.isOn = false
        stage.run(50 * 9)
        #expect(stage.sides.map(\.lossCount.value) == [0, 0])
        // The side that controls is the first.
        stage.run(50 * 3)
        #expect(stage.sides.map(\.lossCount.value) == [1, 0])
        stage.relay = RelayServer(at: Self.server)
        stage.isOn = true
        var generator = SeededGenerator(seed: 8)
        try stage.move(0, using: &generator)
        stage.run()
        #expect(stage.talk(1...10) == [10, 10])
        stage.run(50 * 40)
        #expect(stage.sides.map(\.lossCount.value) == [1, 0] && stage.sides[0].leg.failure == nil)
    }

    @Test func `while the other side is heard, answers that are lost are no loss of the way`() throws {
        let stage = try Stage(relayed: [0])
        stage.run(50 * 4)
        stage.dropsChecks = true
        for number in 1...UInt16(50 * 25) {
            for side in stage.sides { #expect(side.say(number, at: stage.now)) }
            stage.run(1)
        }
        #expect(stage.sides.map(\.lossCount.value) == [0, 0])
    }

    @Test func `an address at a relay that no search has come to use is given back at the end`() async throws {
        let stage = try Stage(relayed: [0])
        stage.run()
        let leg = stage.sides[0].leg
        leg.renew(stage.allocate(for: SocketAddress(ipv4: 0xCB00_7201, port: 7)))
        stage.sides[0].address = SocketAddress(ipv4: 0xCB00_7201, port: 7)
        #expect(stage.relay.clientCount == 2)
        try await close(leg, on: stage)
        // What was given to the former port goes with its time.
        #expect(stage.relay.clientCount == 1)
    }

    private func close(_ leg: DTLSLeg, on stage: Stage) async throws {
        let isClosed = Watched(false)
        Task {
            await leg.close()
            isClosed.update { $0 = true }
        }
        for _ in 0..<100_000 where !isClosed.value {
            stage.run(1)
            await Task.yield()
        }
        try #require(isClosed.value)
    }
}
