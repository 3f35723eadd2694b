@testable import MediaEngine
import SDP
import Testing

/// Calls whose agreement changes while they run.
@Suite struct CallUpdateTests {
    private static let amplitude = 8000.0
    private static let wide = AudioFormat(sampleRate: 48_000)

    /// A tone of 400 Hz for so many seconds.
    private static func tone(_ seconds: Int) -> CallSource {
        .samples(CodecTest.tone(400, rate: 48_000, count: 48_000 * seconds, amplitude: amplitude), wide)
    }

    /// An agreement of `codec` that goes on taking `others`.
    private static func agreement(_ former: MediaAgreement, _ codec: AgreedCodec, taking others: [AgreedCodec] = [])
        -> MediaAgreement
    {
        var agreement = former
        agreement.codec = codec
        agreement.acceptedCodecs = others
        return agreement
    }

    /// The level of each 20 ms that were heard, relative to the tone's.
    private static func levels(_ samples: [Int16], rate: Int) -> [Double] {
        stride(from: 0, through: samples.count - rate / 50, by: rate / 50).map { start in
            let energy = CodecTest.energy(samples[start..<start + rate / 50]) / Double(rate / 50)
            return (2 * energy).squareRoot() / amplitude
        }
    }

    @Test func `going over from one codec to another and back loses nothing`() async throws {
        let opus = AgreedCodec("opus", payloadType: 96)
        let pair = try await CallPair(saying: Self.tone(10)) { _, called in
            called.agreement.acceptedCodecs = [opus]
        }
        try pair.advance(1000)
        for round in 0..<8 {
            let (codec, other) = round % 2 == 0 ? (opus, AgreedCodec("PCMU")) : (AgreedCodec("PCMU"), opus)
            let caller = pair.caller
            try await caller.update(Self.agreement(caller.agreement, codec, taking: [other]))
            try pair.advance(500)
            let callee = pair.callee
            try await callee.update(Self.agreement(callee.agreement, codec, taking: [other]))
            try pair.advance(500)
        }
        let (sent, received) = (pair.caller.report().sent, pair.callee.report().received)
        // SSRC and sequence numbers go on: to the other side it is one stream without a gap.
        #expect(sent.packets >= 448 && received.packets >= sent.packets - 1)
        #expect(received.lost == 0 && received.late == 0 && received.discarded == 0 && received.rejected == 0)
        #expect(received.concealedMs == 0, "\(received.concealedMs) ms")
        let levels = Self.levels(pair.heard.samples, rate: 8000)
        // All but the wait before the first packet; a codec that begins needs some milliseconds.
        let odd = levels.indices.dropFirst(10).dropLast(1).filter { !(0.3...1.2).contains(levels[$0]) }
        #expect(odd.isEmpty, "\(odd.map { "\($0 * 20) ms: \(levels[$0])" })")
    }

    @Test func `another packet time and other numbers lose nothing`() async throws {
        let pair = try await CallPair(saying: Self.tone(6), codec: AgreedCodec("opus", payloadType: 96)) { _, called in
            called.agreement.acceptedCodecs = [AgreedCodec("opus", payloadType: 97)]
        }
        try pair.advance(1000)
        for (type, milliseconds) in [(96, 40), (97, 20), (97, 60), (96, 20)] as [(UInt8, Int64)] {
            var agreement = pair.caller.agreement
            agreement.codec = AgreedCodec("opus", payloadType: type)
            agreement.packetTime = .milliseconds(milliseconds)
            try await pair.caller.update(agreement)
            try pair.advance(1000)
        }
        let received = pair.callee.report().received
        #expect(received.lost == 0 && received.late == 0 && received.rejected == 0)
        #expect(received.concealedMs <= 60, "\(received.concealedMs) ms")
    }

