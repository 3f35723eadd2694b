@testable import MediaEngine
import TestSupport
import Testing

/// Calls in virtual time over networks that lose packets, with and without redundant audio.
@Suite struct LossProtectionTests {
    private final class Pair {
        let engine: CallEngine
        let caller: Call
        let callee: Call

        init(
            codec: String = "opus",
            red: UInt8? = 121,
            fec: FECMode = .auto,
            impairment: Impairment = Impairment(),
            tellsExtended: Bool = true,
            dropping: @escaping @Sendable (Int, RTPPacket, [UInt8]) -> Bool = { _, _, _ in false }
        ) async throws {
            engine = try CallEngine(.virtual(seed: 4))
            let (left, right) = MemoryLink.pair()
            let format = try engine.registry.codec(named: codec).description.format
            var calling = CallConfiguration(network: .link(left, local: left.localAddress))
            calling.name = "A"
            calling.agreement.remote = right.localAddress
            calling.agreement.codec = AgreedCodec(codec)
            calling.stream.fec = fec
            calling.agreement.redPayloadType = red
            // Long enough for the copies in the two packets after.
            calling.stream.playoutDelay = .fixed(.milliseconds(80))
            calling.source = .samples(chirps(60, format), format)
            calling.sendsExtendedReports = tellsExtended
            calling.sink = .none
            var called = calling
            called.network = .link(DroppingLink(right, dropping), local: right.localAddress)
            called.name = "B"
            called.agreement.remote = left.localAddress
            called.impairment = impairment
            let calls = try await engine.makeCalls([calling, called])
            (caller, callee) = (calls[0], calls[1])
        }

        func advance(_ seconds: Double) throws {
            try engine.advance(by: .milliseconds(Int64(seconds * 1000)))
        }
    }

    private static func bursts(_ percent: Double, _ length: Double) -> Impairment {
        var impairment = Impairment()
        impairment.lossPercent = percent
        impairment.burstLength = length
        return impairment
    }

    @Test(arguments: thorough(["opus", "PCMU"], quick: ["PCMU"]), [1, 2]) func `copies fill the gaps of a burst`(
        codec: String,
        generations: Int
    )
        async throws
    {
        let impairment = Self.bursts(20, 2)
        let plain = try await Pair(codec: codec, red: nil, fec: .off, impairment: impairment)
        try plain.advance(30)
        let redundant = try await Pair(codec: codec, fec: .off, impairment: impairment)
        try redundant.engine.core.loop.send(.redundancy(generations: generations), to: redundant.caller.stream.sender)
        try redundant.advance(30)
        let (without, with) = (plain.callee.report().received, redundant.callee.report().received)
        #expect(without.concealedMs > 4000 && without.redundant == 0)
        // A run of n is shortened by as many packets as are repeated; half of all runs here have one packet.
        #expect(with.concealedMs < without.concealedMs * (generations == 1 ? 0.65 : 0.4))
        #expect(with.redundant > without.lost / 3)
        #expect(with.lost == without.lost && with.rejected == 0)
        // What is rebuilt is not lost (RFC 3611, section 4.7.1).
        let expected = Double(with.lost - with.redundant) / Double(with.packets + with.lost) * 100
        let told = redundant.callee.report().quality.lossPercent
        #expect(abs(told - expected) < 1.5, "\(told), not \(expected) %")
    }

    @Test func `under heavy loss the policy goes over to RED and says why`() async throws {
        let pair = try await Pair(impairment: Self.bursts(25, 2))
        try pair.advance(40)
        let (sent, heard) = (pair.caller.report(), pair.callee.report().received)
        #expect(sent.lossProtection.mode == .red)
        #expect(sent.lossProtection.reason.contains("RED with 2 copies"))
        #expect((1...2).contains(sent.lossProtection.changes))
        let plain = try await Pair(fec: .off, impairment: Self.bursts(25, 2))
        try plain.advance(40)
        #expect(plain.caller.report().lossProtection.mode == .none)
        #expect(heard.concealedMs < plain.callee.report().received.concealedMs * 0.6)
        // Total payload, headers of the blocks included, at most one and a half times 32 kbit/s.
        let bitrate = Double(sent.sent.bytes) * 8 / 40
        #expect(bitrate > 36_000 && bitrate <= 48_000 * 1.03)
        #expect(sent.sent.packets == 2000, "the length of packets stays")
        try await pair.caller.end()
        let changes = await allEvents(pair.caller).compactMap { event -> LossProtection.Mode? in
            if case .lossProtection(let protection, _) = event { protection.mode } else { nil }
        }
        #expect(changes.last == .red && changes.count == sent.lossProtection.changes)
    }

