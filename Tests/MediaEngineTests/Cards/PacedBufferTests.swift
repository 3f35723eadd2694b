import Testing

@testable import MediaEngine

@Suite struct PacedBufferTests {
    private func ms(_ milliseconds: Int) -> MediaTime { .zero + .milliseconds(milliseconds) }

    @Test func `time empties a playback buffer, and a shortage is an xrun of so many frames`() {
        var buffer = PacedBuffer(direction: .playback, sampleRate: 48_000, capacity: 1440)
        buffer.start(level: 480, at: ms(0))
        #expect(buffer.write(2000) == 960)
        #expect(buffer.advance(to: ms(10)) == nil && buffer.level == 960)
        #expect(buffer.advance(to: ms(30)) == nil && buffer.level == 0)
        #expect(buffer.advance(to: ms(35)) == 240 && !buffer.isRunning)
        #expect(buffer.advance(to: ms(50)) == nil)
    }

    @Test func `time fills a capture buffer, and an excess is an xrun`() {
        var buffer = PacedBuffer(direction: .capture, sampleRate: 8000, capacity: 240)
        buffer.start(level: 0, at: ms(0))
        #expect(buffer.advance(to: ms(10)) == nil && buffer.level == 80)
        #expect(buffer.read(100) == 80 && buffer.level == 0)
        #expect(buffer.advance(to: ms(50)) == 80 && buffer.level == 240)
    }

    @Test(arguments: [0, 100, -100, 20_000]) func `drift is exact over a day`(ppm: Int) {
        var buffer = PacedBuffer(direction: .capture, sampleRate: 44_100, capacity: .max, driftPPM: ppm)
        buffer.start(level: 0, at: ms(0))
        // An odd step, so that fractions of frames add up.
        for step in 1...100_000 { _ = buffer.advance(to: MediaTime(nanoseconds: Int64(step) * 863_999_999)) }
        let elapsed = 100_000.0 * 0.863_999_999
        #expect(abs(Double(buffer.level) - elapsed * 44_100 * (1 + Double(ppm) / 1_000_000)) < 1.5)
    }
}
