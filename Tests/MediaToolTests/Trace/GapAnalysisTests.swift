import MediaEngine
import Testing

@testable import media_tool

/// Why a call was choppy, told from rows that are written as text.
@Suite struct GapAnalysisTests {
    typealias Cause = AudibleGap.Cause

    /// A time line: one letter a row of 20 ms, with a packet in each row unless the letter says otherwise.
    ///
    /// `.` plays, `c` conceals and a packet came, `C` conceals and none came, `q` plays and none came, `i` is idle and
    /// none came, `m` conceals and one packet is known to be missing, `M` the same and none came, `L` plays and a late
    /// packet came, `b` plays and eight packets came, `d` plays and throws a packet away, `n` is comfort noise, `r` recovers,
    /// `p` plays the packet behind a pause of 120 ms, `u`, `U` and `I` conceal, are noise and are idle for a packet that
    /// nothing decodes.
    private func rows(_ line: String, level: Float = -20, delay: (Int) -> Float = { _ in 60 }) -> [PlayoutTraceRow] {
        line.enumerated().map { index, letter in
            var row = PlayoutTraceRow()
            row.time = MediaTime(nanoseconds: 5_000_000_000 + Int64(index) * 20_000_000)
            row.operation = .play
            row.arrivedCount = "CqiMn".contains(letter) ? 0 : 1
            row.playoutDelay = delay(index)
            row.level = level
            switch letter {
            case "c", "C", "m", "M":
                row.operation = .conceal
                row.concealed = 20
                row.missingCount = letter == "m" || letter == "M" ? 1 : 0
            case "i":
                row.operation = .idle
                row.level = -127
            case "L": row.lateCount = 1
            case "b": row.arrivedCount = 8
            case "d": row.discardedCount = 1
            case "n":
                row.operation = .comfort
                row.concealed = 20
            case "u", "U", "I":
                row.operation = letter == "u" ? .conceal : letter == "U" ? .comfort : .idle
                row.concealed = letter == "I" ? 0 : 20
                row.arrivedCount = 0
                row.undecodableCount = 1
            case "p": row.paused = 120
            case "r":
                row.operation = .recover
                row.recoveredCount = 1
                row.missingCount = 1
            default: break
            }
            return row
        }
    }

    @Test(arguments: [
        ("..........", [], []),
        ("....m.....", [Cause.lost], [20]),
        ("....mmm...", [.lost], [60]),
        ("....m.m...", [.lost], [40]),
        ("....m......m....", [.lost, .lost], [20, 20]),
        ("....r.....", [], []),
        ("....mr....", [.lost], [20]),
        ("....m..L..", [.late], [20]),
        ("....mm.L..", [.late], [40]),
        ("....mmm.L.......", [.lost], [60]),
        ("qqqqCCCCmLLLLLLL", [.late], [100]),
        ("..qqqqCCCCCC....", [.senderStalled], [120]),
        ("..qqqiiiiii.....", [.senderStalled], [120]),
        ("..qqqqCCCCCC.b..", [.late], [120]),
        ("..qqqqCCCccccc..", [.senderStalled], [160]),
        ("..qqqqMMMMMM....", [.lost], [120]),
        ("....d.......", [.discarded], [20]),
        ("....ddd.....", [.discarded], [60]),
        ("....nnnnnn..", [], []),
        ("iiii........iiii", [], []),
        ("....uuuuuuuu....", [.noDecoder], [160]),
        ("....uuuuIIII....", [.noDecoder], [160]),
        ("....nUUUn.......", [.noDecoder], [60]),
        ("....mmmmu.......", [.lost], [100]),
        ("....c.......", [.unknown], [20]),
        ("....CCCCCCp...", [], []),
        ("....CCCnnnp...", [], []),
        ("....CCCiiip...", [], []),
        ("....CCCCCCCCCp...", [.senderStalled], [60]),
        ("....CCCCCC.p....", [.senderStalled], [120]),
        ("....MMMnnnnnnp...", [.lost], [60]),
        ("....mmmCCCCCCp...", [.lost], [60]),
    ])
    func `each gap has its cause`(line: String, causes: [Cause], lengths: [Int]) {
        let found = GapAnalysis(rows: rows(line)).gaps
        #expect(found.map(\.cause) == causes)
        #expect(found.map { Int($0.duration.milliseconds.rounded()) } == lengths)
    }

