import CallBasics
@testable import RTP
import Testing

@Suite struct LossRunsTests {
    // `x` is a lost packet.
    @Test(arguments: [
        ("", 0, 0, 0), (".....", 0, 0, 0), ("x", 1, 1, 1), ("xxx", 3, 1, 3), ("x.x.x", 3, 3, 1), ("xx..xxx.", 5, 2, 3),
    ]) func `runs are counted`(path: String, lost: Int, runs: Int, longest: Int) {
        var found = LossRuns()
        for packet in path { found.count(1, areLost: packet == "x") }
        #expect(found.packetCount == path.count && found.lostCount == lost)
        #expect(found.runCount == runs && found.longestRun == longest)
        #expect(found.meanRun == (runs > 0 ? Double(lost) / Double(runs) : nil))
    }

    @Test func `what is counted in pieces is one run`() {
        var runs = LossRuns()
        runs.count(3, areLost: true)
        runs.count(0, areLost: false)
        runs.count(2, areLost: true)
        runs.count(7, areLost: false)
        runs.count(1, areLost: true)
        #expect(runs.runCount == 2 && runs.longestRun == 5 && runs.meanRun == 3 && runs.packetCount == 13)
    }
}
