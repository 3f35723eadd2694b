import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

@Suite struct TalkPageTests {
    private static let record = #"""
        {"callID":"a@<b>","parameters":{"from":"sip:alice"},"left":"agent","right":"other side","events":[
        {"atSeconds":0.5,"event":"speaks"},
        {"atSeconds":1.06,"event":"speechStarted","seconds":1},
        {"atSeconds":1.06,"event":"agentPaused"},
        {"atSeconds":1.5,"event":"cleared","unheardSeconds":2.5},
        {"atSeconds":1.5,"event":"marked","name":"m&n","played":false,"seconds":0.9},
        {"atSeconds":2.2,"event":"speechStopped","seconds":2},
        {"atSeconds":2.75,"event":"speaks"},
        {"atSeconds":3.5,"event":"speechStarted","seconds":3.4},
        {"atSeconds":3.5,"event":"agentPaused"},
        {"atSeconds":4.1,"event":"agentResumed"},
        {"atSeconds":4.2,"event":"speechStopped","seconds":4},
        {"atSeconds":5,"event":"silent"},
        {"atSeconds":5.2,"event":"speaks"},
        {"atSeconds":5.3,"event":"silent"},
        {"atSeconds":5.32,"event":"speechStarted","seconds":5.3},
        {"atSeconds":5.6,"event":"speaks"},
        {"atSeconds":5.72,"event":"speechStopped","seconds":5.5},
        {"atSeconds":6,"event":"transferTo","to":"sip:carol"}]}
        """#

    @Test func `speech, pauses and answers are read out of what happened`() throws {
        let record = try TalkRecord(parsing: Array(Self.record.utf8))
        #expect(TalkRecord.isLikely(Array(Self.record.utf8)) && record.callID == "a@<b>")
        #expect(record.speech(until: 7).map { [$0.start, $0.end] } == [[1, 2], [3.4, 4], [5.3, 5.5]])
        #expect(record.pauses(until: 7).map { [$0.start, $0.end] } == [[1.06, 1.5], [3.5, 4.1]])
        // Who spoke into an agent that went on is not answered, and who is answered at once is.
        #expect(record.answerTimes.map { ($0 * 1000).rounded() } == [750, 100])
    }

    @Test func `what has not ended lasts to the end`() throws {
        let text =
            #"{"callID":"a","events":[{"atSeconds":1,"event":"speechStarted"},{"atSeconds":2,"event":"agentPaused"}]}"#
        let record = try TalkRecord(parsing: Array(text.utf8))
        #expect(record.speech(until: 7).map(\.end) == [7] && record.pauses(until: 1).map(\.end) == [2])
    }

    @Test func `the page has both sides, what happened, and nothing of what it is made of as markup`() throws {
        let scratch = try Scratch()
        // The agent is loud for 3 s, the other side never.
        var samples = [Int16](repeating: 0, count: 2 * 8000 * 6)
        for frame in 0..<24_000 { samples[2 * frame] = frame % 2 == 0 ? 16_384 : -16_384 }
        let path = scratch.file("a.wav")
        try WAVFile.write(path, format: AudioFormat(sampleRate: 8000, channelCount: 2), samples: samples)
        let levels = try TalkLevels(path: path)
        #expect(levels.duration == 6 && levels.agent.count == 300 && levels.other.count == 300)
        #expect(levels.agent[..<150].allSatisfy { abs($0.value + 6.02) < 0.01 } && levels.agent[150].value == -70)
        #expect(levels.other.allSatisfy { $0.value == -70 })
        let record = try TalkRecord(parsing: Array(Self.record.utf8))
        let page = TalkPage(title: "a.json", record: record, levels: levels)
        #expect(page.duration == 6)
        let html = page.html
        for text in [
            "2 answers, after 750 ms (median), 750 ms at most", "2 interruptions, 1 of them for nothing",
            "a@&lt;b&gt;",
            "paused, 440 ms from 1.06 s on", "speech, 1000 ms from 1 s on", "The agent clears: 2.5 s are not heard",
            "Mark m&amp;n: dropped, at 0.9 s of what the agent said", "transferTo: to sip:carol",
        ] {
            #expect(html.contains(text), "\(text)")
        }
        #expect(!html.contains("a@<b>"))
        #expect(!html.contains("No sound lies") && html.components(separatedBy: "<svg").count == 3)
        let silent = TalkPage(title: "a.json", record: record, levels: nil).html
        #expect(silent.contains("No sound lies") && silent.components(separatedBy: "<svg").count == 3)
    }

    @Test(
        arguments: [
            "", "[]", "{", #"{"callID":"a"}"#, #"{"callID":7,"events":[]}"#, #"{"callID":"a","events":7}"#,
            #"{"callID":"a","events":[7]}"#, #"{"callID":"a","events":[{"event":"speaks"}]}"#,
            #"{"callID":"a","events":[{"atSeconds":-1,"event":"speaks"}]}"#,
            #"{"callID":"a","events":[{"atSeconds":1}]}"#,
        ]
    )
    func `what is no record is told`(text: String) {
        #expect(throws: ToolFailure.self) { try TalkRecord(parsing: Array(text.utf8)) }
    }
}
