import MediaEngine
import Testing

/// Calls and tones on cards that live in virtual time.
@Suite struct CallCardTests {
    private func engine(_ cards: [any SoundCard] = []) throws -> CallEngine { try CallEngine(.virtual()) }

    private func twoLegs(_ engine: CallEngine) throws -> [Call] {
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.remote = right.localAddress
        calling.stream.codec = "PCMU"
        calling.source = .samples([Int16](repeating: 8000, count: 8000 * 10), AudioFormat(sampleRate: 8000))
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.remote = left.localAddress
        called.stream.codec = "PCMU"
        return try engine.makeCalls([calling, called])
    }

    @Test func `a call plays on the call card and survives a change of card`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let (first, second) = (TemporaryFile(), TemporaryFile())
        let (one, other) = (FileCard(playbackPath: first.path), FileCard(playbackPath: second.path))
        try engine.setPlaybackCard(one)
        try engine.setCaptureDevice("null")
        let calls = try twoLegs(engine)
        try engine.advance(by: .seconds(1))
        try engine.setPlaybackCard(other)
        try engine.advance(by: .seconds(1))
        #expect(engine.playbackDevice == "file")
        #expect(calls[1].report().received.lost == 0)
        try calls[1].end()
        try one.finish()
        try other.finish()
        let (before, after) = (try WAVFile.read(first.path), try WAVFile.read(second.path))
        #expect(before.0.sampleRate == 48000 && after.0.sampleRate == 48000)
        #expect(abs(before.1.count - 48000) <= 480 && abs(after.1.count - 48000) <= 480)
        // The stream went on: on the second card there is sound from the first block on.
        #expect(after.1.dropFirst(960).allSatisfy { $0 > 6000 })
    }

    @Test func `a call is spoken into the capture card, also into another one later`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let (quiet, speaking) = (NullCard(), TemporaryFile())
        let format = AudioFormat(sampleRate: 48000)
        try WAVFile.write(speaking.path, format: format, samples: [Int16](repeating: 9000, count: 48000 * 5))
        try engine.setCaptureCard(quiet)
        try engine.setPlaybackDevice("null")
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.remote = right.localAddress
        calling.stream.codec = "L16"
        // A canceller takes a constant away, which is no sound.
        calling.stream.voiceProcessing.echoCancelling = .off
        let heard = CallCollector()
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.remote = left.localAddress
        called.stream.codec = "L16"
        called.source = .silence
        called.sink = .filter(heard.filter(try engine.registry.codec(named: "L16").description.format))
        _ = try engine.makeCalls([calling, called])
        try engine.advance(by: .seconds(1))
        #expect(heard.samples.allSatisfy { $0 == 0 })
        try engine.setCaptureCard(FileCard(capturePath: speaking.path))
        try engine.advance(by: .seconds(1))
        #expect(heard.samples.last ?? 0 > 8000)
    }

    @Test func `under an audio session nothing flows before it is activated`() throws {
        var configuration = CallEngineConfiguration.virtual()
        configuration.gatesAudioSession = true
        let engine = try CallEngine(configuration)
        defer { engine.shutDown() }
        try engine.setPlaybackDevice("null")
        try engine.setCaptureDevice("null")
        _ = try twoLegs(engine)
        try engine.advance(by: .seconds(1))
        #expect(engine.playbackStatistics?.frames == 0)
        engine.activateAudioSession(true)
        try engine.advance(by: .seconds(1))
        let frames = try #require(engine.playbackStatistics?.frames)
        #expect(frames > 40_000)
        engine.activateAudioSession(false)
        try engine.advance(by: .seconds(1))
        #expect(try #require(engine.playbackStatistics?.frames) <= frames + 960)
    }

    @Test func `a card that goes away and comes back does not end the call`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let card = FaultyCard([
            ScriptedFault(.unplug, at: .zero + .seconds(1)), ScriptedFault(.comeBack, at: .zero + .seconds(2)),
        ])
        try engine.setPlaybackCard(card)
        try engine.setCaptureDevice("null")
        let calls = try twoLegs(engine)
        try engine.advance(by: .seconds(4))
        let statistics = try #require(engine.playbackStatistics)
        #expect(statistics.disappearances == 1 && statistics.reopenings == 1)
        #expect(calls[1].report().received.lost == 0)
    }

    // MARK: Tones

    @Test func `a warm key sounds within a tick, every time`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        try engine.setRingerDevice("null")
        let stream = try engine.startDTMFStream()
        for (count, digit) in DTMFDigit.all.enumerated() {
            try engine.advance(by: .milliseconds(200))
            try engine.playDTMF(digit)
            try engine.advance(by: .milliseconds(200))
            #expect(stream.keyToSample.count == count + 1)
        }
        #expect(stream.keyToSample.allSatisfy { $0 >= .zero && $0 <= ToneStream.tickDuration })
    }

    @Test func `holders are counted and the last one closes the card`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        try engine.setRingerDevice("null")
        engine.stopDTMFStream()
        try engine.startDTMFStream()
        try engine.startDTMFStream()
        engine.stopDTMFStream()
        #expect(engine.openToneStream != nil && engine.dtmfStreamHolderCount == 1)
        engine.stopDTMFStream()
        #expect(engine.openToneStream == nil && engine.dtmfStreamHolderCount == 0)
    }

    @Test func `a warm stream stays warm for minutes and through a change of card`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let file = TemporaryFile()
        try engine.setRingerDevice("null")
        let stream = try engine.startDTMFStream()
        try engine.advance(by: .seconds(300))
        let card = FileCard(playbackPath: file.path)
        try engine.setRingerCard(card)
        let digit = try #require(DTMFDigit("5"))
        try engine.playDTMF(digit)
        try engine.advance(by: .seconds(1))
        #expect(stream.keyToSample.count == 1)
        #expect(engine.openToneStream === stream)
        engine.stopDTMFStream()
        try card.finish()
        #expect(try Self.digits(in: file.path) == "5")
    }

    @Test func `a held key sounds until it is released`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try engine.setRingerCard(card)
        try engine.startDTMFStream()
        try engine.playDTMF(try #require(DTMFDigit("*")), for: nil)
        try engine.advance(by: .milliseconds(700))
        engine.stopDTMF()
        try engine.advance(by: .milliseconds(300))
        engine.stopDTMFStream()
        try card.finish()
        let samples = try WAVFile.read(file.path).1
        let loud = samples.indices.filter { abs(Int(samples[$0])) > 500 }
        let length = Double((loud.last ?? 0) - (loud.first ?? 0)) / 48
        #expect(abs(length - 700) < 15)
    }

    @Test func `a ring plays on several cards at once, with its cadence`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let files = [TemporaryFile(), TemporaryFile()]
        let cards = files.map { FileCard(playbackPath: $0.path) }
        let stream = try engine.makeToneStream(on: cards)
        try stream.play(try CallProgressTones.spec("busy", country: "US"))
        try engine.advance(by: .seconds(2))
        stream.stopRinging()
        try engine.advance(by: .milliseconds(100))
        stream.stop()
        for card in cards { try card.finish() }
        let sounds = try files.map { try WAVFile.read($0.path).1 }
        #expect(sounds[0] == sounds[1])
        // Half a second on, half a second off (US busy), behind the card's silent prefill.
        let energy = stride(from: 0, to: 96000, by: 24000).map { start in
            sounds[0][(start + 4800)..<(start + 19200)].reduce(0.0) { $0 + Double($1) * Double($1) }
        }
        #expect(energy[0] > 1000 * (energy[1] + 1) && energy[2] > 1000 * (energy[3] + 1))
    }

    @Test func `during a call on the card a key is heard in the call`() throws {
        let engine = try engine()
        defer { engine.shutDown() }
        let file = TemporaryFile()
        let card = FileCard(playbackPath: file.path)
        try engine.setPlaybackCard(card)
        try engine.setCaptureDevice("null")
        let (left, right) = MemoryLink.pair()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.remote = right.localAddress
        let call = try engine.makeCall(calling)
        try engine.advance(by: .milliseconds(200))
        try engine.playDTMF(try #require(DTMFDigit("9")))
        try engine.advance(by: .seconds(1))
        #expect(engine.openToneStream == nil)
        try call.end()
        try card.finish()
        #expect(try Self.digits(in: file.path) == "9")
    }

    private static func digits(in path: String) throws -> String {
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
