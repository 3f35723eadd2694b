@testable import MediaEngine
import Testing

@Suite struct RingSourceTests {
    private static let format = AudioFormat(sampleRate: 8000)

    private static func ticks(_ source: RingSource, _ count: Int) -> [Int16] {
        var all: [Int16] = []
        for _ in 0..<count {
            var block = [Int16](repeating: 9, count: 80 * source.format.channelCount)
            var samples = block.mutableSpan
            source.render(into: &samples)
            all += block
        }
        return all
    }

    @Test func `recorded samples ring with a pause of 2 s, and fade when stopped`() throws {
        let recorded = [Int16](repeating: 10_000, count: 800)
        let source = try RingSource(samples: recorded, channelCount: 1, format: Self.format)
        #expect(Self.ticks(source, 1).allSatisfy { $0 == 0 } && !source.isRinging)
        source.start()
        #expect(source.isRinging)
        let samples = Self.ticks(source, 230)
        #expect(samples[0..<800].allSatisfy { $0 == 10_000 })
        #expect(samples[800..<16_800].allSatisfy { $0 == 0 })
        #expect(samples[16_800..<17_600].allSatisfy { $0 == 10_000 })
        source.start()
        source.stop()
        _ = Self.ticks(source, 1)
        #expect(Self.ticks(source, 1).allSatisfy { $0 == 0 } && !source.isRinging)
        source.start()
        #expect(Self.ticks(source, 2).allSatisfy { $0 == 10_000 })
        source.stop()
        let end = Self.ticks(source, 1)
        #expect(zip(end, end.dropFirst()).allSatisfy { $0 >= $1 && $0 - $1 < 500 })
    }

    @Test func `a ring adapts its channels and refuses what does not fit`() throws {
        let stereo = AudioFormat(sampleRate: 8000, channelCount: 2)
        let source = try RingSource(samples: [1, 2], channelCount: 1, format: stereo, pause: .zero)
        source.start()
        var block = [Int16](repeating: 9, count: 8)
        var span = block.mutableSpan
        source.render(into: &span)
        #expect(block == [1, 1, 2, 2, 1, 1, 2, 2])
        let mono = try RingSource(samples: [100, 300, 5, 7], channelCount: 2, format: Self.format, pause: .zero)
        mono.start()
        var frames = [Int16](repeating: 9, count: 2)
        var frameSpan = frames.mutableSpan
        mono.render(into: &frameSpan)
        #expect(frames == [200, 6])
        #expect(throws: ToneError.self) { try RingSource(samples: [], channelCount: 1, format: stereo) }
        #expect(throws: ToneError.self) {
            try RingSource(samples: [1, 2, 3], channelCount: 3, format: stereo)
        }
    }

    @Test func `a ring tone rings until stopped`() throws {
        let spec = try #require(try CallProgressTones.of(country: "DE")[.ringback])
        let source = try RingSource(tone: spec, format: Self.format)
        source.start()
        let samples = Self.ticks(source, 600)
        #expect(samples[200..<7800].contains { abs(Int($0)) > 5000 })
        #expect(samples[8000..<40_000].allSatisfy { $0 == 0 })
        #expect(samples[40_100..<47_000].contains { abs(Int($0)) > 5000 })
        source.stop()
        _ = Self.ticks(source, 1)
        #expect(Self.ticks(source, 1).allSatisfy { $0 == 0 })
    }
}
