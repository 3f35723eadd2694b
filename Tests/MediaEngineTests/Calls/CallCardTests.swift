@testable import MediaEngine
import MediaEngineTesting
import Testing

/// Calls and tones on cards that live in virtual time.
@Suite struct CallCardTests {
    private func engine(_ cards: [any SoundCard] = []) throws -> CallEngine { try CallEngine(.virtual()) }

    private func twoLegs(_ engine: CallEngine) async throws -> [Call] {
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = "PCMU"
        calling.source = .samples([Int16](repeating: 8000, count: 8000 * 10), AudioFormat(sampleRate: 8000))
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.remote = left.localAddress
        called.agreement.codec = "PCMU"
        return try await engine.makeCalls([calling, called])
    }

    @Test func `a call plays on the call card and survives a change of card`() async throws {
        let engine = try engine()
        let (first, second) = (TemporaryFile(), TemporaryFile())
        let (one, other) = (FileCard(playbackPath: first.path), FileCard(playbackPath: second.path))
        try await engine.setCard(one, .playback)
        try await engine.setCard(named: "null", .capture)
        let calls = try await twoLegs(engine)
        try engine.advance(by: .seconds(1))
        try await engine.setCard(other, .playback)
        try engine.advance(by: .seconds(1))
        #expect(engine.cardName(.playback) == "file")
        #expect(calls[1].report().received.lost == 0)
        try await calls[1].end()
        try one.finish()
        try other.finish()
        let (before, after) = (try WAVFile.read(first.path), try WAVFile.read(second.path))
        #expect(before.0.sampleRate == 48000 && after.0.sampleRate == 48000)
        #expect(abs(before.1.count - 48000) <= 480 && abs(after.1.count - 48000) <= 480)
        // The stream went on: on the second card there is sound from the first block on.
        #expect(after.1.dropFirst(960).allSatisfy { $0 > 6000 })
    }

    @Test func `a call is spoken into the capture card, also into another one later`() async throws {
        let engine = try engine()
        let (quiet, speaking) = (NullCard(), TemporaryFile())
        let format = AudioFormat(sampleRate: 48000)
        try WAVFile.write(speaking.path, format: format, samples: [Int16](repeating: 9000, count: 48000 * 5))
        try await engine.setCard(quiet, .capture)
        try await engine.setCard(named: "null", .playback)
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = "L16"
        // A canceller takes a constant away, which is no sound.
        calling.stream.voiceProcessing.echoCancelling = .off
        let heard = CallCollector()
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.remote = left.localAddress
        called.agreement.codec = "L16"
        called.source = .silence
        called.sink = .filter(heard.filter(try engine.registry.codec(named: "L16").description.format))
        _ = try await engine.makeCalls([calling, called])
        try engine.advance(by: .seconds(1))
        #expect(heard.samples.allSatisfy { $0 == 0 })
        try await engine.setCard(FileCard(capturePath: speaking.path), .capture)
        try engine.advance(by: .seconds(1))
        #expect(heard.samples.last ?? 0 > 8000)
    }

    @Test func `a card that goes away and comes back does not end the call`() async throws {
        let engine = try engine()
        let card = FaultyCard([
            ScriptedFault(.unplug, at: .zero + .seconds(1)), ScriptedFault(.comeBack, at: .zero + .seconds(2)),
        ])
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        let calls = try await twoLegs(engine)
        try engine.advance(by: .seconds(4))
        let statistics = try #require(engine.cardStatistics(.playback))
        #expect(statistics.disappearances == 1 && statistics.reopenings == 1)
        #expect(calls[1].report().received.lost == 0)
    }

    // MARK: Tones