    @Test(.isComputing) func `with 5 % of loss, scattered packets are worth FEC and runs of three are not`()
        async throws
    {
        let scattered = try await Pair(dropping: { index, _, _ in index % 20 == 7 })
        let inRuns = try await Pair(dropping: { index, _, _ in (7...9).contains(index % 60) })
        for (pair, mode) in [(scattered, LossProtection.Mode.fec), (inRuns, .none)] {
            try pair.advance(60)
            let report = pair.caller.report()
            #expect(abs(try #require(report.rtcp.fractionLost) - 0.05) < 0.015)
            #expect(report.lossProtection.mode == mode)
            #expect(report.lossProtection.changes == (mode == .none ? 0 : 1))
            #expect(report.quality.implausibleReports == 0)
        }
        #expect(scattered.caller.report().lossProtection.reason.hasSuffix(", scattered: in-band FEC made for 10 %"))
        let reason = inRuns.caller.report().lossProtection.reason
        #expect(reason.hasSuffix("packets in a row: FEC would cost more than it repairs of such runs"))
        let runs = try #require(inRuns.caller.report().rtcp.lossRuns)
        #expect(runs.longest == 3 && runs.mean > 2.4)
    }

    @Test func `a peer that tells no runs is taken to lose scattered packets`() async throws {
        let pair = try await Pair(tellsExtended: false, dropping: { index, _, _ in (7...9).contains(index % 60) })
        try pair.advance(30)
        let report = pair.caller.report()
        #expect(report.rtcp.fractionLost != nil && report.rtcp.lossRuns == nil)
        #expect(report.lossProtection.mode == .fec && !report.lossProtection.reason.contains("row"))
    }

    @Test(.isComputing, arguments: [1.0, 3.0]) func `random losses of one rate do not make the mode swing`(run: Double)
        async throws
    {
        let pair = try await Pair(red: nil, impairment: Self.bursts(5, run))
        try pair.advance(120)
        let protection = pair.caller.report().lossProtection
        #expect(protection.mode == (run == 1 ? .fec : .none))
        #expect(protection.changes <= 2)
    }

    @Test(.isComputing) func `a path that becomes clean again gets its bits back`() async throws {
        let pair = try await Pair(dropping: { index, _, _ in index < 600 && index % 3 == 0 })
        try pair.advance(11)
        #expect(pair.caller.report().lossProtection.mode == .red)
        try pair.advance(45)
        #expect(pair.caller.report().lossProtection.mode == .none)
        let before = pair.caller.report().sent.bytes
        try pair.advance(3)
        #expect(Double(pair.caller.report().sent.bytes - before) * 8 / 3 < 34_000)
    }

    @Test func `RED that was not agreed is neither sent nor understood`() async throws {
        let pair = try await Pair(red: nil, impairment: Self.bursts(25, 2))
        try pair.advance(20)
        #expect(pair.caller.report().lossProtection.mode == .fec)
        #expect(pair.callee.report().received.redundant == 0)
    }

    @Test func `switching to RED and back loses, doubles and delays nothing`() async throws {
        let pair = try await Pair()
        for step in 0..<20 {
            try pair.engine.core.loop.send(.redundancy(generations: step % 3), to: pair.caller.stream.sender)
            try pair.advance(0.33)
        }
        let received = pair.callee.report().received
        #expect(received.lost == 0 && received.concealedMs == 0 && received.late == 0 && received.discarded == 0)
        #expect(received.redundant == 0 && received.rejected == 0)
    }

