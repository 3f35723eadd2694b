import MediaEngine
import Testing

@testable import media_tool

/// The page of a trace: what its first line says, what is drawn, what is left out, and that text stays text.
@Suite struct ReportPageTests {
    /// A trace in which every row plays a packet, but those at which `isLost` holds, whose packet never came.
    private func trace(rowCount: Int, isLost: (Int) -> Bool = { _ in false }) -> TraceFile {
        var trace = TraceFile(codec: "opus", clockRate: 48000, ptimeMs: 20)
        trace.rows = (0..<rowCount).map { index in
            var row = PlayoutTraceRow()
            row.time = MediaTime(nanoseconds: Int64(index) * 20_000_000)
            row.operation = isLost(index) ? .conceal : .play
            row.arrivedCount = isLost(index) ? 0 : 1
            row.missingCount = isLost(index) ? 1 : 0
            row.concealed = isLost(index) ? 20 : 0
            row.sequenceNumber = isLost(index) ? nil : UInt16(truncatingIfNeeded: 65_500 + index)
            row.playoutDelay = 40
            row.level = -20
            return row
        }
        trace.stream = TraceFile.Stream(
            startUnixMs: 1_795_434_000_123,
            source: "192.0.2.1:4000",
            destination: "[2001:db8::1]:5004",
            ssrc: 0x1A2B_3C4D
        )
        return trace
    }

    private func page(_ traces: TraceFile..., title: String = "call.json", notes: [String] = []) -> String {
        ReportPage(title: title, legs: traces.map { ReportLeg($0, GapAnalysis($0), notes: notes) }).html
    }

    private func count(_ part: String, in text: String) -> Int { text.split(separator: part).count - 1 }

