@testable import MediaEngine
import Testing

/// Silence that the sender left out, told from what was lost and from a sender that stood still.
@Suite struct PauseTests {
    /// Milliseconds of the sender's pauses, when the packets from number 4 on bear time stamps `shift` ms later.
    private func paused(_ arrivals: String, shift: Int = 0) -> Int {
        let result = PlayoutTimeline(
            arrivals,
            delay: .automatic,
            timestamp: { UInt32($0 * 160 + ($0 < 4 ? 0 : shift * 8)) }
        )
        return result.statistics.buffer.pausedDuration / 48
    }

    /// 200 ms in which nothing comes.
    private static let nothing = String(repeating: ".", count: 20)

    @Test func `time stamps that moved with the clock are a pause`() {
        #expect(paused("0.1.2.3." + Self.nothing + "4.5.6.7.8.9.........", shift: 200) == 200)
    }

    @Test func `a pause so long that the line begins anew counts as well`() {
        let aWhile = String(repeating: Self.nothing, count: 8)
        #expect(paused("0.1.2.3." + aWhile + "4.5.6.7.8.9.........", shift: 1600) == 1600)
    }

    @Test func `what is lost at its edge is not of the pause`() {
        #expect(paused("0.1.2.3.." + "." + Self.nothing + "5.6.7.8.9.........", shift: 200) == 200)
        #expect(paused("0.1.2..." + Self.nothing + "4.5.6.7.8.9.........", shift: 200) == 200)
    }

    @Test func `time stamps that stood still are a sender that did`() {
        #expect(paused("0.1.2.3." + Self.nothing + "4.5.6.7.8.9.........") == 0)
    }

    @Test func `who sets the clock forward has left out nothing`() {
        #expect(paused("0.1.2.3.4.5.6.7.8.9." + Self.nothing + Self.nothing + Self.nothing, shift: 500) == 0)
    }

    @Test(arguments: [3, 8]) func `time stamps that stood still behind a marker are a pause`(pieces: Int) {
        let result = PlayoutTimeline(
            "0.1.2.3." + String(repeating: Self.nothing, count: pieces) + "4.5.6.7.8.9.........",
            delay: .automatic,
            isMarked: { $0 == 4 }
        )
        #expect(result.statistics.buffer.pausedDuration / 48 == 200 * pieces)
        #expect(result.statistics.buffer.interruptedDuration == 0)
    }

    // The next packet comes when the pause is over, or while those before the pause still wait.
    @Test(arguments: [(.automatic, 200), (.fixed(.milliseconds(200)), 100)] as [(PlayoutDelay, Int)])
    func `of a pause whose first packet behind it is lost, only that packet is`(delay: PlayoutDelay, pause: Int) {
        let silence = String(repeating: ".", count: pause / 10)
        let result = PlayoutTimeline(
            "0.1.2.3." + silence + "..5.6.7.8.9..................",
            delay: delay,
            timestamp: { UInt32($0 * 160 + ($0 < 4 ? 0 : pause * 8)) }
        )
        let buffer = result.statistics.buffer
        #expect(buffer.pausedDuration / 48 == pause && buffer.missingCount == 1)
        #expect(buffer.interruptedDuration / 48 == 20 && buffer.interruptionCount == 1)
    }

    @Test func `a lost packet that none brings a copy of is an interruption`() {
        let buffer = PlayoutTimeline("0.1.2.3...5.6.7.8.9.", delay: .automatic).statistics.buffer
        #expect(buffer.interruptedDuration / 48 == 20 && buffer.interruptionCount == 1)
    }

    @Test func `what is invented until the delay is drawn anew is an interruption`() {
        let result = PlayoutTimeline("0.1.2.........3.4.5.6.7.8.9.........", delay: .fixed(.milliseconds(40)))
        let buffer = result.statistics.buffer
        #expect(buffer.restartCount == 1)
        // From the end of packet 2 until packet 7 comes, the fifth in a row that is late.
        #expect(buffer.interruptedDuration / 48 == 120 && buffer.interruptionCount == 1)
    }

    @Test(arguments: ["0.1.2.3.E.F.G.H.8.9.........", "0.1.2.3.E...G.H.8.9........."])
    func `packets that nothing decodes are sound that is missing, and no pause`(arrivals: String) {
        let buffer = PlayoutTimeline(arrivals, delay: .automatic).statistics.buffer
        #expect(buffer.pausedDuration == 0 && buffer.comfortDuration == 0)
        #expect(buffer.interruptedDuration / 48 == 80 && buffer.interruptionCount == 1)
        let missing = arrivals.contains("F") ? 0 : 1
        #expect(buffer.missingCount == missing && buffer.undecodableCount == 4 - missing)
        // Keys in their place are none.
        let keys = PlayoutTimeline(arrivals.lowercased(), delay: .automatic).statistics.buffer
        #expect(keys.undecodableCount == 0 && keys.interruptedDuration / 48 <= 20)
    }

    @Test func `a pause beside packets that nothing decodes is as long as it was`() {
        let result = PlayoutTimeline(
            "0.1.2.3.E.F." + Self.nothing + "6.7.8.9.........",
            delay: .automatic,
            timestamp: { UInt32($0 * 160 + ($0 < 6 ? 0 : 1600)) }
        )
        #expect(result.statistics.buffer.pausedDuration / 48 == 200)
        #expect(result.statistics.buffer.undecodableCount == 2)
    }

    @Test func `losses alone are no pause`() {
        #expect(paused("0.1.2.......6.7.8.9.........") == 0)
    }
}
