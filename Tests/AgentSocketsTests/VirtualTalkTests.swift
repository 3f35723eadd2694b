import Foundation
import MediaEngine
import Synchronization
import TestSupport
import Testing

@testable import AgentSockets

/// Whole talks in virtual time: a caller, a network that loses packets, a line in Twilio's format, and an agent by a script.
@Suite struct VirtualTalkTests {
    /// What an agent is sent, kept in order; the agent takes it by its own time.
    private final class Wire: AgentTransport {
        private let frames = Mutex<[AgentFrame]>([])

        var all: [AgentFrame] { frames.withLock { $0 } }

        func send(_ frame: AgentFrame) -> Bool {
            frames.withLock { $0.append(frame) }
            return true
        }

        func insist(_ frame: AgentFrame) -> Bool { send(frame) }
        var droppedCount: Int { 0 }
        var failure: AgentError? { nil }
        func close() async {}
    }

    /// What came of a talk.
    private struct Outcome: Equatable {
        var toAgent: [AgentFrame] = []
        var heard: [Int16] = []
        var asked: [String] = []
        var report = AgentReport()

        static func == (one: Outcome, other: Outcome) -> Bool {
            one.toAgent == other.toAgent && one.heard == other.heard && one.asked == other.asked
                && "\(one.report)" == "\(other.report)"
        }
    }

    /// An agent that says, marks and clears by chance, in bursts and in pieces.
    private struct Script {
        var generator: SeededGenerator
        var marks: [String] = []
        private var sound = 0

        init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

