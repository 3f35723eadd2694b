import MediaEngine
import Testing

/// What an application does with a running call, in virtual time.
@Suite struct CallControlTests {
    /// Two legs over a perfect network; B collects what it hears.
    private final class Pair {
        let engine: CallEngine
        let caller: Call
        let callee: Call
        let heard = CallCollector()

        init(
            seconds: Double = 4,
            codec: String = "PCMU",
            configure: (inout CallConfiguration) -> Void = { _ in },
            configureCalled: (inout CallConfiguration) -> Void = { _ in }
        ) async throws {
            engine = try CallEngine(.virtual())
            let (left, right) = MemoryLink.pair()
            let format = try engine.registry.codec(named: codec).description.format
            var calling = CallConfiguration(network: .link(left, local: left.localAddress))
            calling.name = "A"
            calling.agreement.remote = right.localAddress
            calling.agreement.codec = AgreedCodec(codec)
            calling.source = .samples([Int16](repeating: 8000, count: Int(seconds * Double(format.sampleRate))), format)
            calling.sink = .none
            configure(&calling)
            var called = CallConfiguration(network: .link(right, local: right.localAddress))
            called.name = "B"
            called.agreement.remote = left.localAddress
            called.agreement.codec = AgreedCodec(codec)
            called.source = .silence
            called.sink = .filter(heard.filter(format))
            configureCalled(&called)
            let calls = try await engine.makeCalls([calling, called])
            (caller, callee) = (calls[0], calls[1])
        }

        func advance(_ milliseconds: Int64) throws { try engine.advance(by: .milliseconds(milliseconds)) }
    }

    @Test func `mute sends silence and unmute brings the sound back`() async throws {
        let pair = try await Pair()
        try pair.advance(1000)
        #expect(pair.heard.samples.last ?? 0 > 7000)
        pair.caller.isMuted = true
        try pair.advance(500)
        #expect(abs(Int(pair.heard.samples.last ?? 1)) <= 8)
        #expect(pair.caller.sentLevel.rms < Decibels(-25))
        pair.caller.isMuted = false
        try pair.advance(500)
        #expect(pair.heard.samples.last ?? 0 > 7000)
        #expect(pair.callee.report().received.lost == 0)
    }

    @Test func `hold sends no audio, and what follows is neither lost nor late`() async throws {
        let pair = try await Pair()
        try pair.advance(1000)
        let before = pair.caller.report().sent.packets
        pair.caller.isOnHold = true
        try pair.advance(1500)
        #expect(pair.caller.report().sent.packets <= before + 1)
        pair.caller.isOnHold = false
        try pair.advance(1000)
        let report = pair.callee.report()
        #expect(report.received.lost == 0 && report.received.late == 0)
        #expect(pair.heard.samples.last ?? 0 > 7000)
    }

    @Test func `a call that begins muted sends silence until it is unmuted`() async throws {
        let pair = try await Pair(configure: { $0.isMuted = true })
        #expect(pair.caller.isMuted && !pair.caller.isOnHold && !pair.callee.isMuted)
        try pair.advance(1000)
        #expect(pair.caller.report().sent.packets >= 49)
        #expect(!pair.heard.samples.isEmpty && pair.heard.samples.allSatisfy { abs(Int($0)) <= 8 })
        pair.caller.isMuted = false
        try pair.advance(500)
        #expect(pair.heard.samples.last ?? 0 > 7000)
        #expect(pair.callee.report().received.lost == 0)
    }

    @Test func `a call that begins on hold sends and hears nothing until it is resumed`() async throws {
        let constant = [Int16](repeating: 8000, count: 8000 * 4)
        let pair = try await Pair(
            configure: { $0.isOnHold = true },
            configureCalled: { $0.source = .samples(constant, AudioFormat(sampleRate: 8000)) }
        )
        #expect(pair.caller.isOnHold && !pair.caller.isMuted && !pair.callee.isOnHold)
        try pair.advance(1000)
        #expect(pair.caller.report().sent.packets == 0 && pair.callee.report().received.packets == 0)
        #expect(pair.caller.report().received.packets >= 48 && pair.caller.heardLevel.rms < Decibels(-25))
        pair.caller.isOnHold = false
        try pair.advance(1000)
        #expect(pair.heard.samples.last ?? 0 > 7000 && pair.caller.heardLevel.rms > Decibels(-25))
        let report = pair.callee.report().received
        #expect(report.packets >= 48 && report.lost == 0 && report.late == 0)
    }

