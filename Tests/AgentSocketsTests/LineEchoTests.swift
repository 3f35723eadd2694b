import Foundation
import MediaEngine
import TestSupport
import Testing

@testable import AgentSockets

/// The echo of the line is taken out of what is listened to for speech.
@Suite struct LineEchoTests {
    private static func power(_ samples: some Sequence<Int16>) -> Double {
        samples.reduce(0) { $0 + Double($1) * Double($1) }
    }

    @Test(arguments: [8000, 16_000, 24_000, 48_000])
    func `after some seconds hardly anything is left, at any rate of the sound`(rate: Int) throws {
        let echo = try #require(LineEcho(sampleRate: rate))
        let step = rate / 8000
        try #require(!InterruptionDetectorTests.speech.isEmpty)
        let speech = InterruptionDetectorTests.speech.flatMap { [Int16](repeating: $0, count: step) }
        let (delay, size) = (rate / 8 + 1, rate / 50)
        var (before, left) = (0.0, 0.0)
        for block in 0..<400 {
            let played = (0..<size).map { speech[(block * size + $0) % speech.count] }
            let heard = (0..<size).map { index in
                let place = block * size + index - delay
                return place >= 0 ? speech[place % speech.count] / 6 : 0
            }
            let rest = echo.process(heard: heard.span, played: played.span)
            guard block >= 300 else { continue }
            before += Self.power(heard) / Double(step)
            left += Self.power(try #require(rest))
        }
        #expect(left < before / 50, "\(10 * log10(before / left)) dB")
        let odd = [Int16](repeating: 0, count: size - 1)
        let none = echo.process(heard: odd.span, played: odd.span)
        #expect(LineEcho(sampleRate: 22_050) == nil && none == nil)
    }

    /// 7 s of a call whose far side gives back what it hears at -15 dB, and says something softly at the end: how often the agent was
    /// paused before that, and in all.
    private static func pauses(_ format: AgentFormat, rate: Int, echoDelay: Int) async throws -> (early: Int, all: Int)
    {
        let engine = try CallEngine(.virtual(seed: 1))
        var generator = SeededGenerator(seed: 1)
        let line = AgentLine(virtual: SilentAgent(), format.codec(sampleRate: rate, &generator))
        let telephone = AudioFormat(sampleRate: 8000)
        let (speech, ears) = (StreamSource(format: telephone), StreamSink(format: telephone))
        let calls = try await engine.makeCalls(TestCall.legs((speech, ears), (line.voice, line.ears)))
        line.begin(AgentCall(callID: "1"))
        let voice = InterruptionDetectorTests.speech
        let step = rate / 8000
        let sound = voice.flatMap { [Int16](repeating: $0, count: step) }
        for _ in 0..<2 { line.receive(.binary(step == 1 ? MuLawSound.bytes(sound) : LinearSound.bytes(sound))) }
        var heard = [Int16](repeating: 0, count: echoDelay)
        var early = 0
        for tick in 0..<700 {
            while let block = ears.tryRead() {
                heard += block.samples
                let begin = heard.count - echoDelay - block.samples.count
                let own = tick - 650
                let back = block.samples.indices.map { index in
                    let said = own < 0 ? 0 : Int(voice[InterruptionDetectorTests.onsets[0] * 80 + own * 80 + index]) / 3
                    return Int16(clamping: Int(heard[begin + index]) / 6 + said)
                }
                speech.tryWrite(back.span)
            }
            if tick == 650 { early = line.report.pauses }
            try engine.advance(by: .milliseconds(10))
            line.step()
        }
        let all = line.report.pauses
        await line.end()
        for call in calls { try await call.end() }
        await engine.shutDown()
        return (early, all)
    }

    @Test(arguments: [(AgentFormat.asterisk, 8000), (.asterisk, 16_000), (.asterisk, 48_000)], [160, 1600])
    func `in a call with a strong echo a soft caller is heard`(format: (AgentFormat, Int), echoDelay: Int) async throws
    {
        try #require(InterruptionDetectorTests.onsets.count >= 4)
        let (early, all) = try await Self.pauses(format.0, rate: format.1, echoDelay: echoDelay)
        #expect(early == 0 && all == 1)
    }
}

/// An agent that takes all it is sent, and is silent.
private struct SilentAgent: AgentTransport {
    func send(_: AgentFrame) -> Bool { true }
    func insist(_: AgentFrame) -> Bool { true }
    var droppedCount: Int { 0 }
    var failure: AgentError? { nil }
    func close() async {}
}
