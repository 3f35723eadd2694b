import MediaEngineTesting
import TestSupport
import Testing

@testable import MediaEngine

/// Calls that hear each other, told apart by constants, which PCMU keeps.
@Suite struct ConferenceTests {
    private static let format = AudioFormat(sampleRate: 8000)
    /// What this side says into the call card.
    private static let own: Int16 = 8000

    private static func constant(_ value: Int16) -> CallSource {
        .samples([Int16](repeating: value, count: 8000 * 30), format)
    }

    /// One who is called: what he says, and what he hears.
    private struct Guest {
        let call: Call
        let far: Call
        let heard: CallCollector
        let said: Int16

        /// What he hears now, from one constant to another within a tenth.
        var hears: ClosedRange<Int16> {
            let samples = heard.samples.suffix(400)
            return (samples.min() ?? 0)...(samples.max() ?? 0)
        }
    }

    /// Calls on the call card of an engine, which hears a constant, or without a card.
    private struct Party {
        let engine: CallEngine
        let usesCard: Bool
        let spoken = TemporaryFile()
        let played = TemporaryFile()
        let card: FileCard
        private(set) var guests: [Guest] = []

        init(_ values: [Int16], usesCard: Bool = true, codec: AgreedCodec = "PCMU") async throws {
            self.usesCard = usesCard
            engine = try CallEngine(.virtual())
            let samples = [Int16](repeating: ConferenceTests.own, count: 48_000 * 30)
            try WAVFile.write(spoken.path, format: CallEngine.cardFormat, samples: samples)
            card = FileCard(playbackPath: played.path)
            try await engine.setCard(FileCard(capturePath: spoken.path), .capture)
            try await engine.setCard(card, .playback)
            for value in values { try await invite(value, codec: codec) }
        }

        @discardableResult mutating func invite(_ value: Int16, codec: AgreedCodec = "PCMU") async throws -> Guest {
            let usesCard = usesCard
            let pair = try await CallPair(saying: ConferenceTests.constant(value), codec: codec, engine: engine) {
                calling,
                called in
                let heard = called.sink
                (called.source, called.sink) = usesCard ? (.callCard, .callCard) : (.silence, .none)
                called.stream.voiceProcessing.echoCancelling = .off
                calling.sink = heard
            }
            let guest = Guest(call: pair.callee, far: pair.caller, heard: pair.heard, said: value)
            guests.append(guest)
            return guest
        }

        func advance(_ milliseconds: Int64 = 600) throws { try engine.advance(by: .milliseconds(milliseconds)) }