    /// The text between two marks.
    private func part(of text: String, from start: String, to end: String) throws -> Substring {
        let begin = try #require(text.firstRange(of: start))
        let rest = text[begin.upperBound...]
        return rest[..<(try #require(rest.firstRange(of: end))).lowerBound]
    }

    @Test func `the first line is the verdict, with what it rests on and whose call it is`() throws {
        var trace = trace(rowCount: 100)
        let figures = [
            ("quality mos conversational", "4.2"), ("quality one way delay ms", "101.88"), ("received lost", "5"),
            ("received packets", "95"),
        ]
        trace.figures = figures.map { TraceFile.Figure(name: $0, value: $1) }
        let line = try part(of: page(trace), from: "<h1 class=\"verdict\">", to: "</h1>")
        let facts = [
            "MOS 4.2", "5 % lost", "101.9 ms mouth to ear", "opus, 20 ms", "192.0.2.1:4000 → [2001:db8::1]:5004",
            "SSRC 0x1A2B3C4D", "2026-11-23 11:40:00 UTC", "2 s",
        ]
        #expect(line == "<b class=\"good\">Good</b>" + facts.map { " · <span>\($0)</span>" }.joined())
        let older = try part(of: page(TraceFile(codec: "PCMU", clockRate: 8000, ptimeMs: 20)), from: "<h1", to: "</h1>")
        #expect(older.contains("Nothing was heard") && older.contains("PCMU") && !older.contains("SSRC"))
    }

    @Test(
        arguments: [
            (4.3, 0, Verdict.Grade.good), (4.3, 0.01, .fair), (4.3, 0.03, .poor), (4.41, 0.17, .bad), (3.7, 0, .fair),
            (3.2, 0, .poor), (2, 0, .bad), (nil, 0, .good), (nil, 0.2, .bad),
        ] as [(Double?, Double, Verdict.Grade)]
    )
    func `neither a good score nor few gaps hide the other`(score: Double?, share: Double, grade: Verdict.Grade) {
        #expect(Verdict(score: score, gapShare: share, isPlayed: true).grade == grade)
        #expect(Verdict(score: score, gapShare: share, isPlayed: false).grade == nil)
    }

    @Test func `a gap is told with its time of day and a filter that finds its packets`() {
        var trace = trace(rowCount: 500) { $0 == 35 || $0 == 100 }
        trace.events = [TraceEvent(timeMs: 1500, kind: .sourceChange, amount: 0xDEAD_BEEF)]
        let text = page(trace)
        #expect(text.contains("<td class=\"n\">11:40:00.823</td>"))
        #expect(text.contains("rtp.ssrc == 0x1A2B3C4D &amp;&amp; (rtp.seq &gt;= 65534 || rtp.seq &lt;= 0)"))
        #expect(text.contains("rtp.ssrc == 0xDEADBEEF &amp;&amp; rtp.seq &gt;= 63 &amp;&amp; rtp.seq &lt;= 65"))
        #expect(text.contains("took over, SSRC 0xDEADBEEF.") && !text.contains("udp.srcport"))
        // Both sides may have one SSRC.
        trace.events = []
        let sender = "0x1A2B3C4D &amp;&amp; ip.src == 192.0.2.1 &amp;&amp; udp.srcport == 4000 &amp;&amp; rtp.seq"
        #expect(page(trace).contains(sender))
        trace.stream.source = "[fe80::1%2]:4002"
        #expect(page(trace).contains("&amp;&amp; ipv6.src == fe80::1 &amp;&amp; udp.srcport == 4002 &amp;&amp;"))
        trace.stream.source = "nonsense"
        #expect(!page(trace).contains("udp.srcport"))
    }

    @Test func `up to fifty gaps are bands, and more are a strip to the very end`() throws {
        let few = page(trace(rowCount: 3000) { $0 % 60 == 30 })
        #expect(few.contains("50 audible gaps") && count("class=\"band\"", in: few) == 50 * 4)
        // 30 minutes in which every second a packet is lost.
        let many = page(trace(rowCount: 90_000) { $0 % 50 == 25 })
        #expect(many.contains("1800 audible gaps") && !many.contains("class=\"band\""))
        let lane = try part(of: many, from: "aria-label=\"Gaps and events\"", to: "</svg>")
        #expect(count("missing, mostly lost", in: String(lane)) == 300)
        #expect(lane.contains("29:54.0 to 30:00.0: 120 ms missing"))
        #expect(many.contains("The longest 200 gaps") && count("rtp.ssrc", in: many) == 200)
        #expect(many.utf8.count < 400_000)
    }

    @Test func `the longest gaps are listed where there are too many`() {
        let text = page(trace(rowCount: 30_000) { $0 % 50 == 25 || 29_900...29_910 ~= $0 })
        #expect(text.contains("The longest 200 gaps") && text.contains("<td class=\"n\">220</td>"))
    }

    @Test func `what has nothing to show is not drawn`() {
        let clean = page(trace(rowCount: 500))
        for title in ["Packets", "Concealed sound", "Stretched sound", "Gaps and events"] {
            #expect(!clean.contains("<b>\(title)</b>"), "\(title)")
        }
        #expect(clean.contains("<b>Delay</b>") && clean.contains("There is no audible gap."))
        #expect(!clean.contains("<h3>Figures</h3>") && !clean.contains("<h3>Events</h3>"))
        let empty = page(TraceFile(codec: "opus", clockRate: 48000, ptimeMs: 20))
        #expect(!empty.contains("<svg") && empty.contains("no rows"))
    }

    @Test func `where nothing was played there is no word of gaps`() {
        var silent = trace(rowCount: 100)
        for index in silent.rows.indices { silent.rows[index].operation = .idle }
        for text in [page(silent), page(TraceFile(codec: "opus", clockRate: 48000, ptimeMs: 20))] {
            #expect(text.contains("Nothing was heard") && !text.contains("audible gap") && !text.contains("<svg"))
        }
    }

    @Test func `what runs on behind the last packet is no part of the page`() {
        let whole = trace(rowCount: 150) { $0 >= 100 }
        let leg = ReportLeg(whole, GapAnalysis(whole), notes: [])
        #expect(leg.seconds == 2 && leg.trace.rows.count == 100)
        #expect(!page(whole).contains("<b>Concealed sound</b>"))
    }

    @Test func `the quality over time is that of the rate`() throws {
        var narrow = trace(rowCount: 300) { $0 % 10 == 3 }
        (narrow.codec, narrow.clockRate) = ("L16", 8000)
        var wide = narrow
        wide.clockRate = 44_100
        let values = try [narrow, wide].map { try #require(QualityWindows.points($0).first).value }
        #expect(values[0] != values[1])
    }

    @Test func `the worse direction is told by its verdict, then by its score`() {
        func leg(_ trace: TraceFile, mos: String?) -> ReportLeg {
            var trace = trace
            trace.figures = mos.map { [TraceFile.Figure(name: "quality mos listening", value: $0)] } ?? []
            return ReportLeg(trace, GapAnalysis(trace), notes: [])
        }
        var silent = trace(rowCount: 100)
        for index in silent.rows.indices { silent.rows[index].operation = .idle }
        let order = [
            leg(silent, mos: nil), leg(trace(rowCount: 100), mos: "1.5"),
            leg(trace(rowCount: 100) { $0 % 10 == 3 }, mos: "2"), leg(trace(rowCount: 100), mos: "2"),
            leg(trace(rowCount: 100), mos: "4.2"), leg(trace(rowCount: 100), mos: nil),
        ]
        for (index, worse) in order.enumerated() {
            #expect(!worse.isWorse(than: worse))
            for better in order[(index + 1)...] {
                #expect(worse.isWorse(than: better) && !better.isWorse(than: worse), "\(index)")
            }
        }
        #expect(order[1].summary == ["Bad", "MOS 1.5"] && order[0].summary == ["Nothing was heard"])
    }

    @Test func `silence that the sender left out is not drawn as concealed`() {
        var trace = trace(rowCount: 200) { 50..<56 ~= $0 }
        for index in 50..<56 { trace.rows[index].missingCount = 0 }
        trace.rows[56].paused = 120
        #expect(!page(trace).contains("<b>Concealed sound</b>"))
    }

    @Test func `each figure stands once, beside what the other side tells`() throws {
        var trace = trace(rowCount: 100)
        let figures = [
            ("playout delay ms", "55.64"), ("received concealed ms", "1180"), ("received late", "7"),
            ("quality loss percent", "2.87"), ("quality remote loss percent", "3.13"),
            ("rtcp fraction lost", "0.05859375"), ("received refused other address", "3"),
        ]
        trace.figures = figures.map { TraceFile.Figure(name: $0, value: $1) }
        let text = page(trace)
        for value in ["55.64", "1180", "2.87", "3.13", "5.86"] {
            #expect(count(">\(value)<", in: text) == 1, "\(value)")
        }
        let row = try part(of: text, from: "lost and not recovered, %</td>", to: "</tr>")
        #expect(row == "<td class=\"n\">2.87</td><td class=\"n\">3.13</td>")
        #expect(!text.contains("refused other address"))
        // A capture has no word of the other side.
        trace.figures = [TraceFile.Figure(name: "quality loss percent", value: "2.87")]
        let alone = page(trace)
        #expect(alone.contains("this side hears") && !alone.contains("the other side hears"))
        #expect(count("<td class=\"n\"></td>", in: alone) == 0)
    }

    @Test func `both directions are on one page`() throws {
        var back = trace(rowCount: 100)
        (back.stream.source, back.stream.destination) = ("[2001:db8::1]:5004", "192.0.2.1:4000")
        back.stream.ssrc = 7
        let text = page(trace(rowCount: 100), back)
        #expect(count("<section", in: text) == 2 && count("<h1", in: text) == 1)
        let second = try part(of: text, from: "<h2 class=\"verdict\">", to: "</h2>")
        #expect(second.contains("[2001:db8::1]:5004 → 192.0.2.1:4000") && second.contains("0x00000007"))
    }

    @Test func `a hostile trace neither brings a script nor a large page`() {
        let evil = "</script><script>alert(1)</script><img src=x>\"' onload=\u{202E}"
        var trace = trace(rowCount: 40_000) { $0 % 7 == 3 }
        // Times in no order, values that no call has.
        for index in trace.rows.indices where index % 3 == 0 {
            trace.rows[index].time = MediaTime(nanoseconds: Int64(index * 7919 % 40_000) * 1_000_000_000)
            trace.rows[index].arrivalDelay = index % 2 == 0 ? 1e9 : -1e9
            trace.rows[index].stretched = -1e9
        }
        trace.codec = String(repeating: evil, count: 10_000)
        trace.stream.source = trace.codec
        let names = ["quality mos conversational", "received lost", "playout delay ms", evil]
        trace.figures = names.map { TraceFile.Figure(name: $0, value: "1e999\(evil)") }
        trace.events = (0..<65_536).map { index in
            let kinds = TraceEvent.Kind.allCases
            let amount = [Int.min, Int.max, -1, 30][index % 4]
            return TraceEvent(
                timeMs: [-1e300, 1e300, 5, Double(index)][index % 4],
                kind: kinds[index % kinds.count],
                amount: amount
            )
        }
        let text = page(trace, title: evil, notes: [String](repeating: evil, count: 10_000))
        #expect(count("<script", in: text) == 1 && !text.contains("<img") && !text.contains("\u{202E}"))
        #expect(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
        #expect(text.utf8.count < 1_000_000, "\(text.utf8.count)")
        #expect(!text.contains("NaN") && !text.contains("inf"))
    }

    @Test(arguments: [
        (Int64(0), "1970-01-01", "00:00:00.000"), (951_782_399_999, "2000-02-28", "23:59:59.999"),
        (951_782_400_000, "2000-02-29", "00:00:00.000"), (1_795_434_000_123, "2026-11-23", "11:40:00.123"),
        (4_107_542_400_000, "2100-03-01", "00:00:00.000"), (253_402_300_799_999, "9999-12-31", "23:59:59.999"),
    ])
    func `times are those of the calendar`(milliseconds: Int64, date: String, time: String) {
        let found = UTCTime(unixMilliseconds: milliseconds)
        #expect(found.date == date && found.time == time)
    }
}
