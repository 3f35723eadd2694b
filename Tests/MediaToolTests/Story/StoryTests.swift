import CallBasics
import SIP
import Testing

@testable import media_tool

/// Stories as files and as pages.
@Suite struct StoryTests {
    private func message(_ lines: String...) throws -> SIPMessage {
        try SIPMessage(datagram: Array((lines + ["", ""]).joined(separator: "\r\n").utf8))
    }

    private var story: Story {
        var story = Story(kind: "call", parties: ["this side", "sip:bob@example.org"])
        story.callID = "c1"
        story.steps = [
            Story.Step(time: 0, layer: .dns, what: "srv", detail: [("name", "_sip._udp.example.org")]),
            Story.Step(time: 1.25, layer: .transaction, what: "INVITE sip:b SIP/2.0", remote: "udp x:1", isSent: true),
            Story.Step(time: 2, layer: .transaction, what: "SIP/2.0 486 Busy Here", remote: "udp x:1", isSent: false),
        ]
        story.outcome = Story.Outcome(status: "busy", code: 486, reason: "none", because: "486 Busy Here from udp x:1")
        return story
    }

    @Test func `what is written is read again`() throws {
        let text = story.json.text
        #expect(Story.isLikely(Array(text.utf8)))
        let read = try Story(parsing: Array(text.utf8))
        #expect(read.json.text == text)
        #expect(read.steps.map(\.isSent) == [nil, true, false])
        #expect(read.seed == nil && read.startUnixMs == nil)
        var dated = story
        dated.startUnixMs = 1_795_434_000_123
        #expect(try Story(parsing: Array(dated.json.text.utf8)).startUnixMs == 1_795_434_000_123)
        for seed: UInt64 in [7, 1 << 53 + 1, .max] {
            var virtual = story
            virtual.seed = seed
            #expect(virtual.json.text.contains(#""clock":"virtual","seed":"#))
            #expect(try Story(parsing: Array(virtual.json.text.utf8)).seed == seed)
        }
    }

    @Test(arguments: [
        "", "{", "[]", "{}", #"{"kind":"call"}"#, #"{"kind":1,"steps":[],"outcome":{}}"#,
        #"{"kind":"call","steps":{},"outcome":{}}"#, #"{"kind":"call","steps":[1],"outcome":{}}"#,
        #"{"kind":"call","steps":[{"t":0,"layer":"sky","what":""}],"outcome":{}}"#,
        #"{"kind":"call","steps":[{"t":"0","layer":"dns","what":""}],"outcome":{}}"#,
        #"{"kind":"call","steps":[{"t":0,"layer":"dns"}],"outcome":{}}"#,
    ])
    func `what is no story is refused`(text: String) {
        #expect(throws: ToolFailure.self) { try Story(parsing: Array(text.utf8)) }
    }

    @Test func `more steps than are kept are refused, and strange numbers do no harm`() throws {
        let row = #"{"t":1e300,"layer":"flow","what":"open"}"#
        func text(_ count: Int) -> [UInt8] {
            let rows = Array(repeating: row, count: count).joined(separator: ",")
            let rest = #""leftOut":1e300,"startUnixMs":1e300,"outcome":{"code":1e300}"#
            return Array(#"{"kind":"call","steps":[\#(rows)],\#(rest)}"#.utf8)
        }
        let read = try Story(parsing: text(Story.stepLimit))
        #expect(read.outcome?.code == nil && read.startUnixMs == nil)
        #expect(LadderPage(title: "x", story: read).html.contains("</svg>"))
        #expect(throws: ToolFailure.self) { try Story(parsing: text(Story.stepLimit + 1)) }
    }

    @Test func `the page names the outcome, its cause and each message, and nothing of it is markup`() throws {
        var told = story
        told.parties = ["<b>", "\"&"]
        told.steps[1].what = "INVITE <script> SIP/2.0"
        let html = LadderPage(title: "<i>", story: told).html
        for text in [
            "busy (486)", "486 Busy Here from udp x:1", "INVITE &lt;script&gt; SIP/2.0", "&lt;b&gt;", "udp x:1",
            "1.25 ms", "dns: srv (name _sip._udp.example.org)", "&lt;i&gt;", "class=\"arrow back refusal\"",
        ] {
            #expect(html.contains(text), "\(text)")
        }
        #expect(!html.contains("<script>") && !html.contains("<i>:"))
    }

    @Test func `the sound of the same call is below the ladder, and tells where on it it begins`() throws {
        var trace = TraceFile(codec: "PCMU", clockRate: 8000, ptimeMs: 20)
        trace.stream.startUnixMs = 1_795_434_000_535
        let leg = ReportLeg(trace, GapAnalysis(trace), notes: [])
        var told = story
        let undated = LadderPage(title: "x", story: told, legs: [leg]).html
        #expect(undated.contains("<h2 class=\"verdict\">") && !undated.contains("of the ladder"))
        told.startUnixMs = 1_795_434_000_123
        let html = LadderPage(title: "x", story: told, legs: [leg, leg]).html
        let (ladder, sound) = (html.firstRange(of: "aria-label=\"ladder\""), html.firstRange(of: "<section"))
        #expect(try #require(ladder).lowerBound < #require(sound).lowerBound)
        #expect(html.ranges(of: "from 412 ms of the ladder on").count == 2 && html.contains("script-src"))
    }

    @Test func `many addresses share the last column`() {
        var told = story
        told.steps = (0..<40).map {
            Story.Step(time: Double($0), layer: .transaction, what: "OPTIONS", remote: "udp \($0):1", isSent: true)
        }
        let html = LadderPage(title: "x", story: told).html
        #expect(html.contains("udp 5:1</text>") && !html.contains("udp 6:1</text>"))
    }

    @Test func `the cause is the first thing that went wrong`() throws {
        var cause = StoryCause()
        cause.note(try message("INVITE sip:b SIP/2.0"), isSent: true, "udp x:1")
        #expect(cause.first == "nothing answered the INVITE to udp x:1")
        cause.note(try message("SIP/2.0 407 Proxy Authentication Required"), isSent: false, "udp x:1")
        #expect(cause.first == "407 Proxy Authentication Required from udp x:1")
        cause.note(try message("SIP/2.0 200 OK"), isSent: false, "udp x:1")
        #expect(cause.first == nil)
        cause.note("flow failed: tcp x:1: Connection refused")
        cause.note(try message("SIP/2.0 503 Service Unavailable"), isSent: false, "udp x:1")
        #expect(cause.first == "flow failed: tcp x:1: Connection refused")
    }
}
