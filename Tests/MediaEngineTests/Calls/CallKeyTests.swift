@testable import MediaEngine
import MediaEngineTesting
import Testing

/// Keys that are pressed during a call whose card is closed, in virtual time.
@Suite struct CallKeyTests {
    /// A call on the call card of an engine.
    private struct Fixture {
        let engine: CallEngine
        let call: Call

        init(_ card: any SoundCard, ringer: any SoundCard) async throws {
            engine = try CallEngine(.virtual())
            try await engine.setCard(card, .playback)
            try await engine.setCard(named: "null", .capture)
            try await engine.setRinger(ringer)
            let (left, right) = MemoryLink.pair()
            var calling = CallConfiguration(network: .link(left, local: left.localAddress))
            calling.agreement.remote = right.localAddress
            call = try await engine.makeCall(calling)
        }

        func press(_ key: Character, for duration: Duration? = .milliseconds(100)) async throws {
            try await engine.playDTMF(try #require(DTMFDigit(key)), for: duration)
        }

        func advance(_ milliseconds: Int64) throws { try engine.advance(by: .milliseconds(milliseconds)) }
    }

    @Test func `while the call card is kept closed, keys are heard on the ringer`() async throws {
        let (heard, rung) = (TemporaryFile(), TemporaryFile())
        let (card, ringer) = (FileCard(playbackPath: heard.path), FileCard(playbackPath: rung.path))
        let fixture = try await Fixture(card, ringer: ringer)
        fixture.engine.setCallCardAllowed(false)
        try fixture.advance(100)
        try await fixture.press("7")
        try fixture.advance(500)
        #expect(fixture.engine.keyToSample.count == 1)
        fixture.engine.setCallCardAllowed(true)
        try fixture.advance(100)
        try await fixture.press("8")
        try fixture.advance(500)
        #expect(fixture.engine.keyToSample.count == 2)
        await fixture.engine.shutDown()
        try card.finish()
        try ringer.finish()
        #expect(try CallCardTests.digits(in: heard.path) == "8")
        #expect(try CallCardTests.digits(in: rung.path) == "7")
    }

    @Test(arguments: [
        ScriptedFault(.occupy, at: .zero), ScriptedFault(.unplug, at: .zero + .seconds(1)),
    ])
    func `while the call card is busy or away, keys are heard on the ringer`(fault: ScriptedFault) async throws {
        let rung = TemporaryFile()
        let ringer = FileCard(playbackPath: rung.path)
        let fixture = try await Fixture(FaultyCard([fault]), ringer: ringer)
        try fixture.advance(2000)
        try await fixture.press("3")
        try fixture.advance(500)
        #expect(fixture.engine.keyToSample.count == 1)
        await fixture.engine.shutDown()
        try ringer.finish()
        #expect(try CallCardTests.digits(in: rung.path) == "3")
    }

    @Test func `a key that is held on the ringer is released though the call card is open again`() async throws {
        let fixture = try await Fixture(NullCard(), ringer: NullCard(name: "ringer"))
        fixture.engine.setCallCardAllowed(false)
        try await fixture.press("*", for: nil)
        try fixture.advance(500)
        let stream = try #require(fixture.engine.openToneStream)
        fixture.engine.setCallCardAllowed(true)
        try fixture.advance(500)
        #expect(stream.isDialling)
        try fixture.engine.stopDTMF()
        try fixture.advance(500)
        #expect(!stream.isDialling)
    }

    @Test func `a key that no card gets has no time`() async throws {
        let busy = FaultyCard([ScriptedFault(.occupy, at: .zero), ScriptedFault(.setFree, at: .zero + .seconds(2))])
        let fixture = try await Fixture(NullCard(), ringer: busy)
        fixture.engine.setCallCardAllowed(false)
        try await fixture.press("1")
        try fixture.advance(1000)
        #expect(fixture.engine.keyToSample.isEmpty)
        // It is over, not put off: the ringer, which is tried each 2 s at least, does not play it.
        try fixture.advance(4000)
        #expect(fixture.engine.keyToSample.isEmpty)
        try await fixture.press("2")
        try fixture.advance(500)
        #expect(fixture.engine.keyToSample.count == 1)
    }

    @Test func `of keys that wait, those whose turn comes when the call card is closed have no time`() async throws {
        let fixture = try await Fixture(NullCard(), ringer: NullCard(name: "ringer"))
        try fixture.advance(100)
        for key in "123" { try await fixture.press(key) }
        try fixture.advance(50)
        fixture.engine.setCallCardAllowed(false)
        try fixture.advance(1000)
        #expect(fixture.engine.keyToSample.count == 1)
        fixture.engine.setCallCardAllowed(true)
        try fixture.advance(100)
        try await fixture.press("4")
        try fixture.advance(500)
        #expect(fixture.engine.keyToSample.count == 2 && fixture.engine.openToneStream == nil)
    }
}