    @Test func `volume and gain change what is heard, by decibels, and can be read`() async throws {
        let pair = try await Pair()
        #expect(pair.caller.sendGain == Decibels(0) && pair.callee.volume == Decibels(0))
        try pair.advance(1000)
        pair.callee.volume = Decibels(-20)
        #expect(pair.callee.volume == Decibels(-20) && pair.callee.sendGain == Decibels(0))
        try pair.advance(500)
        let sample = try #require(pair.heard.samples.last)
        #expect(abs(Int(sample) - 800) < 30)
        pair.caller.sendGain = Decibels(-6)
        pair.callee.volume = Decibels(0)
        #expect(pair.caller.sendGain == Decibels(-6) && pair.caller.volume == Decibels(0))
        try pair.advance(500)
        #expect(abs(Int(try #require(pair.heard.samples.last)) - 4010) < 150)
        // A mute takes nothing away of the gain.
        pair.caller.isMuted = true
        #expect(pair.caller.sendGain == Decibels(-6))
    }

    @Test func `a held key is down until it is released`() async throws {
        let pair = try await Pair()
        try pair.advance(200)
        let digit = try #require(DTMFDigit("7"))
        try pair.caller.pressKey(digit)
        try pair.advance(600)
        #expect(pair.callee.receivedKeys == "7")
        try pair.caller.releaseKey()
        try pair.advance(400)
        try await pair.callee.end()
        let events = await allEvents(pair.callee)
        #expect(events.filter { $0 == .keyDown(digit) }.count == 1)
        let held = events.compactMap { event -> Duration? in
            if case .keyUp(digit, let duration) = event { duration } else { nil }
        }
        #expect(held.count == 1)
        #expect(abs((held.first ?? .zero).milliseconds - 600) <= 40)
    }

    @Test func `a key is held, and the next one waits, for as long as was asked for`() async throws {
        let pair = try await Pair()
        try pair.advance(200)
        try pair.caller.sendDTMF("12", duration: .milliseconds(250), gap: .milliseconds(400))
        try pair.advance(600)
        #expect(pair.callee.receivedKeys == "1")
        try pair.advance(600)
        #expect(pair.callee.receivedKeys == "12")
        try await pair.callee.end()
        let held = await allEvents(pair.callee).compactMap { event -> Duration? in
            if case .keyUp(_, let duration) = event { duration } else { nil }
        }
        #expect(held == [.milliseconds(250), .milliseconds(250)])
    }

    @Test func `wrong keys and too many are refused with a reason`() async throws {
        let pair = try await Pair()
        #expect(throws: EngineError.self) { try pair.caller.sendDTMF("12x") }
        #expect(throws: EngineError.self) { try pair.caller.sendDTMF(String(repeating: "1", count: 65)) }
        let silent = try await Pair { $0.agreement.telephoneEvents = nil }
        let error = #expect(throws: EngineError.self) { try silent.caller.sendDTMF("1") }
        #expect("\(error.map { "\($0)" } ?? "")".contains("telephone events"))
        let waiting = try await Pair { $0.agreement = .nothing }
        #expect(throws: EngineError.self) { try waiting.caller.sendDTMF("1") }
    }

    @Test func `in-band keys are heard by the detector at the other end`() async throws {
        let pair = try await Pair(seconds: 0)
        try pair.advance(200)
        try pair.caller.sendInBandDTMF("159#")
        try pair.advance(2000)
        let detector = try DTMFDetector(sampleRate: 8000)
        detector.process(pair.heard.samples.span)
        detector.finish()
        var digits = ""
        while let detection = detector.nextDetection() {
            if case .ended = detection.phase { digits.append(detection.digit.character) }
        }
        #expect(digits == "159#")
    }

