import AgentSockets
import CallBasics
import MediaEngine
import TestSupport
import Testing

/// An agent in the process itself, in a call in real time.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct AgentPortRealTimeTests {
    @Test func `it hears the call, and what it says is played, held, cleared and marked`() async throws {
        let agent = AgentPort(sampleRate: 16_000)
        let call = try await TestCall(voice: agent.voice, ears: agent.ears)
        let tone = (0..<3200).map { Int16($0 / 8 % 2 == 0 ? 8000 : -8000) }
        agent.say(tone)
        agent.mark("first")
        let first = await call.hear(25)
        #expect(9...12 ~= first, "\(first)")
        agent.isHeld = true
        agent.say(tone)
        agent.mark("second")
        let held = await call.hear(15)
        #expect(held == 0 && agent.waiting == .milliseconds(200))
        agent.isHeld = false
        let second = await call.hear(20)
        #expect(9...12 ~= second, "\(second)")
        // Who speaks is heard, and silences it.
        agent.say(Array(repeating: tone, count: 10).flatMap(\.self))
        agent.mark("third")
        while await call.hear(1) == 0 {}
        let voice = (0..<4800).map { Int16($0 / 4 % 2 == 0 ? 12_000 : -12_000) }
        call.speech.tryWrite(voice.span)
        var events: [AgentVoiceEvent] = []
        for await event in agent.events {
            events.append(event)
            if event == .paused { agent.clear() }
            if case .speechStopped = event { break }
        }
        let marks = events.compactMap { event -> Bool? in
            if case .marked(_, let isPlayed, _) = event { isPlayed } else { nil }
        }
        #expect(marks == [true, true, false], "\(events)")
        #expect(!events.contains(.resumed) && agent.report.pauses == 1 && agent.report.clears == 1, "\(events)")
        var loud = 0
        for await samples in agent.hearing {
            loud += samples.contains { abs(Int($0)) > 4000 } ? 1 : 0
            if loud == 25 { break }
        }
        for one in call.calls { try await one.end() }
        for await _ in agent.events {}
        for await _ in agent.hearing {}
        #expect(agent.report.heard > .seconds(1) && agent.report.skipped == 0, "\(agent.report)")
        try await call.end()
    }
}
