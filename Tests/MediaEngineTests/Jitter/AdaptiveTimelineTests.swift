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

    @Test(arguments: [800_000, 40_000, 16_000, 4000, -4000, -40_000])
    func `a jump of the timestamps is not heard`(jump: Int) {
        let result = play(
            "0.1.2.3.4.5.6.7.8.9.0.1.",
            timestamp: { UInt32(1_000_000 + $0 * 160 + ($0 > 6 ? jump : 0)) }
        )
        #expect(result.heard == "      001122334455667788")
        #expect(result.statistics.leapCount == 1 && result.statistics.buffer.restartCount == 0)
    }

    // MARK: Stalls

    /// Eight seconds of a quiet network.
    private static let quiet = String(repeating: "0.1.2.3.4.5.6.7.8.9.", count: 40)

    /// Plays `packets` after a stall of so many milliseconds, and answers what is heard from the first of them on.
    private func play(
        _ packets: String,
        afterStall stall: Int,
        delay: PlayoutDelay = .automatic
    ) -> (heard: String, statistics: PlayoutStatistics) {
        let before = Self.quiet + String(repeating: ".", count: stall / 10)
        let result = PlayoutTimeline(before + packets, delay: delay)
        let heard = result.heard.dropFirst(before.count).drop { "- ".contains($0) }
        return (String(heard), result.statistics)
    }

    /// The packets that are heard one after another, or what else is.
    private func order(_ heard: String) -> String {
        heard.reduce(into: "") { order, symbol in if order.last != symbol { order.append(symbol) } }
    }

    private static let bounds: [PlayoutDelay] = [.automatic, .adaptive(.milliseconds(15) ... .milliseconds(200))]

    @Test(arguments: [300, 600, 1000, 1500], bounds)
    func `what a stall has delayed for good is heard as it comes, neither shortened nor interrupted`(
        stall: Int,
        delay: PlayoutDelay
    ) {
        let known = PlayoutTimeline(Self.quiet, delay: delay).statistics.buffer
        let result = play(String(repeating: "0.1.2.3.4.5.6.7.8.9.", count: 8), afterStall: stall, delay: delay)
        let all = String(repeating: "0123456789", count: 8)
        #expect(all.hasPrefix(order(result.heard)), "\(result.heard)")
        #expect(result.heard.count >= 158)
        #expect(result.statistics.buffer.acceleratedDuration == known.acceleratedDuration)
        #expect(result.statistics.buffer.discardedCount == 0 && result.statistics.buffer.lateCount == 0)
    }

    @Test(arguments: [600, 1000, 1500])
    func `after a stall that is made up for by a burst nothing more is invented`(stall: Int) {
        // All that was sent in the stall, then one packet at a time.
        let digits = String(repeating: "0123456789", count: 60)
        let held = digits.prefix(stall / 20)
        let live = digits.dropFirst(held.count).prefix(80).map { "\($0)." }.joined()
        let result = play("[\(held)]" + live, afterStall: stall)
        #expect(!result.heard.contains { "- ".contains($0) }, "\(result.heard)")
        #expect(result.statistics.buffer.missingCount == 0 && result.statistics.buffer.lateCount == 0)
        // What exceeds 600 ms is thrown away, or all of it where the stream had ended.
        let surplus = stall > 1000 ? stall / 20 - 2 : max(0, stall - 600) / 20
        #expect(abs(result.statistics.buffer.discardedCount - surplus) <= 1)
    }
}