    @Test(arguments: ["PCMU", "opus"]) func `tones in the audio are told as keys where the call listens for them`(
        codec: String
    ) async throws {
        let pair = try await Pair(seconds: 0, codec: codec, configureCalled: { $0.stream.detectsInBandDTMF = true })
        try pair.advance(200)
        try pair.caller.sendInBandDTMF("15")
        try pair.advance(1000)
        #expect(pair.callee.receivedKeys == "15")
        #expect(pair.caller.receivedKeys == "")
        try await pair.callee.end()
        let events = await allEvents(pair.callee)
        let keys = try ["1", "5"].map { try #require(DTMFDigit($0)) }
        #expect(keys.allSatisfy { key in events.filter { $0 == .keyDown(key) }.count == 1 })
        let lengths = events.compactMap { event -> Double? in
            if case .keyUp(_, let duration) = event { duration.milliseconds } else { nil }
        }
        #expect(lengths.count == 2 && lengths.allSatisfy { abs($0 - 100) <= 10 }, "\(lengths)")
    }

    @Test func `a key that comes as an event and as tones is told once`() async throws {
        let pair = try await Pair(seconds: 0, configureCalled: { $0.stream.detectsInBandDTMF = true })
        try pair.advance(200)
        try pair.caller.sendDTMF("7", duration: .milliseconds(60), gap: .zero)
        try pair.advance(120)
        try pair.caller.sendInBandDTMF("7")
        try pair.advance(1000)
        #expect(pair.callee.receivedKeys == "7")
    }

    @Test func `a call that does not listen for tones hears none`() async throws {
        let pair = try await Pair(seconds: 0)
        try pair.advance(200)
        try pair.caller.sendInBandDTMF("15")
        try pair.advance(1000)
        #expect(pair.callee.receivedKeys == "")
    }

    @Test func `each side is recorded in a file of its own`() async throws {
        let (near, far) = (TemporaryFile(), TemporaryFile())
        let pair = try await Pair()
        try pair.advance(500)
        try await pair.callee.startRecording(near: near.path, far: far.path)
        await #expect(throws: EngineError.self) { try await pair.callee.startRecording(near: nil, far: nil) }
        try pair.advance(1000)
        try await pair.callee.stopRecording()
        try pair.advance(100)
        let sent = try WAVFile.read(near.path).1
        let received = try WAVFile.read(far.path).1
        #expect(sent.count == 8000 && received.count == 8000)
        #expect(sent.allSatisfy { $0 == 0 })
        #expect(received.allSatisfy { $0 > 7000 })
    }

    @Test func `ending a call says goodbye, completes files and leaves the other leg running`() async throws {
        let capture = TemporaryFile()
        let pair = try await Pair { $0.capturePath = capture.path }
        try pair.advance(1000)
        try await pair.caller.end()
        try await pair.caller.end()
        try pair.advance(100)
        #expect(pair.engine.calls.count == 1)
        var packets = 0
        for _ in try PcapReader(path: capture.path) { packets += 1 }
        // 50 of audio each way, one or two reports each way, and the goodbye.
        #expect(packets >= 100 && packets <= 106)
        try await pair.callee.end()
        #expect(await allEvents(pair.callee).contains(.goodbye))
    }

    @Test func `what a call sent is one number in its report, its sender reports and its capture`() async throws {
        let capture = TemporaryFile()
        let pair = try await Pair { $0.capturePath = capture.path }
        try pair.advance(12_000)
        try await pair.caller.end()
        var counts: [UInt32: Int] = [:]
        var reportCount = 0
        var last = Int64.min
        for datagram in try PcapReader(path: capture.path) {
            #expect(datagram.unixNanoseconds >= last, "a capture is in the order of time")
            last = datagram.unixNanoseconds
            let bytes = datagram.payload.span
            if DatagramKind(of: bytes) == .rtp {
                counts[bytes.uint32(at: 8), default: 0] += 1
            } else if bytes[1] == 200 {
                // RFC 3550, section 6.4.1: the source, and further on its packets so far.
                #expect(Int(bytes.uint32(at: 20)) == counts[bytes.uint32(at: 4)] ?? 0)
                reportCount += 1
            }
        }
        #expect(reportCount >= 4 && counts.count == 2)
        let (sent, received) = (pair.caller.report().sent.packets, pair.caller.report().received.packets)
        #expect(598...600 ~= sent && counts.values.contains(sent) && counts.values.contains(received))
    }

    @Test func `the level that is reported is that of the speech, not of the last instant`() async throws {
        let format = AudioFormat(sampleRate: 8000)
        let sound = [Int16](repeating: 0, count: 4000) + [Int16](repeating: 8000, count: 16_000)
        let pair = try await Pair { $0.source = .samples(sound, format) }
        try pair.advance(5000)
        #expect(pair.caller.sentLevel.rms < Decibels(-60) && pair.callee.heardLevel.rms < Decibels(-60))
        // 8000 of 32768, which is -12.2 dB, as the mean square of a sine: 3 dB more.
        #expect(abs(pair.caller.report().sentLevel + 9.2) < 2)
        #expect(abs(pair.callee.report().heardLevel + 9.2) < 2)
        #expect(pair.callee.report().sentLevel < -60)
    }

    @Test func `a graph of the call can be drawn`() async throws {
        let pair = try await Pair()
        try pair.advance(500)
        let text = try pair.engine.drawing(asDOT: false)
        for part in ["encoder", "RTP send", "RTP receive", "playout", "gain", "meter", "tones"] {
            #expect(text.contains(part))
        }
        #expect(try pair.engine.drawing(asDOT: true).contains("->"))
    }

    @Test func `an unknown codec is an error with a remedy`() async throws {
        let engine = try CallEngine(.virtual())
        let (link, _) = MemoryLink.pair()
        var configuration = CallConfiguration(network: .link(link, local: link.localAddress))
        configuration.agreement.codec = "SILK"
        let error = await #expect(throws: EngineError.self) { try await engine.makeCall(configuration) }
        guard case .codec(let codecError) = error else {
            Issue.record("expected a codec error, got \(String(describing: error))")
            return
        }
        #expect(codecError.code == .unknownCodec)
    }
}

/// Every event of a call that has ended.
func allEvents(_ call: Call) async -> [CallEvent] {
    var events: [CallEvent] = []
    for await event in call.events { events.append(event) }
    return events
}

/// What an engine that has been shut down told of its cards.
func cardEvents(_ engine: CallEngine) async -> [CardRouteEvent] {
    var events: [CardRouteEvent] = []
    for await case .card(let event) in engine.events { events.append(event) }
    return events
}