    @Test func `what waits of a codec that is no longer taken is played as what it is`() async throws {
        let pair = try await CallPair(saying: Self.tone(4)) { _, called in
            called.stream.playoutDelay = .fixed(.milliseconds(100))
        }
        try pair.advance(1000)
        let opus = Self.agreement(pair.callee.agreement, AgreedCodec("opus", payloadType: 96))
        try await pair.callee.update(opus)
        try pair.advance(90)
        let last = pair.heard.samples.suffix(8 * 60)
        // Of PCMU taken for Opus there would be noise at full scale.
        #expect(last.allSatisfy { abs(Int($0)) < 11_000 } && last.contains { abs(Int($0)) > 5000 })
    }

    @Test func `protection against loss goes on over a change that leaves it possible`() async throws {
        let opus = AgreedCodec("opus", payloadType: 96)
        let pair = try await CallPair(saying: Self.tone(60), codec: opus) { calling, called in
            (calling.stream.fec, called.stream.fec) = (.auto, .auto)
            calling.impairment.lossPercent = 10
            called.impairment.lossPercent = 10
        }
        try pair.advance(20_000)
        #expect(pair.caller.report().lossProtection.mode == .fec)
        var agreement = pair.caller.agreement
        agreement.direction = .sendOnly
        try await pair.caller.update(agreement)
        #expect(pair.caller.report().lossProtection.mode == .fec)
        try pair.advance(10_000)
        let protection = pair.caller.report().lossProtection
        #expect(protection.mode == .fec && protection.changes == 1)
    }

    @Test func `keys go on over a change of codec`() async throws {
        let pair = try await CallPair(saying: Self.tone(6)) { _, called in
            called.agreement.acceptedCodecs = [AgreedCodec("opus", payloadType: 96)]
        }
        try pair.advance(500)
        try pair.caller.sendDTMF("12345")
        try pair.advance(450)
        var agreement = pair.caller.agreement
        agreement.codec = AgreedCodec("opus", payloadType: 96)
        agreement.telephoneEvents = AgreedEvents(payloadType: 101, clockRate: 8000)
        try await pair.caller.update(agreement)
        try pair.advance(1500)
        #expect(pair.callee.receivedKeys == "12345")
    }

    @Test func `a call begins with nothing agreed, and speaks and hears after the update`() async throws {
        let pair = try await CallPair(saying: Self.tone(4)) { calling, called in
            for (index, remote) in [calling.agreement.remote, called.agreement.remote].enumerated() {
                var nothing = MediaAgreement.nothing
                nothing.remote = remote
                if index == 0 { calling.agreement = nothing } else { called.agreement = nothing }
            }
        }
        try pair.advance(1000)
        #expect(pair.caller.report().sent.packets == 0 && pair.callee.report().received.packets == 0)
        for call in [pair.callee, pair.caller] {
            try await call.update(Self.agreement(call.agreement, "PCMU"))
        }
        try pair.advance(1000)
        #expect(pair.callee.report().received.packets >= 49 && pair.callee.report().received.lost == 0)
        let last = try #require(Self.levels(pair.heard.samples, rate: 8000).last)
        #expect((0.8...1.1).contains(last))
    }

