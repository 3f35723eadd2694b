import CallBasics
import MediaEngine
import Synchronization
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// DTLS over the way that ICE has found; time is an argument, and the test is the thread that serves the leg.
@Suite struct ICELegTests {
    /// A leg, and a browser whose datagrams the test carries.
    private final class Stage {
        let leg: DTLSLeg
        let association: AgreedAssociation
        var browser: DTLSAssociation
        var checks = ICEChecks()
        var now = MediaTime.zero
        let ways: Watched<[UInt16]>
        private let wire = Wire()
        private let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: DatagramPipe.maximumByteCount)

        init(_ role: DTLSRole, _ ice: AgreedICE = ICEChecks.agreed) throws {
            let ways = Watched<[UInt16]>([])
            self.ways = ways
            leg = DTLSLeg(DTLSPair.one, ICEChecks.own.userFragment, by: LegServer()) { news in
                if case .found(let way) = news { ways.update { $0.append(way.peer.port) } }
            }
            browser = try DTLSAssociation(
                DTLSPair.other,
                role: role == .active ? .passive : .active,
                fingerprints: [DTLSPair.one.fingerprint]
            )
            func lines(_ identity: DTLSIdentity, _ role: SetupRole) -> [SDPAttribute] {
                [
                    SDPAttribute("fingerprint", identity.fingerprint.value), SDPAttribute("setup", role.rawValue),
                ]
            }
            let own = lines(DTLSPair.one, role == .active ? .active : .passive)
            let other = lines(DTLSPair.other, .activeOrPassive)
            // Whatever the description says: the way is that of the checks.
            association = try #require(AgreedAssociation(own, other, isOfferer: false))
            leg.connect(association, ice, to: ICEChecks.address(99))
        }

        deinit { buffer.deallocate() }

        /// What the media thread does with a datagram that has come; answers whether it hands that on.
        @discardableResult
        func deliver(_ datagram: [UInt8], from port: UInt16) -> Bool {
            let source = ICEChecks.address(port)
            let received = ReceivedDatagram(byteCount: datagram.count, source: source, arrival: now)
            return leg.queue.take(datagram.span, received) == nil
        }

        /// What the leg sends when a datagram has come, or time has gone by.
        @discardableResult
        func serve(_ datagram: [UInt8]? = nil, from port: UInt16 = 1) -> [(bytes: [UInt8], port: UInt16)] {
            if let datagram { deliver(datagram, from: port) }
            var bytes = [UInt8](repeating: 0, count: DatagramPipe.maximumByteCount)
            _ = leg.serve(at: now, &bytes)
            wire.sent = []
            leg.queue.send(over: wire, by: buffer, at: now)
            return wire.sent.map { ($0.bytes, $0.to.port) }
        }

        @discardableResult
        func check(from port: UInt16, nominates: Bool = false) -> [(bytes: [UInt8], port: UInt16)] {
            serve(checks.check(nominates: nominates), from: port)
        }

        /// Has both go on from what the leg has sent; the browser sends from `port`.
        func shake(_ sent: [(bytes: [UInt8], port: UInt16)], from port: UInt16 = 1) -> Set<UInt16> {
            var ports: Set<UInt16> = []
            var sent = sent
            for _ in 0..<20 {
                for datagram in sent where datagram.bytes[0] >= 20 {
                    ports.insert(datagram.port)
                    browser.receive(datagram.bytes.span)
                }
                sent = browser.takeDatagrams().flatMap { serve($0, from: port) }
            }
            return ports
        }

        var isConnected: Bool { browser.state.keys != nil && isOpen }

        /// Whether sound may leave.
        var isOpen: Bool {
            var buffer = [UInt8](repeating: 0, count: 256)
            var span = buffer.mutableSpan
            sequence += 1
            return leg.path.protect(Packets.media(sequence).span, in: &span) != nil
        }

