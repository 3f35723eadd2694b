@testable import AgentSockets
import CallBasics
import Foundation
import MediaEngine
import NIOHTTP1
import TestSupport
import Testing

/// Calls whose other end is an agent, in real time: its sound, its marks, and what it is told.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentLineRealTimeTests {
    /// A call with an agent on a line.
    @dynamicMemberLookup private struct Talk {
        let line: AgentLine
        private let call: TestCall

        init(with line: AgentLine) async throws {
            self.line = line
            call = try await TestCall(voice: line.voice, ears: line.ears)
        }

        subscript<Value>(dynamicMember path: KeyPath<TestCall, Value>) -> Value { call[keyPath: path] }

        func hear(_ count: Int) async -> Int { await call.hear(count) }

        func blocks(until loudness: TestCall.Loudness, atMost limit: Int) async -> Int {
            await call.blocks(until: loudness, atMost: limit)
        }

        func end() async throws {
            await line.end()
            try await call.end()
        }
    }

    /// A tone of 1000 Hz, in u-law.
    private static func tone(_ frameCount: Int) -> [UInt8] { (0..<frameCount).map { $0 / 4 % 2 == 0 ? 0x90 : 0x10 } }

    /// 200 ms of somebody else.
    private static let voice: [Int16] = (0..<1600).map { $0 / 4 % 2 == 0 ? 12_000 : -12_000 }

    private static func media(_ frameCount: Int) -> [UInt8] {
        let payload = Data(tone(frameCount)).base64EncodedString()
        return TestAgentServer.text(#"{"event":"media","media":{"payload":"\#(payload)"}}"#)
    }

    private static func mark(_ name: String) -> [UInt8] {
        TestAgentServer.text(#"{"event":"mark","mark":{"name":"\#(name)"}}"#)
    }

    /// The messages of a kind that have come to an agent.
    private static func messages(_ kind: String, _ seen: TestAgentServer.Seen) -> [[String: Any]] {
        seen.frames.compactMap { frame in
            let message = try? JSONSerialization.jsonObject(with: Data(frame.bytes)) as? [String: Any]
            return message?["event"] as? String == kind ? message : nil
        }
    }

    private func open(_ server: TestAgentServer) async throws -> AgentLine {
        let call = AgentCall(callID: "CA1", parameters: ["from": "alice"])
        return try await .open(to: AgentAddress("ws://127.0.0.1:\(server.port)/ws"), call)
    }

    @Test func `what an agent says at once is spoken whole, and its marks come back as they are reached`() async throws
    {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        let begun = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        let start = try #require(Self.messages("start", begun).first?["start"] as? [String: Any])
        #expect(
            start["callSid"] as? String == "CA1" && start["customParameters"] as? [String: String] == ["from": "alice"]
        )
        // In one segment: three times 200 ms.
        server.send((1...3).flatMap { Self.media(1600) + Self.mark("part \($0)") })
        let loud = await talk.hear(60)
        #expect(29...32 ~= loud, "\(loud)")
        let told = Self.messages("mark", try await server.seen.wait { Self.messages("mark", $0).count == 3 })
        let marks = try told.map { try #require($0["mark"] as? [String: Any]) }
        #expect(marks.map { $0["name"] as? String } == ["part 1", "part 2", "part 3"])
        #expect(marks.map { $0["positionMs"] as? Int } == [200, 400, 600])
        #expect(marks.allSatisfy { $0["played"] as? Bool == true })
        let report = talk.line.report
        #expect(report.played == .milliseconds(600) && report.playedMarks == 3 && report.gaps == 0)
        try await talk.end()
    }

    @Test func `what is cleared falls silent at once, its marks come back as dropped, and what follows is heard`()
        async throws
    {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        _ = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        server.send((1...10).flatMap { Self.media(8000) + Self.mark("second \($0)") })
        while await talk.hear(1) == 0 {}
        server.send(TestAgentServer.text(#"{"event":"clear"}"#))
        _ = try await server.seen.wait { Self.messages("mark", $0).count == 10 }
        // What was on its way: a packet, and what the listener's jitter buffer holds.
        let loud = await talk.hear(40)
        #expect(loud <= 12, "\(loud)")
        let marks = Self.messages("mark", server.seen.value).compactMap { $0["mark"] as? [String: Any] }
        #expect(
            marks.allSatisfy { $0["played"] as? Bool == false }
                && Set(marks.compactMap { $0["positionMs"] as? Int }).count == 1
        )
        let unheard = talk.line.report.unheard
        #expect(unheard > .milliseconds(9300) && unheard <= .seconds(10), "\(unheard)")
        server.send(Self.media(1600) + Self.mark("again"))
        let again = await talk.hear(40)
        #expect(9...12 ~= again, "\(again)")
        let last = try await server.seen.wait { Self.messages("mark", $0).count == 11 }
        let mark = Self.messages("mark", last).last?["mark"] as? [String: Any]
        #expect(mark?["name"] as? String == "again" && mark?["played"] as? Bool == true)
        try await talk.end()
    }

    @Test func `an application of Asterisk's channel is told of its queue, and pauses, goes on and flushes`()
        async throws
    {
        @Sendable func event(_ word: String, _ seen: TestAgentServer.Seen) -> Int { Self.messages(word, seen).count }
        func command(_ word: String) -> [UInt8] { TestAgentServer.text(#"{"command":"\#(word)"}"#) }
        let server = try await TestAgentServer()
        var options = AgentLine.Options()
        (options.format, options.isPausedBySpeech) = (.asterisk, false)
        let address = try AgentAddress("ws://127.0.0.1:\(server.port)/media")
        let talk = try await Talk(with: try await .open(to: address, AgentCall(callID: "1"), options))
        _ = try await server.seen.wait { event("MEDIA_START", $0) == 1 && $0.frames.count > 3 }
        // 19 s, of which nothing is lost.
        server.send(command("START_MEDIA_BUFFERING") + TestAgentServer.frame(2, Self.tone(152_000)))
        let first = await talk.blocks(until: .loud, atMost: 100)
        #expect(first <= 100)
        _ = try await server.seen.wait { event("MEDIA_XOFF", $0) == 1 }
        server.send(command("PAUSE_MEDIA"))
        let ending = await talk.blocks(until: .silent, atMost: 20)
        let paused = await talk.hear(20)
        server.send(command("CONTINUE_MEDIA"))
        let beginning = await talk.blocks(until: .loud, atMost: 20)
        #expect(ending <= 20 && paused == 0 && beginning <= 20, "\(ending) \(paused) \(beginning)")
        server.send(command("REPORT_QUEUE_DRAINED") + command("PAUSE_MEDIA") + command("FLUSH_MEDIA"))
        _ = try await server.seen.wait { event("QUEUE_DRAINED", $0) == 1 && event("MEDIA_XON", $0) == 1 }
        // A flush ends what was paused: what comes then is heard, and so is its end.
        let last = #"{"command":"STOP_MEDIA_BUFFERING","correlation_id":"last"}"#
        server.send(
            command("START_MEDIA_BUFFERING") + TestAgentServer.frame(2, Self.tone(1601)) + TestAgentServer.text(last)
        )
        let seen = try await server.seen.wait { event("MEDIA_BUFFERING_COMPLETED", $0) == 1 }
        #expect(Self.messages("MEDIA_BUFFERING_COMPLETED", seen).first?["correlation_id"] as? String == "last")
        let report = talk.line.report
        #expect(report.lost == .zero && report.malformed == 0 && report.unheard > .seconds(17), "\(report)")
        // What it has paused, an agent that goes never lets anybody hear.
        server.send(command("PAUSE_MEDIA") + TestAgentServer.frame(2, Self.tone(8000)))
        #expect(Polling.wait { talk.line.waiting > .milliseconds(900) })
        server.disconnect()
        #expect(Polling.wait { talk.line.waiting == .zero })
        // No more than the 200 ms of before.
        let late = await talk.hear(60)
        #expect(late <= 25, "\(late)")
        try await talk.end()
    }

    @Test func `a signed request is told with the agent's own fields, and other formats have no signature`()
        async throws
    {
        let server = try await TestAgentServer()
        var options = AgentLine.Options()
        (options.authToken, options.headers) = ("12345", [("X-Key", "7")])
        let address = try AgentAddress("ws://127.0.0.1:\(server.port)/ws?a=1")
        let line = try await AgentLine.open(to: address, nil, options)
        let fields = try #require(server.seen.value.request?.headers)
        let signature = TwilioSignature.field(of: address.description, token: "12345").value
        #expect(fields["X-Key"] == ["7"] && fields["X-Twilio-Signature"] == [signature])
        await line.end()
        for (place, format) in [("ws://127.0.0.1:1", AgentFormat.telnyx), ("audiosocket:127.0.0.1:1", .twilio)] {
            options.format = format
            let error = await #expect(throws: AgentError.self) {
                _ = try await AgentLine.open(to: AgentAddress(place), nil, options)
            }
            #expect(error?.code == .invalidOptions, "\(place)")
        }
    }

    @Test func `keys and the end are told, by whoever ends it`() async throws {
        for callEnds in [false, true] {
            let server = try await TestAgentServer()
            let talk = try await Talk(with: try await open(server))
            talk.line.press(try #require(DTMFDigit("#")))
            _ = try await server.seen.wait { Self.messages("dtmf", $0).count == 1 }
            if callEnds { try await talk.calls[1].end() } else { await talk.line.end() }
            let seen = try await server.seen.wait { $0.endedCount == 1 }
            #expect(Self.messages("stop", seen).count == 1 && seen.frames.last == .close(1000))
            var last: AgentLine.Event?
            for await event in talk.line.events { last = event }
            #expect(last == .ended(nil))
            try await talk.end()
        }
    }

    @Test func `who speaks into what an agent says is heard at once, and the agent goes on unless it clears`()
        async throws
    {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        _ = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        server.send(Self.media(32_000) + Self.mark("end"))
        while await talk.hear(1) == 0 {}
        _ = await talk.hear(20)
        talk.speech.tryWrite(Self.voice.span)
        // Two jitter buffers are on the way.
        let block = await talk.blocks(until: .silent, atMost: 20)
        #expect(4...15 ~= block, "\(block)")
        let pause = await talk.blocks(until: .loud, atMost: 40)
        #expect(27...33 ~= pause, "\(pause)")
        let seen = try await server.seen.wait { Self.messages("speech", $0).count == 2 }
        let states = Self.messages("speech", seen).compactMap { $0["speech"] as? [String: Any] }
        #expect(states.compactMap { $0["state"] as? String } == ["started", "stopped"])
        let times = states.compactMap { ($0["timestamp"] as? String).flatMap(Int.init) }
        #expect(180...220 ~= times[1] - times[0], "\(times)")
        #expect(talk.line.report.pauses == 1 && talk.line.report.resumptions == 1)
        // The next time it clears.
        _ = await talk.hear(20)
        talk.speech.tryWrite(Self.voice.span)
        _ = await talk.blocks(until: .silent, atMost: 20)
        server.send(TestAgentServer.text(#"{"event":"clear"}"#) + Self.media(1600) + Self.mark("new"))
        let told = try await server.seen.wait { Self.messages("mark", $0).count == 2 }
        let marks = Self.messages("mark", told).compactMap { $0["mark"] as? [String: Any] }
        #expect(marks.map { $0["played"] as? Bool } == [false, true], "\(marks)")
        let positions = marks.compactMap { $0["positionMs"] as? Int }
        #expect(positions[1] - positions[0] == 200, "\(positions)")
        #expect(talk.line.report.pauses == 2 && talk.line.report.resumptions == 1)
        try await talk.end()
    }

    @Test func `an agent hears nothing before it is told of the call, and what it wants of it is told`() async throws {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: .open(to: AgentAddress("ws://127.0.0.1:\(server.port)/ws"), nil))
        // It speaks at once, and the call's clock runs.
        server.send(Self.media(1600) + Self.mark("first"))
        let early = await talk.hear(25)
        #expect(early == 0 && talk.line.waiting == .milliseconds(200))
        talk.line.press(try #require(DTMFDigit("1")))
        #expect(server.seen.value.frames.isEmpty)
        talk.line.begin(AgentCall(callID: "CA2"))
        talk.line.begin(AgentCall(callID: "CA3"))
        let loud = await talk.hear(25)
        #expect(9...11 ~= loud)
        let begun = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        #expect(Self.messages("start", begun).count == 1 && Self.messages("dtmf", begun).isEmpty)
        #expect((Self.messages("media", begun)[0]["media"] as? [String: Any])?["timestamp"] as? String == "0")
        for text in [
            "dtmf\",\"dtmf\":{\"digit\":\"5\"}", "hold\"", "resume\"", "transfer\",\"transfer\":{\"to\":\"sip:a\"}",
        ] {
            server.send(TestAgentServer.text("{\"event\":\"\(text)}"))
        }
        var events: [AgentLine.Event] = []
        for await event in talk.line.events where event != .voice(.speaks) && event != .voice(.silent) {
            events.append(event)
            if case .transfer = event { break }
        }
        let mark = AgentLine.Event.voice(.marked(name: "first", isPlayed: true, position: .milliseconds(200)))
        #expect(events == [mark, .press("5"), .hold(true), .hold(false), .transfer(to: "sip:a")])
        talk.line.noteTransferFailed(to: "sip:a", status: 603)
        await talk.line.end("expired")
        let seen = try await server.seen.wait { $0.endedCount == 1 }
        let failed = Self.messages("transferFailed", seen).first?["transferFailed"] as? [String: Any]
        #expect(failed?["to"] as? String == "sip:a" && failed?["code"] as? Int == 603)
        let stop = Self.messages("stop", seen).first?["stop"] as? [String: Any]
        #expect(stop?["reason"] as? String == "expired")
        try await talk.end()
    }

    @Test func `an agent that goes is told of, and what it had said is spoken`() async throws {
        let server = try await TestAgentServer(.stream())
        let line = try await AgentLine.open(
            to: AgentAddress("audiosocket:127.0.0.1:\(server.port)"),
            AgentCall(callID: "any")
        )
        let talk = try await Talk(with: line)
        // The UUID, and then 20 ms each.
        let bytes = try await server.seen.wait { $0.bytes.count > 19 + 323 }.bytes
        #expect(bytes.prefix(3) == [1, 0, 16] && bytes[19..<22] == [0x10, 1, 0x40])
        // More than the call takes at once.
        let samples = (0..<8000).map { place -> [UInt8] in place / 4 % 2 == 0 ? [0, 0x20] : [0, 0xE0] }
        let head: [UInt8] = [0x10, 0x3E, 0x80]
        server.send(head + samples.flatMap(\.self) + [0, 0, 0])
        var events: [AgentLine.Event] = []
        for await event in line.events {
            events.append(event)
            if event == .hangUp { server.disconnect() }
        }
        #expect(events.contains(.hangUp))
        guard case .ended(let error?) = events.last else { throw Missing("the end") }
        #expect(error.code == .ended && line.waiting > .milliseconds(500))
        let loud = await talk.hear(70)
        #expect(48...52 ~= loud && line.waiting == .zero, "\(loud)")
        try await talk.end()
    }

    @Test func `positions count what was heard, however often it is cleared`() async throws {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        _ = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        let clear = TestAgentServer.text(#"{"event":"clear"}"#)
        for number in 1...3 {
            // Two in one segment, and new sound behind them.
            server.send(Self.media(8000) + Self.mark("cut \(number)"))
            while await talk.hear(1) == 0 {}
            server.send(clear + clear + Self.media(1600) + Self.mark("heard \(number)"))
            let last = try await server.seen.wait { Self.messages("mark", $0).count == 2 * number }
            let marks = Self.messages("mark", last).suffix(2).compactMap { $0["mark"] as? [String: Any] }
            #expect(marks.map { $0["played"] as? Bool } == [false, true], "\(marks)")
            let positions = marks.compactMap { $0["positionMs"] as? Int }
            #expect(positions[1] - positions[0] == 200, "\(positions)")
        }
        let report = talk.line.report
        #expect(report.clears == 6 && report.played + report.unheard == .milliseconds(3 * 1200), "\(report)")
        try await talk.end()
    }

    @Test func `at the end of the call marks are told that it has not reached, and nothing behind the end`()
        async throws
    {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        _ = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        server.send((1...4).flatMap { Self.media(4000) + Self.mark("\($0)") })
        while await talk.hear(1) == 0 {}
        try await talk.calls[1].end()
        let seen = try await server.seen.wait { $0.endedCount == 1 }
        let marks = Self.messages("mark", seen).compactMap { $0["mark"] as? [String: Any] }
        #expect(marks.map { $0["name"] as? String } == ["1", "2", "3", "4"])
        #expect(marks.allSatisfy { $0["played"] as? Bool == false })
        #expect(Self.messages("stop", seen).count == 1 && seen.frames.last == .close(1000))
        try await talk.end()
    }

    @Test func `what an agent that has gone had still to say is over with the call, its marks, too`() async throws {
        let server = try await TestAgentServer()
        let talk = try await Talk(with: try await open(server))
        _ = try await server.seen.wait { Self.messages("media", $0).count > 3 }
        server.send(Self.media(8000) + Self.mark("a") + Self.media(8000) + Self.mark("b"))
        while await talk.hear(1) == 0 {}
        server.disconnect()
        for await event in talk.line.events { if case .ended = event { break } }
        #expect(talk.line.waiting > .seconds(1))
        for call in talk.calls { try await call.end() }
        while talk.line.waiting > .zero { await Task.yield() }
        #expect(talk.line.report.droppedMarks == 2 && talk.line.report.playedMarks == 0)
        try await talk.end()
    }

    @Test func `a line that nobody has ends`() async throws {
        let server = try await TestAgentServer()
        do { _ = try await open(server) }
        try await server.seen.wait { $0.endedCount == 1 }
    }
}

private struct Missing: Error {
    let what: String
    init(_ what: String) { self.what = what }
}