        /// Whether each guest hears about that.
        func hear(_ values: Int..., sourceLocation: SourceLocation = #_sourceLocation) {
            for (guest, value) in zip(guests, values) {
                let slack = max(abs(value) / 20, 20)
                #expect(
                    guest.hears.lowerBound >= value - slack && guest.hears.upperBound <= value + slack,
                    "\(guest.said) hears \(guest.hears), not \(value)",
                    sourceLocation: sourceLocation
                )
            }
        }
    }

    @Test func `each hears all the others and this side, and not itself`() async throws {
        let party = try await Party([1000, 2000, 4000])
        let conference = party.engine.makeConference()
        try party.advance()
        party.hear(8000, 8000, 8000)
        for guest in party.guests { try await conference.add(guest.call) }
        #expect(conference.calls.map(\.localAddress) == party.guests.map(\.call.localAddress))
        try party.advance()
        party.hear(14_000, 13_000, 11_000)
        try await conference.end()
        #expect(conference.calls.isEmpty)
        try party.advance()
        party.hear(8000, 8000, 8000)
        await party.engine.shutDown()
        try party.card.finish()
        // This side has heard all three all the time.
        let played = try WAVFile.read(party.played.path).1.dropFirst(24_000).dropLast(4800)
        #expect(played.allSatisfy { (6700...7300).contains($0) })
    }

    @Test func `calls without a card hear each other, too, and go on alone`() async throws {
        let party = try await Party([1000, 2000, 4000], usesCard: false)
        let conference = party.engine.makeConference()
        for guest in party.guests { try await conference.add(guest.call) }
        try party.advance()
        party.hear(6000, 5000, 3000)
        try await conference.remove(party.guests[1].call)
        try await conference.remove(party.guests[1].call)
        try party.advance()
        party.hear(4000, 0, 1000)
        try await conference.add(party.guests[1].call)
        // Whose other side, or this one, hangs up is out of it.
        try await party.guests[0].call.end()
        #expect(conference.calls.count == 2 && party.guests[0].call.conference == nil)
        try party.advance()
        #expect(party.guests[1].hears.lowerBound > 3800 && party.guests[2].hears.upperBound < 2100)
        await party.engine.shutDown()
        #expect(conference.calls.isEmpty)
    }

    @Test func `nothing runs when the last has left`() async throws {
        let party = try await Party([1000, 2000])
        let conference = party.engine.makeConference()
        for guest in party.guests { try await conference.add(guest.call) }
        try party.advance()
        #expect(try party.engine.drawing(asDOT: false).contains("others"))
        for guest in party.guests {
            try await guest.call.end()
            try await guest.far.end()
        }
        #expect(party.engine.core.loop.isIdle)
        // It can be used again.
        let other = try await Party([1000])
        await #expect(throws: EngineError.self) { try await conference.add(other.guests[0].call) }
    }

    @Test func `this side leaves and comes back, and the others go on`() async throws {
        let party = try await Party([1000, 2000, 4000])
        let conference = party.engine.makeConference()
        for guest in party.guests.prefix(2) { try await conference.add(guest.call) }
        conference.isPresent = false
        try await conference.add(party.guests[2].call)
        try party.advance()
        party.hear(6000, 5000, 3000)
        #expect(party.guests.allSatisfy { !$0.call.isMuted && !$0.call.isOnHold })
        // Who is out of it talks with this side.
        try await conference.remove(party.guests[2].call)
        try party.advance()
        party.hear(2000, 1000, 8000)
        conference.isPresent = true
        try party.advance()
        party.hear(10_000, 9000, 8000)
        await party.engine.shutDown()
        try party.card.finish()
        let played = try WAVFile.read(party.played.path).1
        // In the middle of the first 0.6 s nobody is heard here, in the next one who is out of it.
        #expect(played[14_400..<24_000].allSatisfy { abs(Int($0)) < 40 })
        #expect(played[43_200..<52_800].allSatisfy { (3800...4200).contains($0) })
    }

    @Test func `who is held is out of it both ways, who is muted hears the others`() async throws {
        let party = try await Party([1000, 2000, 4000])
        let conference = party.engine.makeConference()
        for guest in party.guests { try await conference.add(guest.call) }
        party.guests[0].call.isMuted = true
        try party.advance()
        party.hear(6000, 13_000, 11_000)
        party.guests[2].call.isOnHold = true
        try party.advance()
        party.hear(2000, 9000)
        party.guests[2].call.isOnHold = false
        party.guests[0].call.isMuted = false
        try party.advance()
        party.hear(14_000, 13_000, 11_000)
        // How loud one is holds for all.
        party.guests[2].call.volume = Decibels(-100)
        try party.advance()
        party.hear(10_000, 9000, 11_000)
    }

    @Test func `who is held hears his own sound, and not the conference`() async throws {
        let party = try await Party([1000, 2000], usesCard: false)
        let pair = try await CallPair(saying: Self.constant(4000), engine: party.engine) { calling, called in
            calling.sink = called.sink
            called.sink = .none
            called.heldSound = .filter(ConstantSource(format: Self.format, value: 500))
        }
        let conference = party.engine.makeConference()
        for call in party.guests.map(\.call) + [pair.callee] { try await conference.add(call) }
        pair.callee.isOnHold = true
        try party.advance()
        party.hear(2000, 1000)
        #expect(pair.heard.samples.suffix(400).allSatisfy { (450...550).contains($0) })
    }

    @Test func `all that is said is in one file, this side once, while calls come and go`() async throws {
        let file = TemporaryFile()
        let party = try await Party([1000, 2000, 4000])
        let conference = party.engine.makeConference()
        for guest in party.guests { try await conference.add(guest.call) }
        try party.advance()
        try await conference.startRecording(to: file.path)
        await #expect(throws: EngineError.self) { try await conference.startRecording(to: file.path) }
        try party.advance(500)
        // The one whose microphone was recorded.
        try await party.guests[0].call.end()
        try party.advance(500)
        for guest in party.guests.dropFirst() { try await conference.remove(guest.call) }
        try party.advance(500)
        try await conference.stopRecording()
        try party.advance()
        let (format, samples) = try WAVFile.read(file.path)
        #expect(format == AudioFormat(sampleRate: 48_000))
        #expect(abs(samples.count - 72_000) <= 960)
        #expect(samples[2400..<22_000].allSatisfy { (14_300...15_700).contains($0) })
        #expect(samples[28_000..<46_000].allSatisfy { (13_300...14_700).contains($0) })
        #expect(samples[52_000...].allSatisfy { $0 == 0 })
    }

    @Test func `the file is whole when the engine is shut down`() async throws {
        let file = TemporaryFile()
        let party = try await Party([1000, 2000])
        let conference = party.engine.makeConference()
        for guest in party.guests { try await conference.add(guest.call) }
        try await conference.startRecording(to: file.path)
        try party.advance(1000)
        await party.engine.shutDown()
        #expect(try WAVFile.read(file.path).1.count >= 48_000)
        await #expect(throws: EngineError.self) { try await conference.startRecording(to: file.path) }
    }

    @Test func `who joins or leaves is not heard by the others, to the sample`() async throws {
        func heard(_ visits: Bool) async throws -> [Int16] {
            var party = try await Party([1000, 2000])
            let conference = party.engine.makeConference()
            for guest in party.guests { try await conference.add(guest.call) }
            for round in 0..<10 {
                try party.advance(100)
                guard visits, round % 3 == 0 else { continue }
                let visitor = try await party.invite(0, codec: round % 2 == 0 ? "PCMU" : "G722")
                visitor.far.isOnHold = true
                try await conference.add(visitor.call)
                try party.advance(100)
                if round % 2 == 0 { try await conference.remove(visitor.call) }
                try await visitor.call.end()
            }
            return Array(party.guests[0].heard.samples.prefix(8000))
        }
        let alone = try await heard(false)
        #expect(alone.count == 8000)
        #expect(try await heard(true) == alone)
    }

    @Test(arguments: [true, false]) func `a codec can change in it, and recordings go on`(usesCard: Bool) async throws {
        let file = TemporaryFile()
        let party = try await Party([1000, 2000, 4000], usesCard: usesCard)
        let conference = party.engine.makeConference()
        try party.advance(100)
        try await party.guests[1].call.startRecording(stereo: file.path)
        for guest in party.guests { try await conference.add(guest.call) }
        try party.advance(500)
        for call in [party.guests[1].call, party.guests[1].far] {
            var agreement = call.agreement
            agreement.codec = AgreedCodec("L16", payloadType: 97)
            try await call.update(agreement)
        }
        try party.advance()
        let own = usesCard ? 8000 : 0
        party.hear(own + 6000)
        #expect(abs(Int(party.guests[1].hears.upperBound) - own - 5000) < 500)
        #expect(abs(Int(party.guests[2].hears.upperBound) - own - 3000) < 500)
        try await conference.end()
        try party.advance()
        try await party.guests[1].call.stopRecording()
        let (format, samples) = try WAVFile.read(file.path)
        // What was sent at the end of the conference, and what was heard.
        let place = (format.sampleRate * 1000 / 1000) * 2
        #expect(abs(Int(samples[place]) - own - 5000) < 500)
        #expect((1900...2100).contains(samples[place + 1]))
    }

    @Test func `a call is in one conference, and a conference has 32`() async throws {
        let party = try await Party(Array(repeating: 0, count: Conference.capacity + 1), usesCard: false)
        let (first, second) = (party.engine.makeConference(), party.engine.makeConference())
        for guest in party.guests.prefix(Conference.capacity) { try await first.add(guest.call) }
        func fault(_ body: () async throws -> Void) async -> EngineError.StateFault? {
            do {
                try await body()
                return nil
            } catch {
                guard case .state(let failure)? = error as? EngineError else { return nil }
                return failure.code
            }
        }
        #expect(await fault { try await first.add(party.guests[Conference.capacity].call) } == .queueFull)
        #expect(await fault { try await second.add(party.guests[0].call) } == .inConference)
        try await first.add(party.guests[0].call)
        try await first.remove(party.guests[0].call)
        try await second.add(party.guests[0].call)
        try await first.add(party.guests[Conference.capacity].call)
        try await party.guests[1].call.end()
        #expect(await fault { try await second.add(party.guests[1].call) } == .callEnded)
        let other = try await Party([0], usesCard: false)
        #expect(await fault { try await first.add(other.guests[0].call) } == .other)
    }
}