    @Test func `a warm key sounds within a tick, every time`() async throws {
        let engine = try engine()
        try await engine.setRinger(named: "null")
        try await engine.startDTMFStream()
        let stream = try #require(engine.openToneStream)
        for (count, digit) in DTMFDigit.all.enumerated() {
            try engine.advance(by: .milliseconds(200))
            try await engine.playDTMF(digit)
            try engine.advance(by: .milliseconds(200))
            #expect(stream.keyToSample.count == count + 1)
        }
        #expect(stream.keyToSample.allSatisfy { $0 >= .zero && $0 <= ToneStream.tickDuration })
    }

    @Test func `holders are counted and the last one closes the card`() async throws {
        let engine = try engine()
        try await engine.setRinger(named: "null")
        await engine.stopDTMFStream()
        try await engine.startDTMFStream()
        try await engine.startDTMFStream()
        await engine.stopDTMFStream()
        #expect(engine.openToneStream != nil && engine.dtmfStreamHolderCount == 1)
        await engine.stopDTMFStream()
        #expect(engine.openToneStream == nil && engine.dtmfStreamHolderCount == 0)
    }

    @Test func `a warm stream stays warm for minutes and through a change of card`() async throws {
        let engine = try engine()
        let file = TemporaryFile()
        try await engine.setRinger(named: "null")
        try await engine.startDTMFStream()
        let stream = try #require(engine.openToneStream)
        try engine.advance(by: .seconds(300))
        let card = FileCard(playbackPath: file.path)
        try await engine.setRinger(card)
        let digit = try #require(DTMFDigit("5"))
        try await engine.playDTMF(digit)
        try engine.advance(by: .seconds(1))
        #expect(stream.keyToSample.count == 1)
        #expect(engine.openToneStream === stream)
        await engine.stopDTMFStream()
        try card.finish()
        #expect(try Self.digits(in: file.path) == "5")
    }