        /// What it sends within 10 ms.
        mutating func next() -> [String] {
            switch Int.random(in: 0..<60, using: &generator) {
            case 0: return [say(Int.random(in: 1...8000, using: &generator))]
            case 1, 2, 3, 4: return [say(320)]
            case 5:
                marks.append("\(marks.count)")
                return [#"{"event":"mark","mark":{"name":"\#(marks.count - 1)"}}"#]
            case 6 where Bool.random(using: &generator): return [#"{"event":"clear"}"#]
            default: return []
            }
        }

        private mutating func say(_ frameCount: Int) -> String {
            sound += 1
            let loudness: [Int16] = [0, 9000]
            let samples = (0..<frameCount).map { $0 / (3 + sound % 3) % 2 == 0 ? loudness[sound % 2] : 0 }
            return #"{"event":"media","media":{"payload":"\#(Data(MuLawSound.bytes(samples)).base64EncodedString())"}}"#
        }
    }

    /// 20 s of talk.
    private func talk(seed: UInt64) async throws -> Outcome {
        let engine = try CallEngine(.virtual(seed: seed))
        var generator = SeededGenerator(seed: seed)
        let wire = Wire()
        let line = AgentLine(virtual: wire, AgentFormat.twilio.codec(sampleRate: 8000, &generator))
        let (speech, ears) = (StreamSource(format: line.voice.format), StreamSink(format: line.voice.format))
        let calls = try await engine.makeCalls(
            TestCall.legs((speech, ears), (line.voice, line.ears), lossPercent: 3, seed: seed)
        )
        line.begin(AgentCall(callID: "CA1", parameters: ["from": "alice"]))
        let voice = (0..<80).map { Int16($0 / 5 % 2 == 0 ? 8000 : -8000) }
        var (outcome, script) = (Outcome(), Script(seed: seed))
        for tick in 0..<2000 {
            // The caller speaks for 0.7 s of each 3 s.
            if tick % 300 < 70 { speech.tryWrite(voice.span) }
            // Held for 0.5 s of each 7 s.
            line.isHeld = tick % 700 >= 650
            for message in script.next() { line.receive(.text(Array(message.utf8))) }
            try engine.advance(by: .milliseconds(10))
            line.step()
            while let block = ears.tryRead() { outcome.heard += block.samples }
        }
        outcome.report = line.report
        await line.end("hungUp")
        for call in calls { try await call.end() }
        await engine.shutDown()
        (outcome.toAgent, outcome.asked) = (wire.all, script.marks)
        return outcome
    }

    @Test func `who has hung up says no more, and its call ends`() async throws {
        var generator = SeededGenerator(seed: 1)
        for (format, word) in [
            (AgentFormat.twilio, #"{"event":"hangup"}"#), (.asterisk, #"{"command":"HANGUP"}"#),
            (.jambonz, #"{"type":"disconnect"}"#),
        ] {
            let line = AgentLine(virtual: Wire(), format.codec(sampleRate: 8000, &generator))
            line.begin(AgentCall(callID: "CA1"))
            line.receive(.text(Array(word.utf8)))
            let media = Data([UInt8](repeating: 0, count: 160)).base64EncodedString()
            line.receive(.text(Array(#"{"event":"media","media":{"payload":"\#(media)"}}"#.utf8)))
            line.receive(.binary([UInt8](repeating: 0, count: 320)))
            line.receive(.text(Array(#"{"command":"PAUSE_MEDIA"}"#.utf8)))
            #expect(line.waiting == .zero, "\(format)")
        }
    }

    @Test func `what an agent wants is told however much became of its marks`() async throws {
        var generator = SeededGenerator(seed: 1)
        let line = AgentLine(virtual: Wire(), AgentFormat.twilio.codec(sampleRate: 8000, &generator))
        line.begin(AgentCall(callID: "CA1"))
        let media = Data([UInt8](repeating: 0, count: 8000)).base64EncodedString()
        var words = [#"{"event":"media","media":{"payload":"\#(media)"}}"#, #"{"event":"dtmf","dtmf":{"digit":"5"}}"#]
        words += (0..<300).map { #"{"event":"mark","mark":{"name":"\#($0)"}}"# }
        words += [#"{"event":"transfer","transfer":{"to":"sip:b@c"}}"#, #"{"event":"hangup"}"#, #"{"event":"clear"}"#]
        for word in words { line.receive(.text(Array(word.utf8))) }
        var wanted: [String] = []
        for await event in line.events {
            switch event {
            case .press(let keys): wanted.append(keys)
            case .transfer(let target): wanted.append(target)
            case .hangUp: wanted.append("hang-up")
            default: continue
            }
            if wanted.count == 3 { break }
        }
        #expect(wanted == ["5", "sip:b@c", "hang-up"])
    }

    @Test func `an agent that pauses itself when it is spoken into goes on by its own word`() async throws {
        let engine = try CallEngine(.virtual())
        var generator = SeededGenerator(seed: 1)
        let line = AgentLine(virtual: Wire(), AgentFormat.asterisk.codec(sampleRate: 8000, &generator))
        let (speech, ears) = (StreamSource(format: line.voice.format), StreamSink(format: line.voice.format))
        let calls = try await engine.makeCalls(TestCall.legs((speech, ears), (line.voice, line.ears)))
        line.begin(AgentCall(callID: "1"))
        let voice = (0..<80).map { Int16($0 / 5 % 2 == 0 ? 8000 : -8000) }
        func pass(_ ticks: Int, isSpeaking: Bool) throws {
            for _ in 0..<ticks {
                if isSpeaking { speech.tryWrite(voice.span) }
                try engine.advance(by: .milliseconds(10))
                line.step()
            }
        }
        line.receive(.binary(MuLawSound.bytes([Int16](repeating: 100, count: 40_000))))
        try pass(100, isSpeaking: false)
        try pass(30, isSpeaking: true)
        let paused = line.report
        line.receive(.text(Array(#"{"command":"PAUSE_MEDIA"}"#.utf8)))
        try pass(200, isSpeaking: true)
        let silent = line.report
        #expect(paused.pauses == 1 && silent.pauses == 1 && silent.resumptions == 0 && silent.played == paused.played)
        line.receive(.text(Array(#"{"command":"CONTINUE_MEDIA"}"#.utf8)))
        try pass(100, isSpeaking: false)
        #expect(line.report.resumptions == 1 && line.report.played > silent.played + .milliseconds(900))
        await line.end()
        for call in calls { try await call.end() }
        await engine.shutDown()
    }

    @Test func `a call that ends while the agent pauses is no clear`() {
        let told = Mutex<[AgentVoiceEvent]>([])
        let conversation = Conversation(
            sampleRate: 8000,
            isPausedBySpeech: false,
            isBegun: true,
            heard: { _, _ in },
            tell: { event in told.withLock { $0.append(event) } }
        )
        conversation.say([Int16](repeating: 1000, count: 1600))
        conversation.mark("one")
        conversation.pause(true)
        let isFirst = conversation.end(last: {})
        conversation.leave()
        let report = conversation.report
        #expect(isFirst && report.clears == 0 && report.unheard == .zero && report.droppedMarks == 1)
        #expect(told.withLock { $0 } == [.marked(name: "one", isPlayed: false, position: .zero)])
        // The agent goes first: what it has paused is never heard.
        let other = Conversation(
            sampleRate: 8000,
            isPausedBySpeech: false,
            isBegun: true,
            heard: { _, _ in },
            tell: { _ in }
        )
        other.say([Int16](repeating: 1000, count: 1600))
        other.pause(true)
        other.leave()
        #expect(other.waiting == .zero && other.report.clears == 1)
    }

    @Test(arguments: [UInt64](1...5))
    func `a talk is the same for the same seed, byte by byte`(seed: UInt64) async throws {
        let (one, other) = (try await talk(seed: seed), try await talk(seed: seed))
        #expect(one == other && one.toAgent.count > 1000 && one.heard.contains { $0 != 0 })
        let (third, report) = (try await talk(seed: seed + 100), one.report)
        #expect(third.heard != one.heard && third.asked != one.asked)
        // Every mark is answered once, and the positions go up.
        let told = one.toAgent.compactMap { frame -> (name: String, position: Int)? in
            guard case .text(let bytes) = frame else { return nil }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let match = text.firstMatch(of: /"mark":\{"name":"([0-9]+)","played":[a-z]+,"positionMs":([0-9]+)/)
            else {
                return nil
            }
            return (String(match.1), Int(match.2) ?? -1)
        }
        #expect(told.map(\.name).sorted() == one.asked.sorted())
        #expect(zip(told, told.dropFirst()).allSatisfy { $0.position <= $1.position })
        #expect(report.played > .seconds(2) && report.heard == .seconds(20) && report.pauses > 0 && report.clears > 0)
    }
}