    // The packets came in another order meanwhile: what was counted as lost before is taken back.
    @Test(arguments: [
        ("....qqqC.....", true, Cause.lost), ("....qqqC.....", false, .senderStalled),
        ("..qqqqCCCCCC....", true, .lost), ("..qqqqCCCCCC....", false, .senderStalled),
        ("....c.......", true, .lost), ("....c.......", false, .unknown),
        ("....qqqC..L......", true, .late),
    ])
    func `numbers that are left out tell a loss from a stall`(line: String, isLeftOut: Bool, cause: Cause) {
        var numbered = rows(line)
        var number: UInt16 = 65_530
        for index in numbered.indices {
            if numbered[index].operation == .play {
                number &+= 1
                numbered[index].sequenceNumber = number
            } else if isLeftOut {
                number &+= 1
            }
        }
        let events = [TraceEvent(timeMs: 60, kind: .lost, amount: -1)]
        #expect(GapAnalysis(rows: numbered, events: events).gaps.map(\.cause) == [cause])
    }

    @Test func `a gap is told with its place after the first row`() {
        let found = GapAnalysis(rows: rows("....mm....")).gaps
        #expect(found == [AudibleGap(start: .milliseconds(80), duration: .milliseconds(40), cause: .lost)])
    }

    @Test(arguments: [(Float(-20), 1), (-49, 1), (-51, 0), (-127, 0)])
    func `only who speaks is missed`(level: Float, count: Int) {
        #expect(GapAnalysis(rows: rows("....mm....", level: level)).gaps.count == count)
    }

    @Test(arguments: [(Float(10), 0), (19, 1), (20, 1)])
    func `less than 20 ms is no gap`(length: Float, count: Int) {
        var rows = rows("....m.....")
        rows[4].concealed = length
        #expect(GapAnalysis(rows: rows).gaps.count == count)
    }

    @Test func `a buffer that ran dry slowly is drift, and one that ran dry at once is not`() {
        let line = String(repeating: ".", count: 600) + "c" + String(repeating: ".", count: 40)
        let slow = GapAnalysis(rows: rows(line) { 60 - Float(min($0, 600)) * 0.1 })
        #expect(slow.gaps.map(\.cause) == [.drift])
        let sudden = GapAnalysis(rows: rows(line) { $0 < 500 ? 60 : 0 })
        #expect(sudden.gaps.map(\.cause) == [.unknown])
        let late = GapAnalysis(rows: rows(line.replacing("c.", with: "mL")) { 60 - Float(min($0, 600)) * 0.1 })
        #expect(late.gaps.map(\.cause) == [.drift])
    }

    @Test func `a buffer that was shortened on purpose did not drift`() {
        var rows = rows(String(repeating: ".", count: 600) + "m....") { 60 - Float(min($0, 600)) * 0.1 }
        for index in 0..<600 { rows[index].stretched = -0.1 }
        #expect(GapAnalysis(rows: rows).gaps.map(\.cause) == [.lost])
    }

    @Test func `an xrun is a gap of its own, or the cause of the one beside it`() {
        let event = TraceEvent(timeMs: 90, kind: .xrun, amount: 30)
        let beside = GapAnalysis(rows: rows("....c......"), events: [event]).gaps
        #expect(beside == [AudibleGap(start: .milliseconds(80), duration: .milliseconds(20), cause: .xrun)])
        let alone = GapAnalysis(rows: rows("..........."), events: [event]).gaps
        #expect(alone == [AudibleGap(start: .milliseconds(90), duration: .milliseconds(30), cause: .xrun)])
        let quiet = GapAnalysis(rows: rows("...........", level: -80), events: [event]).gaps
        #expect(quiet.isEmpty)
    }

