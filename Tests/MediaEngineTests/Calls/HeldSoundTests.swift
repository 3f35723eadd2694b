import MediaEngineTesting
import SDP
import TestSupport
import Testing

@testable import MediaEngine

/// What the other side hears while it is held.
@Suite struct HeldSoundTests {
    /// As L16 has it, so that nothing is resampled.
    private static let wide = AudioFormat(sampleRate: 44_100)
    /// What is said, and what is played to who is held.
    private static let (said, music): (Int16, Int16) = (8000, 3000)
    private static let speech = CallSource.samples([Int16](repeating: said, count: 48_000 * 10), wide)

    /// A file of 0.3 s, which is shorter than any hold here.
    private static func musicFile() throws -> TemporaryFile {
        let file = TemporaryFile()
        try WAVFile.write(file.path, format: wide, samples: [Int16](repeating: music, count: 14_400))
        return file
    }

    private static func isNear(_ sample: Int16, _ value: Int16) -> Bool { abs(Int(sample) - Int(value)) < 200 }

    @Test func `who is held hears the file again and again, and what is said before and after, without a click`()
        async throws
    {
        let file = try Self.musicFile()
        let pair = try await CallPair(saying: Self.speech, codec: "L16") { calling, _ in
            calling.heldSound = .file(file.path)
        }
        try pair.advance(1000)
        #expect(Self.isNear(try #require(pair.heard.samples.last), Self.said))
        let start = pair.heard.samples.count
        let packets = pair.caller.report().sent.packets
        pair.caller.isOnHold = true
        #expect(pair.caller.isOnHold)
        try pair.advance(2000)
        #expect(pair.caller.report().sent.packets - packets == 200)
        #expect(Self.isNear(try #require(pair.heard.samples.last), Self.music))
        let held = pair.heard.samples.count
        #expect(pair.heard.samples[(held - 48_000)...].allSatisfy { Self.isNear($0, Self.music) })
        pair.caller.isOnHold = false
        try pair.advance(1000)
        #expect(Self.isNear(try #require(pair.heard.samples.last), Self.said))
        // 5000 in one sample would be the click; over a tick it is 11 in each.
        let samples = pair.heard.samples[start...]
        let steps = zip(samples, samples.dropFirst()).map { abs(Int($0) - Int($1)) }
        #expect(steps.max() ?? .max < 100)
        #expect(pair.callee.report().received.lost == 0)
    }

    @Test func `a muted call sends the sound all the same, and hears nothing while it holds`() async throws {
        let file = try Self.musicFile()
        let ears = CallCollector()
        let pair = try await CallPair(saying: Self.speech, codec: "L16") { calling, called in
            calling.heldSound = .file(file.path)
            calling.isMuted = true
            calling.isOnHold = true
            calling.sink = .filter(ears.filter(Self.wide))
            called.source = Self.speech
        }
        try pair.advance(1000)
        #expect(Self.isNear(try #require(pair.heard.samples.last), Self.music))
        #expect(ears.samples.allSatisfy { $0 == 0 })
        pair.caller.isOnHold = false
        try pair.advance(1000)
        #expect(try #require(pair.heard.samples.last) == 0)
        #expect(Self.isNear(try #require(ears.samples.last), Self.said))
    }

    @Test func `nothing is sent when the agreed direction has none, or an interruption holds the call`() async throws {
        let pair = try await CallPair(saying: Self.speech, codec: "L16") { calling, _ in calling.heldSound = .tone }
        try pair.advance(500)
        var agreement = pair.caller.agreement
        agreement.direction = .receiveOnly
        pair.caller.isOnHold = true
        try await pair.caller.update(agreement)
        try pair.advance(100)
        let packets = pair.caller.report().sent.packets
        try pair.advance(500)
        #expect(pair.caller.report().sent.packets == packets)
        agreement.direction = .sendReceive
        pair.caller.isOnHold = false
        try await pair.caller.update(agreement)
        try pair.advance(500)
        #expect(pair.caller.report().sent.packets > packets)
        pair.engine.beginInterruption()
        #expect(pair.caller.isOnHold)
        try pair.advance(100)
        let later = pair.caller.report().sent.packets
        try pair.advance(500)
        #expect(pair.caller.report().sent.packets == later)
        pair.engine.endInterruption()
        #expect(!pair.caller.isOnHold)
    }

    @Test func `the sound goes on over a change of codec`() async throws {
        let file = try Self.musicFile()
        let pair = try await CallPair(saying: Self.speech) { calling, called in
            calling.heldSound = .file(file.path)
            called.agreement.acceptedCodecs = [AgreedCodec("PCMA")]
        }
        pair.caller.isOnHold = true
        try pair.advance(500)
        for codec in ["PCMA", "PCMU"] {
            var agreement = pair.caller.agreement
            agreement.codec = AgreedCodec(codec)
            try await pair.caller.update(agreement)
            try pair.advance(500)
            // Resampled, the file has edges where it begins again.
            #expect(pair.heard.samples.suffix(400).count { Self.isNear($0, Self.music) } > 200)
        }
    }

    @Test func `the tone is soft, and comes back`() throws {
        let format = AudioFormat(sampleRate: 8000)
        let sink = CollectingSink(format: format, capacity: 48_000)
        var graph = Graph()
        try graph.connect(HoldToneFilter(format: format), to: sink)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        for _ in 0..<600 { runner.tick(at: .zero) }
        let samples = sink.collected
        #expect(samples.count == 48_000)
        #expect(samples[200..<3000].map { abs(Int($0)) }.max() ?? 0 > 1000)
        #expect(samples.map { abs(Int($0)) }.max() ?? .max <= 1037)
        #expect(samples[3200..<40_000].allSatisfy { $0 == 0 })
        #expect(samples[40_200..<43_000].contains { $0 > 1000 })
        // Its edges are soft: no step is larger than those of the sine itself.
        let steps = zip(samples, samples.dropFirst()).map { abs(Int($0) - Int($1)) }
        #expect(Double(steps.max() ?? .max) < 1036 * 2 * Double.pi * 425 / 8000 + 10)
    }

    @Test func `a file that is not there is told, and nothing is left of the call`() async throws {
        let engine = try CallEngine(.virtual())
        await #expect(throws: EngineError.self) {
            try await CallPair(saying: .silence, engine: engine) { calling, _ in
                calling.heldSound = .file("/no/such/music.wav")
            }
        }
        #expect(engine.calls.isEmpty)
    }
}
