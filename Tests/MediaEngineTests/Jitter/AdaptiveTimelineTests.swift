@testable import MediaEngine
import Testing

/// Text timelines of the adaptive buffer; see `PlayoutTimeline` for how to read them.
///
/// Before anything is known 40 ms of jitter are expected, with a margin: the first packets are held back for 60 ms.
@Suite struct AdaptiveTimelineTests {
    private func play(
        _ arrivals: String,
        payload: (Int) -> [UInt8] = PlayoutTimeline.plain,
        timestamp: (Int) -> UInt32 = { UInt32($0 * 160) }
    ) -> PlayoutTimeline {
        PlayoutTimeline(
            arrivals,
            delay: .automatic,
            payload: payload,
            timestamp: timestamp
        )
    }

    /// Plays `arrivals` after so many seconds over a quiet network, and answers what is heard from then on.
    private func play(_ arrivals: String, afterSeconds seconds: Int) -> (heard: String, statistics: PlayoutStatistics) {
        let quiet = String(repeating: "0.1.2.3.4.5.6.7.8.9.", count: 5 * seconds)
        let result = play(quiet + arrivals)
        return (String(result.heard.dropFirst(quiet.count)), result.statistics)
    }

    @Test func `the first packets are held back for what is expected of a network`() {
        let result = play("0.1.2.3.4.5.6.7.8.9.")
        #expect(result.heard == "      00112233445566")
        #expect(result.statistics.meanWait == .milliseconds(60))
    }

    @Test func `a packet that comes behind its successor's time is late`() {
        let result = play("0.1.2.3.4.5.6.7...9.0.1.2.83.")
        #expect(result.heard == "      0011223344556677--99000")
        #expect(result.statistics.buffer.lateCount == 1)
    }

    @Test func `a packet that comes before any other is played, however late, and the delay has grown`() {
        let result = play("0.1.2.3.4.5.6.7...........89012.3.4.5.6.7.8.")
        #expect(result.heard == "      0011223344556677----688990011223344556")
        #expect(result.statistics.buffer.lateCount == 0 && result.statistics.buffer.missingCount == 0)
    }

    @Test func `a lost packet is taken from the copy in its successor, of two the second`() {
        let one = play("0.1.2.3...5.6.7.8.9.", payload: PlayoutTimeline.withCopy)
        #expect(one.heard == "      00112233rr5566")
        let two = play("0.1.2.3.....6.7.8.9.", payload: PlayoutTimeline.withCopy)
        #expect(two.heard == "      00112233--rr66")
        #expect(one.statistics.buffer.missingCount == 1 && two.statistics.buffer.missingCount == 2)
        #expect(one.statistics.recoveredCount == 1 && two.statistics.recoveredCount == 1)
    }

    @Test func `a lost packet without a copy is concealed`() {
        let result = play("0.1.2.3...5.6.7.8.9.")
        #expect(result.heard == "      00112233--5566")
        #expect(result.statistics.concealedFrameCount == 160)
    }

    @Test func `what a spike has let wait is shortened away`() {
        let result = play("0.1.......[2345]6.7.8.9.0.1.2.3.4.5.6.7.8.9.", afterSeconds: 8)
        #expect(result.heard == "8990011---22334455667788990012233445566")
        #expect(result.statistics.buffer.discardedCount == 0)
    }

    @Test func `sound is lengthened when packets come later again and again`() {
        let result = play("0.1.2.3...4.56.7.8...90.1.2.3...45.6.7...89.0.1.2...34.5.6.7.8.9.", afterSeconds: 1)
        #expect(result.heard == "88990012233445566778899900112233444556677888990011223334455667788")
        #expect(result.statistics.concealedFrameCount == 0)
        #expect(result.statistics.buffer.expandedDuration == 6 * 320)
    }

    @Test func `a pause of the sender is filled with comfort noise, and is no loss`() {
        let result = play("0.1.2.3.4.........5.6.7.8.", timestamp: { UInt32($0 * 160 + ($0 > 4 ? 640 : 0)) })
        #expect(result.heard == "      0011223344--------55")
        #expect(result.statistics.concealedFrameCount == 0)
        #expect(result.statistics.buffer.comfortDuration == 6 * 640)
    }

    @Test func `a key, however long, is a pause of the sound`() {
        // The events i to z, 90 ms apart, take the numbers 8 to 25; then sound goes on where its time stamps say.
        let sound = "0.1.2.3.4.5.6.7."
        let events = "ijklmnopqrstuvwxyz".map { "\($0)........" }.joined()
        let result = play(sound + events + "6.7.8.9.0.", timestamp: { UInt32($0 * 160 + ($0 > 7 ? 10_080 : 0)) })
        let pause = String(repeating: "-", count: events.count)
        #expect(result.heard == "      0011223344556677" + pause + "6677")
        #expect(result.statistics.concealedFrameCount == 0)
        #expect(result.statistics.comfortFrameCount == 80 * events.count)
        #expect(result.statistics.buffer.restartCount == 0)
    }

    @Test func `a jump of the timestamps is not heard`() {
        let result = play("0.1.2.3.4.5.6.7.8.9.0.1.", timestamp: { UInt32($0 * 160 + ($0 > 6 ? 800_000 : 0)) })
        #expect(result.heard == "      001122334455667788")
        #expect(result.statistics.leapCount == 1 && result.statistics.buffer.restartCount == 0)
    }
}