    @Test func `what sequence numbers say outweighs what the buffer saw`() {
        let rows = rows("..qqqqCCCCCC....")
        let lost = TraceEvent(timeMs: 260, kind: .lost, amount: 9)
        #expect(GapAnalysis(rows: rows, events: [lost]).gaps.map(\.cause) == [.lost])
        let elsewhere = TraceEvent(timeMs: 9000, kind: .lost, amount: 9)
        #expect(GapAnalysis(rows: rows, events: [elsewhere]).gaps.map(\.cause) == [.senderStalled])
    }

    @Test func `the summary has the worst cause first`() {
        let analysis = GapAnalysis(rows: rows("....m.........mmm.......dd......m....."))
        #expect(analysis.summary.map(\.cause) == [.lost, .discarded])
        #expect(analysis.summary.map(\.count) == [3, 1])
        #expect(analysis.totalDuration == .milliseconds(140))
        #expect(GapAnalysis(rows: []).gaps.isEmpty)
    }

    @Test func `rows that cannot be are no reason to trap`() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<200 {
            let rows = (0..<60).map { _ in
                var row = PlayoutTraceRow()
                row.time = MediaTime(nanoseconds: Int64(bitPattern: generator.next()) / 4)
                row.operation = PlayoutOperation.allCases[Int(generator.next() % 7)]
                row.concealed = [-5, 0, 20, 1e30, .infinity][Int(generator.next() % 5)]
                row.playoutDelay = [-5, 0, 60, 1e30, .nan][Int(generator.next() % 5)]
                row.level = [-127, 0, .nan][Int(generator.next() % 3)]
                row.paused = [-5, 0, 20, 1e30, .nan][Int(generator.next() % 5)]
                row.arrivedCount = UInt16(truncatingIfNeeded: generator.next())
                row.missingCount = UInt16(truncatingIfNeeded: generator.next())
                row.lateCount = UInt16(truncatingIfNeeded: generator.next())
                return row
            }
            let events = [
                TraceEvent(timeMs: .nan, kind: .xrun, amount: .max), TraceEvent(timeMs: 1e300, kind: .lost, amount: 1),
            ]
            let analysis = GapAnalysis(rows: rows, events: events, ptimeMs: 0)
            #expect(analysis.gaps.count <= 62)
        }
    }

    @Test func `pauses that claim all that was before cost no more than others`() {
        let rows = (0..<200_000).map { index in
            var row = PlayoutTraceRow()
            row.time = MediaTime(nanoseconds: Int64(index) * 10_000_000)
            row.operation = .comfort
            row.paused = 1e9
            return row
        }
        #expect(GapAnalysis(rows: rows, events: [], ptimeMs: 20).gaps.isEmpty)
    }

    @Test func `a gap names the packets around it, across the end of the numbers`() {
        var rows = rows("....mm....CCqq..")
        for index in rows.indices where rows[index].operation == .play && index % 2 == 0 {
            rows[index].sequenceNumber = UInt16(truncatingIfNeeded: 65_530 + index)
        }
        let gap = GapAnalysis(rows: rows).gaps.first
        #expect(gap?.lastHeard == 65_532 && gap?.nextHeard == 0)
        #expect(GapAnalysis(rows: self.rows("....mm....")).gaps.first?.lastHeard == nil)
    }

    @Test func `what was invented into a pause is of the pause, to its last frames`() {
        // A second is invented, which fades out; its last frames fill a row by themselves.
        var rows = rows(String(repeating: ".", count: 50) + String(repeating: "C", count: 50) + "qiiii..........")
        for index in 60...100 { rows[index].level = -127 }
        rows[105].paused = 1100
        #expect(GapAnalysis(rows: rows).gaps.isEmpty)
        // Sound of a packet is none of the pause.
        rows[100].level = -20
        #expect(GapAnalysis(rows: rows).gaps.count == 1)
    }
}
