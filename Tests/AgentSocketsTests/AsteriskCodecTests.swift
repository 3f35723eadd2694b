import Testing

@testable import AgentSockets

@Suite struct AsteriskCodecTests {
    private static func texts(_ frames: [AgentFrame]) -> [String] { frames.compactMap(AgentCodecTests.text) }

    @Test func `Asterisk's channel tells its events in JSON`() {
        var story = AgentCodecTests.story(.asterisk, 16_000)
        let start = story.removeFirst().replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, with: "ID")
        #expect(
            start == #"{"event":"MEDIA_START","channel_id":"CA1","connection_id":"ID","channel":"WebSocket/ID","#
                + #""format":"slin16","optimal_frame_size":640,"ptime":20,"channel_variables":{"from":"sip:a","key":"v"}}"#
        )
        #expect(
            story == [
                "[0, 0, 0, 0]", "[0, 0, 1, 0]", #"{"event":"DTMF_END","channel_id":"CA1","digit":"5"}"#,
                #"{"event":"MEDIA_MARK_PROCESSED","channel_id":"CA1","correlation_id":"\"m\"","position_ms":20}"#,
                #"{"event":"MEDIA_MARK_DROPPED","channel_id":"CA1","correlation_id":"n","position_ms":20}"#,
            ]
        )
    }

    @Test func `Asterisk's channel tells the same in lines`() {
        var story = AgentCodecTests.story(.asteriskPlain)
        let start = story.removeFirst().replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, with: "ID")
        #expect(
            start
                == "MEDIA_START connection_id:ID channel:WebSocket/ID channel_id:CA1 format:ulaw optimal_frame_size:160 "
                + "ptime:20"
        )
        #expect(story == ["[255, 255]", "[255, 255]", "DTMF_END digit:5 channel_id:CA1", #"MEDIA_MARK_PROCESSED "m""#])
    }

    @Test(arguments: [AgentFormat.asterisk, .asteriskPlain])
    func `an application of Asterisk's channel marks, clears, pauses and hangs up`(format: AgentFormat) {
        var codec = AgentCodecTests.codec(format, 16_000)
        func decode(_ command: String, _ identifier: String? = nil) -> [AgentRequest] {
            guard format == .asterisk else {
                return codec.decode(AgentCodecTests.frame([command, identifier ?? ""].joined(separator: " ")))
            }
            let told = identifier.map { #","correlation_id":"\#($0)""# } ?? ""
            return codec.decode(AgentCodecTests.frame(#"{"command":"\#(command)"\#(told)}"#))
        }
        #expect(decode("ANSWER").isEmpty && decode("START_MEDIA_BUFFERING").isEmpty)
        let sound = [codec.decode(.binary([1, 0, 2])), codec.decode(.binary([0, 3, 0]))]
        #expect(sound == [[.sound([1])], [.sound([2, 3])]])
        let marks = decode("STOP_MEDIA_BUFFERING", "file 1") + decode("MARK_MEDIA", "a") + decode("MARK_MEDIA")
        #expect(marks == [.mark("STOP_MEDIA_BUFFERING file 1"), .mark("a"), .mark("")])
        #expect(decode("PAUSE_MEDIA") == [.pause(true)] && decode("CONTINUE_MEDIA") == [.pause(false)])
        #expect(decode("FLUSH_MEDIA") == [.clear] && decode("HANGUP") == [.clear, .hangUp])
        #expect(codec.malformedCount == 0)
        let long = String(repeating: "a", count: 1025)
        #expect(decode("MARK_MEDIA", long).isEmpty && decode("MARK_MEDIA", "STOP_MEDIA_BUFFERING").isEmpty)
        // Also where nothing was begun, as behind a flush.
        #expect(decode("STOP_MEDIA_BUFFERING") == [.mark("STOP_MEDIA_BUFFERING")] && codec.malformedCount == 2)
        #expect(decode("SOMETHING_NEW").isEmpty && codec.malformedCount == 3)
        let wrong = ["", "{", "[]", #"{"command":7}"#, String(repeating: " ", count: 2049)].map {
            codec.decode(AgentCodecTests.frame($0))
        }
        #expect(wrong.allSatisfy(\.isEmpty) && codec.malformedCount == 8)
        let fates = [
            ("STOP_MEDIA_BUFFERING file 1", MarkFate.played), ("STOP_MEDIA_BUFFERING", .dropped), ("", .played),
        ]
        let told = fates.flatMap { Self.texts(codec.encode(.mark($0.0, $0.1, position: 5))) }
        #expect(
            told
                == (format == .asterisk
                    ? [
                        #"{"event":"MEDIA_BUFFERING_COMPLETED","channel_id":"","correlation_id":"file 1"}"#,
                        #"{"event":"MEDIA_MARK_PROCESSED","channel_id":"","correlation_id":"","position_ms":5}"#,
                    ] : ["MEDIA_BUFFERING_COMPLETED file 1", "MEDIA_MARK_PROCESSED"])
        )
    }

    @Test func `an application is told when too much waits, when there is room again, and when nothing waits`() {
        var codec = AgentCodecTests.codec(.asteriskPlain)
        func told(_ frames: Int) -> [String] { Self.texts(codec.encode(.waiting(frameCount: frames))) }
        func ask(_ command: String) { _ = codec.decode(AgentCodecTests.frame(command)) }
        #expect(told(0).isEmpty && told(899 * 160).isEmpty && told(899 * 160 + 1) == ["MEDIA_XOFF"])
        #expect(
            told(1_000_000).isEmpty && told(800 * 160).isEmpty && told(799 * 160) == ["MEDIA_XON"] && told(1).isEmpty
        )
        ask("REPORT_QUEUE_DRAINED")
        #expect(told(1).isEmpty && told(0) == ["QUEUE_DRAINED"] && told(0).isEmpty)
        for command in ["GET_STATUS", "START_MEDIA_BUFFERING", "PAUSE_MEDIA"] { ask(command) }
        let status = "STATUS channel_id: queue_length:900 xon_level:800 xoff_level:900 queue_full:true"
        #expect(
            told(900 * 160) == [
                "MEDIA_XOFF", status + " bulk_media:true media_paused:true",
            ]
        )
        ask("FLUSH_MEDIA")
        ask("GET_STATUS")
        let empty = told(0)
        #expect(
            empty.first == "MEDIA_XON"
                && empty.last?.hasSuffix("queue_full:false bulk_media:false media_paused:false") ?? false
        )
    }

    @Test func `an application is told what was wrong with its commands, eight of them at once`() {
        var codec = AgentCodecTests.codec(.asterisk)
        for command in ["GET STATUS", #"{"command":"SET_MEDIA_DIRECTION","direction":"up"}"#] {
            _ = codec.decode(AgentCodecTests.frame(command))
        }
        let told = Self.texts(codec.encode(.waiting(frameCount: 0)))
        let begin = #"{"event":"ERROR","channel_id":"","error_text":""#
        #expect(
            told == [
                begin + #"This is no command: it cannot be read."}"#,
                begin + #"SET_MEDIA_DIRECTION is not known, or may not come now or in this form."}"#,
            ]
        )
        for _ in 0..<20 { _ = codec.decode(AgentCodecTests.frame("")) }
        let rest = codec.encode(.waiting(frameCount: 0)).count
        let none = codec.encode(.waiting(frameCount: 0))
        #expect(rest == 8 && none.isEmpty && codec.malformedCount == 22)
    }

    @Test func `half a sample is forgotten with what it ended`() {
        var codec = AgentCodecTests.codec(.asteriskPlain, 16_000)
        for command in ["STOP_MEDIA_BUFFERING", "FLUSH_MEDIA", "HANGUP", "SET_MEDIA_DIRECTION both"] {
            _ = codec.decode(AgentCodecTests.frame("START_MEDIA_BUFFERING"))
            let before = codec.decode(.binary([1, 0, 9]))
            _ = codec.decode(AgentCodecTests.frame(command))
            let behind = codec.decode(.binary([2, 0]))
            #expect(before == [.sound([1])] && behind == [.sound([2])], "\(command)")
        }
        _ = codec.decode(AgentCodecTests.frame("FLUSH_MEDIA"))
        let odd = [codec.decode(.binary([1, 0, 9])), codec.decode(.binary([2, 0]))]
        #expect(odd == [[.sound([1])], [.sound([2])]] && codec.malformedCount == 0)
        let line = codec.decode(AgentCodecTests.frame("\tMARK_MEDIA x y\r\n"))
        #expect(line == [.mark("x y")])
        // An identifier is what is behind the blank, whatever it begins with.
        let name = codec.decode(AgentCodecTests.frame("STOP_MEDIA_BUFFERING \u{301}a"))
        guard case .mark(let name)? = name.first else {
            Issue.record("no mark")
            return
        }
        #expect(Self.texts(codec.encode(.mark(name, .played, position: 0))) == ["MEDIA_BUFFERING_COMPLETED \u{301}a"])
    }

    @Test func `the direction of Asterisk's channel is one way, or both`() {
        var codec = AgentCodecTests.codec(.asterisk, 16_000)
        func direct(_ direction: String) -> [AgentRequest] {
            codec.decode(AgentCodecTests.frame(#"{"command":"SET_MEDIA_DIRECTION","direction":"\#(direction)"}"#))
        }
        #expect(direct("out").isEmpty && codec.encode(.sound([1])).isEmpty)
        let spoken = codec.decode(.binary([1, 0]))
        #expect(spoken == [.sound([1])] && direct("in").isEmpty)
        let unspoken =
            codec.decode(.binary([1, 0])) + codec.decode(AgentCodecTests.frame(#"{"command":"MARK_MEDIA"}"#))
        #expect(unspoken.isEmpty && codec.malformedCount == 1 && codec.encode(.sound([1])) == [.binary([1, 0])])
        #expect(direct("both").isEmpty && direct("up").isEmpty && codec.malformedCount == 2)
    }
}