    @Test func `malformed RED is counted and the call goes on`() async throws {
        let (near, far) = MemoryLink.pair()
        let engine = try CallEngine(.virtual())
        var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
        configuration.agreement.codec = "PCMU"
        configuration.agreement.redPayloadType = 121
        configuration.source = .silence
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        for index in 0..<100 {
            // Each third packet tells of a block that is not there.
            let isBroken = index % 3 == 2
            let payload = isBroken ? [0x80, 2, 128 + 3, 255, 0, 1, 2] : [0] + [UInt8](repeating: 0xFF, count: 160)
            let header = RTPHeader(
                payloadType: 121,
                sequenceNumber: UInt16(index),
                timestamp: UInt32(index * 160),
                ssrc: 9
            )
            var bytes = [UInt8](repeating: 0, count: 12 + payload.count)
            var target = bytes.mutableSpan
            header.serialize(with: payload.span, into: &target)
            near.send(bytes.span, to: far.localAddress, at: engine.now)
            try engine.advance(by: .milliseconds(20))
        }
        let report = call.report().received
        #expect(report.rejected == 33 && report.packets == 100)
        #expect(report.concealedMs >= 32 * 20)
    }

    // MARK: Keys

    @Test(arguments: [nil, 121] as [UInt8?]) func `digits survive the loss of any one packet`(red: UInt8?) async throws
    {
        for lost in stride(from: 0, to: 60, by: thorough(1, quick: 7)) {
            let pair = try await Pair(codec: "PCMU", red: red, dropping: { index, _, _ in index == lost })
            try pair.caller.sendDTMF("115#")
            try pair.advance(1.2)
            #expect(pair.callee.receivedKeys == "115#", "without packet \(lost)")
        }
    }

    @Test(arguments: thorough([UInt8(1), 5, 9], quick: [5]))
    func `with RED a key comes through whose packets are all lost`(code: UInt8)
        async throws
    {
        let drop = { @Sendable (_: Int, packet: RTPPacket, bytes: [UInt8]) -> Bool in
            var payload = Array(bytes[packet.payloadRange])
            if packet.header.payloadType == 121, let parts = try? REDPayload(parsing: payload.span) {
                guard parts.primary.payloadType == 101 else { return false }
                payload = Array(payload[parts.primary.offset...])
            } else if packet.header.payloadType != 101 {
                return false
            }
            return payload.first == code
        }
        let pair = try await Pair(codec: "PCMU", dropping: drop)
        try pair.caller.sendDTMF("159")
        try pair.advance(2)
        #expect(pair.callee.receivedKeys == "159")
        let plain = try await Pair(codec: "PCMU", red: nil, dropping: drop)
        try plain.caller.sendDTMF("159")
        try plain.advance(2)
        #expect(plain.callee.receivedKeys.count == 2)
        #expect(pair.callee.report().received.rejected == 0)
    }

    @Test func `keys and speech with RED arrive once each, also under loss`() async throws {
        var impairment = Self.bursts(20, 2)
        impairment.reorderPercent = 5
        impairment.duplicatePercent = 5
        let pair = try await Pair(impairment: impairment)
        try pair.engine.core.loop.send(.redundancy(generations: 2), to: pair.caller.stream.sender)
        try pair.advance(1)
        try pair.caller.sendDTMF("0123456789*#ABCD")
        try pair.advance(6)
        #expect(pair.callee.receivedKeys == "0123456789*#ABCD")
    }

    @Test func `payload types that collide are refused`() async throws {
        let error = await #expect(throws: EngineError.self) { try await Pair(red: 101) }
        #expect("\(error.map { "\($0)" } ?? "")".contains("payload type"))
    }
}

/// A link that drops those RTP packets that a rule names: by their place, header and bytes.
private final class DroppingLink: DatagramLink, @unchecked Sendable {
    private let link: any DatagramLink
    private let rule: @Sendable (Int, RTPPacket, [UInt8]) -> Bool
    private var index = 0

    init(_ link: any DatagramLink, _ rule: @escaping @Sendable (Int, RTPPacket, [UInt8]) -> Bool) {
        self.link = link
        self.rule = rule
    }

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        link.send(bytes, to: destination, at: now)
    }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        while let datagram = link.receive(into: &buffer, at: now) {
            let bytes = buffer.span.extracting(first: min(datagram.byteCount, buffer.count))
            guard DatagramKind(of: bytes) == .rtp, let packet = try? RTPPacket(parsing: bytes) else { return datagram }
            defer { index += 1 }
            guard rule(index, packet, bytes.indices.map { bytes[$0] }) else { return datagram }
        }
        return nil
    }
}