        private var sequence: UInt16 = 0
    }

    // MARK: The way

    @Test func `nothing leaves before a check, and DTLS goes where that came from`() throws {
        let stage = try Stage(.active)
        #expect(stage.serve().isEmpty)
        #expect(stage.serve(stage.checks.check(password: "another password that is long")).isEmpty)
        let sent = stage.check(from: 7)
        #expect(Set(sent.map(\.port)) == [7] && sent[0].bytes[0] == 1 && sent[1].bytes[0] == 22)
        #expect(stage.shake(sent, from: 7) == [7] && stage.isConnected)
        #expect(stage.ways.value == [7] && stage.leg.refusedCheckCount == 1)
    }

    @Test func `who has checked nothing does not begin DTLS`() throws {
        let stage = try Stage(.passive)
        stage.check(from: 1)
        let hello = stage.browser.takeDatagrams()
        #expect(hello.flatMap { stage.serve($0, from: 2) }.isEmpty)
        #expect(hello.flatMap { stage.serve($0, from: 99) }.isEmpty)
        #expect(stage.shake(hello.flatMap { stage.serve($0, from: 1) }) == [1] && stage.isConnected)
    }

    @Test func `the association goes on when another way is nominated, in the midst of the handshake and after it`()
        throws
    {
        let stage = try Stage(.active)
        let hello = stage.check(from: 1)
        stage.check(from: 2, nominates: true)
        #expect(stage.shake(hello, from: 2) == [1, 2] && stage.isConnected)
        stage.check(from: 1)
        stage.now += .seconds(9)
        stage.check(from: 3, nominates: true)
        #expect(stage.ways.value == [1, 2, 3])
        stage.browser.close()
        stage.browser.takeDatagrams().forEach { stage.serve($0, from: 3) }
        #expect(!stage.isOpen)
    }

    @Test func `what only looks like a check is not even looked at`() throws {
        let stage = try Stage(.active)
        for check in [stage.checks.check(name: "other:abcd"), stage.checks.check(name: "our")] {
            #expect(stage.serve(check).isEmpty)
        }
        var response = stage.checks.check()
        response[0] = 1
        #expect(stage.serve(response).isEmpty)
        for count in 0..<40 { #expect(stage.serve(Array(stage.checks.check().prefix(count))).isEmpty) }
        #expect(stage.leg.refusedCheckCount == 0)
    }

    @Test func `who floods this side with DTLS keeps no check out`() throws {
        let stage = try Stage(.active)
        let forged: [UInt8] = [22, 0xFE, 0xFD] + [UInt8](repeating: 0, count: 20)
        for port in 100..<200 as Range<UInt16> { stage.deliver(forged, from: port) }
        #expect(stage.check(from: 7).first?.port == 7)
    }

    @Test func `who checks nothing is told to have found no way`() async throws {
        let stage = try Stage(.active)
        let failure = Watched<DTLSError?>(nil)
        let waiting = Task { [leg = stage.leg] in
            if case .failed(let error) = await leg.outcome() { failure.update { $0 = error } }
        }
        // Its time goes by once somebody waits.
        for _ in 0..<100_000 where failure.value == nil {
            stage.now += .seconds(1)
            stage.serve()
            await Task.yield()
        }
        try #require(failure.value != nil)
        await waiting.value
        #expect(failure.value == .unreached)
    }

    @Test func `a way that is checked no more is taken for gone after 30 s`() async throws {
        let stage = try Stage(.active)
        _ = stage.shake(stage.check(from: 1))
        stage.now += .seconds(29)
        stage.serve()
        #expect(stage.isOpen)
        stage.check(from: 1)
        stage.now += .seconds(29)
        stage.serve()
        #expect(stage.isOpen)
        stage.now += .seconds(1)
        stage.serve()
        #expect(!stage.isOpen)
        await stage.leg.ended()
        #expect(stage.leg.failure == .silent)
    }

    @Test func `by new names and passwords the way of before is taken for gone, too, unless there is another`() throws {
        let stage = try Stage(.active)
        _ = stage.shake(stage.check(from: 1))
        let session = AgreedICE.Session(local: ICEChecks.own, remote: ICEChecks.own)
        let anew = AgreedICE(session, isFull: true, isControlling: true, candidates: [])
        stage.leg.connect(stage.association, anew, to: nil)
        stage.now += .seconds(29)
        stage.serve()
        #expect(stage.isOpen)
        stage.now += .seconds(1)
        stage.serve()
        #expect(!stage.isOpen && stage.leg.failure == .silent)
    }

    @Test func `while the way is looked for anew, sound goes on by that of before`() throws {
        let stage = try Stage(.active)
        stage.serve(stage.checks.check(password: "another password that is long"))
        _ = stage.shake(stage.check(from: 1))
        let own = ICECredentials(userFragment: "ours-anew", password: "another-password-of-ours")
        let session = AgreedICE.Session(local: own, remote: ICEChecks.remote)
        let anew = AgreedICE(session, isFull: false, isControlling: false, candidates: [])
        stage.leg.connect(stage.association, anew, to: nil)
        #expect(stage.serve().isEmpty && stage.isOpen && stage.ways.value == [1])
        // What the other side has sent before it knew is of nobody else.
        #expect(stage.check(from: 1).isEmpty && stage.leg.refusedCheckCount == 1)
        #expect(stage.serve(stage.checks.check(name: "ours-anew:abcd")).isEmpty && stage.leg.refusedCheckCount == 2)
        let check = stage.checks.check(name: "ours-anew:abcd", password: own.password)
        #expect(stage.serve(check, from: 2).map(\.port) == [2] && stage.ways.value == [1, 2] && stage.isOpen)
        stage.browser.close()
        stage.browser.takeDatagrams().forEach { stage.serve($0, from: 2) }
        #expect(!stage.isOpen)
    }

    @Test func `a leg that is not needed any more sends and takes nothing`() throws {
        let stage = try Stage(.active)
        _ = stage.shake(stage.check(from: 1))
        #expect(stage.isOpen)
        stage.leg.disconnect()
        #expect(stage.serve().isEmpty && !stage.isOpen && stage.check(from: 1).isEmpty)
    }

    // MARK: A side that looks for the way

    private static let looking = ICEChecks.agreed(
        isFull: true,
        controls: true,
        [ICECandidate(.host, ICEChecks.address(5), priority: 9)]
    )

    private static func answer(to check: [UInt8], _ change: (inout [UInt8]) -> Void = { _ in }) throws -> [UInt8] {
        var writer = STUNWriter(.success, .binding, try #require(STUNMessage(parsing: check)).transaction)
        writer.append(.xorMappedAddress, ICEChecks.address(9))
        writer.sign(with: STUNKey(shortTerm: ICEChecks.remote.password))
        var answer = writer.finish(withFingerprint: true)
        change(&answer)
        return answer
    }

    @Test func `who looks for the way begins DTLS once an address has answered, and ends when that is silent`() throws {
        let stage = try Stage(.active, Self.looking)
        let check = try #require(stage.serve().first)
        #expect(check.port == 5 && check.bytes[0] == 0 && stage.ways.value.isEmpty)
        let sent = try stage.serve(Self.answer(to: check.bytes), from: 5)
        #expect(sent.allSatisfy { $0.port == 5 } && stage.ways.value == [5])
        #expect(sent.contains { $0.bytes[0] == 22 })
        let nomination = try #require(sent.first { $0.bytes[0] == 0 })
        stage.serve(try Self.answer(to: nomination.bytes), from: 5)
        #expect(stage.shake(sent, from: 5) == [5] && stage.isConnected)
        stage.now += .seconds(29)
        stage.serve()
        #expect(stage.isOpen)
        stage.now += .seconds(1)
        #expect(!stage.serve().contains { $0.bytes[0] == 0 } && !stage.isOpen)
    }

    @Test func `answers that no question of ours begins are not handed on`() throws {
        let stage = try Stage(.active, Self.looking)
        let check = try #require(stage.serve().first)
        #expect(!stage.deliver(try Self.answer(to: check.bytes) { $0[8] ^= 1 }, from: 5))
        #expect(!stage.deliver(try Self.answer(to: check.bytes) { $0[4] ^= 1 }, from: 5))
        #expect(!stage.deliver(Array(try Self.answer(to: check.bytes).prefix(19)), from: 5))
        #expect(stage.deliver(try Self.answer(to: check.bytes), from: 5))
    }
}