    @Test func `a held key sounds until it is released`() async throws {
        let engine = try engine()
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try await engine.setRinger(card)
        try await engine.startDTMFStream()
        try await engine.playDTMF(try #require(DTMFDigit("*")), for: nil)
        try engine.advance(by: .milliseconds(700))
        try engine.stopDTMF()
        try engine.advance(by: .milliseconds(300))
        await engine.stopDTMFStream()
        try card.finish()
        let samples = try WAVFile.read(file.path).1
        let loud = samples.indices.filter { abs(Int(samples[$0])) > 500 }
        let length = Double((loud.last ?? 0) - (loud.first ?? 0)) / 48
        #expect(abs(length - 700) < 15)
    }

    @Test func `a ring plays on several cards at once, with its cadence`() async throws {
        let engine = try engine()
        let files = [TemporaryFile(), TemporaryFile()]
        let cards = files.map { FileCard(playbackPath: $0.path) }
        let stream = try await engine.makeToneStream(on: cards)
        try stream.play(try #require(try CallProgressTones.of(country: "US")[.busy]))
        try engine.advance(by: .seconds(2))
        try await stream.stopRinging()
        try engine.advance(by: .milliseconds(100))
        await stream.stop()
        for card in cards { try card.finish() }
        let sounds = try files.map { try WAVFile.read($0.path).1 }
        #expect(sounds[0] == sounds[1])
        // Half a second on, half a second off (US busy), behind the card's silent prefill.
        let energy = stride(from: 0, to: 96000, by: 24000).map { start in
            sounds[0][(start + 4800)..<(start + 19200)].reduce(0.0) { $0 + Double($1) * Double($1) }
        }
        #expect(energy[0] > 1000 * (energy[1] + 1) && energy[2] > 1000 * (energy[3] + 1))
    }

    @Test func `a ring that takes another's place goes on`() async throws {
        let engine = try engine()
        try await engine.setRinger(named: "null")
        try await engine.startDTMFStream()
        let stream = try #require(engine.openToneStream)
        let ring = try #require(try CallProgressTones.of(country: "US")[.ringback])
        try stream.play(ring)
        try engine.advance(by: .milliseconds(100))
        try stream.play(ring)
        // The end of the first one is told now.
        try engine.advance(by: .milliseconds(200))
        #expect(!stream.isQuiet)
        try await stream.stopRinging()
        try engine.advance(by: .milliseconds(100))
        #expect(stream.isQuiet)
        await engine.stopDTMFStream()
    }

    @Test func `a key that is held when its call ends is not heard in the next one`() async throws {
        let engine = try engine()
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        for key in [DTMFDigit("5"), nil] {
            let (left, right) = MemoryLink.pair()
            var calling = CallConfiguration(network: .link(left, local: left.localAddress))
            calling.agreement.remote = right.localAddress
            let call = try await engine.makeCall(calling)
            try engine.advance(by: .milliseconds(100))
            if let key { try await engine.playDTMF(key, for: nil) }
            try engine.advance(by: .milliseconds(500))
            try await call.end()
            try card.finish()
            let isLoud = try WAVFile.read(file.path).1.contains { abs(Int($0)) > 500 }
            #expect(isLoud == (key != nil))
        }
    }

    @Test func `nothing to do is done`() async throws {
        let engine = try engine()
        #expect(try await engine.makeCalls([]).isEmpty)
        let call = try await twoLegs(engine)[0]
        try call.sendDTMF("")
        try call.sendInBandDTMF("")
        #expect(engine.calls.count == 2)
    }

    @Test func `during a call on the card a key is heard in the call`() async throws {
        let engine = try engine()
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        let call = try await engine.makeCall(calling)
        try engine.advance(by: .milliseconds(200))
        try await engine.playDTMF(try #require(DTMFDigit("9")))
        try engine.advance(by: .seconds(1))
        #expect(engine.openToneStream == nil)
        try await call.end()
        try card.finish()
        #expect(try Self.digits(in: file.path) == "9")
    }

    @Test func `a key that is held during a call sounds until it is released, and its time is measured`() async throws {
        let engine = try engine()
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try await engine.setCard(card, .playback)
        try await engine.setCard(named: "null", .capture)
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        let call = try await engine.makeCall(calling)
        try engine.advance(by: .milliseconds(200))
        try await engine.playDTMF(try #require(DTMFDigit("*")), for: nil)
        try engine.advance(by: .milliseconds(700))
        try engine.stopDTMF()
        try engine.advance(by: .milliseconds(300))
        #expect(engine.openToneStream == nil)
        #expect(
            engine.keyToSample.count == 1 && engine.keyToSample.allSatisfy { $0 >= .zero && $0 <= .milliseconds(10) }
        )
        try await call.end()
        try card.finish()
        let samples = try WAVFile.read(file.path).1
        let loud = samples.indices.filter { abs(Int(samples[$0])) > 500 }
        let length = Double((loud.last ?? 0) - (loud.first ?? 0)) / 48
        #expect(abs(length - 700) < 15)
    }

    @Test func `more keys than fit are refused, wherever they would sound`() async throws {
        let engine = try engine()
        try await engine.setRinger(named: "null")
        try await engine.setCard(named: "null", .playback)
        try await engine.setCard(named: "null", .capture)
        func fill() async throws {
            for count in 0..<1000 {
                do throws(EngineError) {
                    try await engine.playDTMF(DTMFDigit.all[0])
                } catch {
                    guard case .state(let failure) = error, failure.code == .queueFull else { throw error }
                    #expect(count > 10)
                    return
                }
            }
            Issue.record("1000 keys were taken")
        }
        try await fill()
        _ = try await twoLegs(engine)
        try await fill()
    }

    static func digits(in path: String) throws -> String {
        let (format, samples) = try WAVFile.read(path)
        let detector = try DTMFDetector(sampleRate: format.sampleRate)
        detector.process(samples.span, channelCount: format.channelCount)
        detector.finish()
        var digits = ""
        while let detection = detector.nextDetection() {
            if case .ended = detection.phase { digits.append(detection.digit.character) }
        }
        return digits
    }
}
