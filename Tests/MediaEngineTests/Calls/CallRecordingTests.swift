import MediaEngineTesting
import TestSupport
import Testing

@testable import MediaEngine

/// Both sides of a call in the channels of one file.
@Suite struct CallRecordingTests {
    /// What the near and the far side say: constants, which every codec here keeps.
    private static let (near, far): (Int16, Int16) = (-4000, 8000)

    private static func constant(_ value: Int16, rate: Int = 8000) -> CallSource {
        .samples([Int16](repeating: value, count: rate * 10), AudioFormat(sampleRate: rate))
    }

    private static func read(_ path: String) throws -> (format: AudioFormat, left: [Int16], right: [Int16]) {
        let (format, samples) = try WAVFile.read(path)
        let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
        let right = stride(from: 1, to: samples.count, by: 2).map { samples[$0] }
        return (format, left, right)
    }

    @Test func `what is sent is on the left, what is heard on the right`() async throws {
        let file = TemporaryFile()
        let pair = try await CallPair(saying: Self.constant(Self.far)) { _, called in
            called.source = Self.constant(Self.near)
        }
        try pair.advance(500)
        try await pair.callee.startRecording(stereo: file.path)
        await #expect(throws: EngineError.self) { try await pair.callee.startRecording(stereo: file.path) }
        try pair.advance(1000)
        try await pair.callee.stopRecording()
        try pair.advance(100)
        let (format, left, right) = try Self.read(file.path)
        #expect(format == AudioFormat(sampleRate: 8000, channelCount: 2))
        #expect(left.count == 8000 && right.count == 8000)
        #expect(left.allSatisfy { $0 == Self.near })
        #expect(right.allSatisfy { (7500...8500).contains($0) })
        // It can be recorded again.
        try await pair.callee.startRecording(stereo: file.path)
        try pair.advance(200)
        try await pair.callee.end()
        #expect(try Self.read(file.path).left.count == 1600)
    }

    @Test func `sides that stand in plans of their own, with cards between, are recorded in step`() async throws {
        let (file, speaking) = (TemporaryFile(), TemporaryFile())
        let wide = AudioFormat(sampleRate: 48_000)
        try WAVFile.write(speaking.path, format: wide, samples: [Int16](repeating: Self.near, count: 48_000 * 5))
        let engine = try CallEngine(.virtual())
        try await engine.setCard(FileCard(capturePath: speaking.path), .capture)
        try await engine.setCard(named: "null", .playback)
        let pair = try await CallPair(saying: Self.constant(Self.far), codec: "L16", engine: engine) { _, called in
            called.source = .callCard
            called.sink = .callCard
            // A canceller takes a constant away, which is no sound.
            called.stream.voiceProcessing.echoCancelling = .off
        }
        try pair.advance(500)
        try await pair.callee.startRecording(stereo: file.path)
        try pair.advance(1000)
        try await pair.callee.stopRecording()
        let (format, left, right) = try Self.read(file.path)
        #expect(format.channelCount == 2 && left.count == format.sampleRate && right.count == left.count)
        #expect(left.allSatisfy { (-4100 ... -3900).contains($0) })
        #expect(right.allSatisfy { (7500...8500).contains($0) })
        try await pair.callee.end()
    }

    @Test func `it goes on over a change of codec, at the rate that it began with`() async throws {
        let file = TemporaryFile()
        let pair = try await CallPair(saying: .silence) { calling, called in
            calling.source = Self.constant(Self.near)
            called.source = Self.constant(Self.far)
        }
        try pair.advance(500)
        try await pair.caller.startRecording(stereo: file.path)
        try pair.advance(500)
        var agreement = pair.caller.agreement
        agreement.codec = AgreedCodec("L16", payloadType: 97)
        try await pair.caller.update(agreement)
        try pair.advance(500)
        try await pair.caller.stopRecording()
        let (format, left, _) = try Self.read(file.path)
        #expect(format.sampleRate == 8000 && left.count == 8000)
        // Each resampler that begins gives its first milliseconds quietly.
        #expect(left.count { (-4100 ... -3900).contains($0) } > 7800)
    }
}