    @Test(arguments: [false, true])
    func `a stranger that came before the answer keeps nothing once that names the other side`(
        isAgreed: Bool
    ) async throws {
        let (named, stranger) = (ReceiveRig.peer, SocketAddress(ipv4: 0xC633_6401, port: 4000))
        let link = ScriptedLink()
        let engine = try CallEngine(.virtual())
        var configuration = CallConfiguration(network: .link(link, local: .loopback(port: 5004)))
        configuration.agreement = .nothing
        if isAgreed { configuration.agreement.codec = "PCMU" }
        configuration.source = Self.tone(5)
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        /// Packets of these numbers from each of the sources, and where this side's went meanwhile.
        func hear(_ numbers: Range<Int>, from sources: [SocketAddress]) throws -> [SocketAddress] {
            let before = link.destinations.count
            for number in numbers {
                for source in sources {
                    let ssrc: UInt32 = source == stranger ? 9 : 1
                    link.add(ReceiveRig.packet(number, ssrc: ssrc), from: source, at: engine.now)
                }
                try engine.advance(by: .milliseconds(20))
            }
            try engine.advance(by: .milliseconds(40))
            return Array(link.destinations.dropFirst(before))
        }
        let early = try hear(0..<40, from: [stranger])
        #expect(early.contains(stranger) == isAgreed)
        var agreement = Self.agreement(call.agreement, "PCMU")
        agreement.remote = named
        try await call.update(agreement)
        let answered = try hear(40..<90, from: [stranger])
        #expect(answered.count >= 48 && answered.allSatisfy { $0 == named })
        #expect(call.report().received.packets == 40 && call.report().received.refused.unnamedHost == 50)
        // Behind a NAT: two packets lock it.
        let behindNAT = named.with(port: 61_234)
        _ = try hear(0..<2, from: [behindNAT])
        let learnt = try hear(2..<50, from: [behindNAT, stranger])
        #expect(learnt.count >= 48 && learnt.allSatisfy { $0 == behindNAT })
        let received = call.report().received
        #expect(received.packets == 90 && received.lost == 0 && received.refused.otherAddress == 48)
    }

    @Test(arguments: SDP.MediaDirection.allCases) func `a direction opens and closes each way, apart from hold`(
        direction: SDP.MediaDirection
    ) async throws {
        let pair = try await CallPair(saying: Self.tone(6)) { _, called in called.source = Self.tone(6) }
        try pair.advance(500)
        let call = pair.caller
        var agreement = call.agreement
        agreement.direction = direction
        try await call.update(agreement)
        try pair.advance(300)
        let sent = call.report().sent.packets
        try pair.advance(1000)
        #expect(call.report().sent.packets - sent == (direction.sends ? 50 : 0))
        #expect((call.heardLevel.rms > Decibels(-30)) == direction.receives)
        #expect(!call.isOnHold)
        call.isOnHold = true
        try pair.advance(300)
        let held = call.report().sent.packets
        agreement.direction = .sendReceive
        try await call.update(agreement)
        try pair.advance(300)
        #expect(call.report().sent.packets == held, "held is held, whatever is agreed on")
        call.isOnHold = false
        try pair.advance(1000)
        #expect(call.report().sent.packets - held >= 49 && call.heardLevel.rms > Decibels(-30))
    }

    @Test func `what cannot be changed to leaves the call as it was`() async throws {
        let pair = try await CallPair(saying: Self.tone(3))
        try pair.advance(500)
        let before = pair.caller.agreement
        let error = await #expect(throws: EngineError.self) {
            try await pair.caller.update(Self.agreement(before, "SILK"))
        }
        guard case .codec = error else {
            Issue.record("expected a codec error, got \(String(describing: error))")
            return
        }
        #expect(pair.caller.agreement == before)
        try pair.advance(1000)
        #expect(pair.callee.report().received.lost == 0 && pair.callee.report().received.packets >= 74)
        try await pair.caller.end()
        let late = await #expect(throws: EngineError.self) { try await pair.caller.update(.nothing) }
        guard case .state(let failure) = late else {
            Issue.record("expected a state, got \(String(describing: late))")
            return
        }
        #expect(failure.code == .callEnded)
    }

    @Test func `a recording goes on over a change of codec`() async throws {
        let file = TemporaryFile()
        let pair = try await CallPair(saying: Self.tone(4))
        try pair.advance(500)
        try await pair.caller.startRecording(near: file.path, far: nil)
        try pair.advance(500)
        try await pair.caller.update(Self.agreement(pair.caller.agreement, AgreedCodec("opus", payloadType: 96)))
        try pair.advance(500)
        try await pair.caller.stopRecording()
        let (format, samples) = try WAVFile.read(file.path)
        #expect(format.sampleRate == 8000 && samples.count == 8000)
        let levels = Self.levels(samples, rate: 8000)
        #expect(levels.allSatisfy { (0.7...1.2).contains($0) }, "\(levels)")
    }
}
