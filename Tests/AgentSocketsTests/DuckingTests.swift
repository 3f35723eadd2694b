@testable import AgentSockets
import MediaEngine
import Testing

/// When an agent is paused, and goes on; blocks of 20 ms.
@Suite struct DuckingTests {
    private static let voice = (0..<160).map { Int16($0 / 4 % 2 == 0 ? 8000 : -8000) }
    private static let silence = [Int16](repeating: 0, count: 160)

    /// Hears the same so often; answers the first news that say something, and at which block.
    private static func hear(
        _ samples: [Int16],
        _ count: Int,
        by ducking: inout Ducking,
        isPlaying: Bool = true
    ) -> [(block: Int, isPaused: Bool)] {
        (0..<count).compactMap { block in
            let news = ducking.hear(samples.span, played: silence.span, isPlaying: isPlaying)
            return news.isPaused.map { (block, $0) }
        }
    }

    @Test func `it pauses after 40 ms of speech, and goes on after 600, once for all that is said`() throws {
        var ducking = Ducking(sampleRate: 8000, isOn: true)
        #expect(Self.hear(Self.silence, 50, by: &ducking).isEmpty)
        let news = Self.hear(Self.voice, 100, by: &ducking)
        #expect(news.map(\.isPaused) == [true, false] && news.map(\.block) == [1, 31])
        #expect(Self.hear(Self.silence, 50, by: &ducking).isEmpty && !ducking.isPaused)
        #expect(Self.hear(Self.voice, 2, by: &ducking).map(\.isPaused) == [true])
    }

    @Test func `what is cleared does not come back, and who is silent, or cannot clear, is not paused`() {
        var ducking = Ducking(sampleRate: 8000, isOn: true)
        _ = Self.hear(Self.silence, 50, by: &ducking)
        #expect(Self.hear(Self.voice, 4, by: &ducking).map(\.isPaused) == [true])
        ducking.commit()
        #expect(Self.hear(Self.voice, 60, by: &ducking).isEmpty)
        _ = Self.hear(Self.silence, 50, by: &ducking)
        #expect(Self.hear(Self.voice, 60, by: &ducking, isPlaying: false).isEmpty)
        var off = Ducking(sampleRate: 8000, isOn: false)
        _ = Self.hear(Self.silence, 50, by: &off)
        #expect(Self.hear(Self.voice, 60, by: &off).isEmpty)
    }

    /// At 12,000 Hz without a canceller.
    @Test(arguments: [8000, 12_000]) func `an echo that was taken for speech once is not again`(rate: Int) {
        var ducking = Ducking(sampleRate: rate, isOn: true)
        var pauses = 0
        let voice = (0..<(rate / 50)).map { Int16($0 / 4 % 2 == 0 ? 8000 : -8000) }
        let silence = [Int16](repeating: 0, count: rate / 50)
        // 6 dB below what is played: stronger than is taken for an echo at first.
        let echo = voice.map { $0 / 2 }
        for block in 0..<500 {
            let heard = block < 20 || block % 100 < 50 ? silence : echo
            if ducking.hear(heard.span, played: voice.span, isPlaying: true).isPaused == true { pauses += 1 }
        }
        #expect(pauses == 1)
    }
}
