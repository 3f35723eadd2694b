import MediaEngine
import Testing

/// Something else needs the sound, and gives it back.
@Suite struct InterruptionTests {
    /// Two calls of two legs each in one engine; A and C speak, B and D hear.
    private struct Fixture {
        let engine: CallEngine
        let calls: [Call]
        let heard: [CallCollector]

        init() async throws {
            engine = try CallEngine(.virtual())
            let format = try engine.registry.codec(named: "PCMU").description.format
            let heard = [CallCollector(), CallCollector()]
            var configurations: [CallConfiguration] = []
            for pair in 0..<2 {
                let (left, right) = MemoryLink.pair()
                var calling = CallConfiguration(network: .link(left, local: left.localAddress))
                calling.agreement.remote = right.localAddress
                calling.agreement.codec = "PCMU"
                calling.source = .samples([Int16](repeating: 8000, count: 8000 * 20), format)
                calling.sink = .none
                var called = CallConfiguration(network: .link(right, local: right.localAddress))
                called.agreement.remote = left.localAddress
                called.agreement.codec = "PCMU"
                called.source = .silence
                called.sink = .filter(heard[pair].filter(format))
                configurations += [calling, called]
            }
            self.heard = heard
            calls = try await engine.makeCalls(configurations)
        }
    }

    @Test func `an interruption holds what runs, and its end resumes that and only that`() async throws {
        let fixture = try await Fixture()
        let (engine, calls) = (fixture.engine, fixture.calls)
        calls[2].isOnHold = true
        try engine.advance(by: .seconds(1))
        #expect(fixture.heard[0].samples.last ?? 0 > 7000)
        engine.beginInterruption()
        #expect(calls.allSatisfy { $0.isOnHold })
        try engine.advance(by: .seconds(1))
        let held = calls[0].report().sent.packets
        try engine.advance(by: .seconds(2))
        #expect(calls[0].report().sent.packets == held)
        #expect(abs(Int(fixture.heard[0].samples.last ?? 1)) <= 8)
        engine.endInterruption()
        #expect(calls.map(\.isOnHold) == [false, false, true, false])
        try engine.advance(by: .seconds(1))
        #expect(fixture.heard[0].samples.last ?? 0 > 7000)
        #expect(calls[2].report().sent.packets == 0)
        let report = calls[1].report()
        #expect(report.received.lost == 0 && report.received.late == 0)
        for call in calls { try await call.end() }
        let told = await allEvents(calls[0]).filter { $0 == .interruptionBegan || $0 == .interruptionEnded }
        #expect(told == [.interruptionBegan, .interruptionEnded])
        let others = await allEvents(calls[2])
        #expect(!others.contains(.interruptionBegan))
    }

    @Test func `what the application decides during an interruption stands`() async throws {
        let fixture = try await Fixture()
        let (engine, calls) = (fixture.engine, fixture.calls)
        engine.beginInterruption()
        engine.beginInterruption()
        calls[0].isOnHold = true
        calls[2].isOnHold = false
        try engine.advance(by: .seconds(1))
        #expect(calls[2].report().sent.packets > 40 && calls[0].report().sent.packets == 0)
        engine.endInterruption()
        #expect(calls[0].isOnHold && !calls[1].isOnHold && !calls[2].isOnHold)
        engine.endInterruption()
        #expect(calls[0].isOnHold)
    }

    @Test func `a call that ends during an interruption is not resumed, and a new one is not held`() async throws {
        let fixture = try await Fixture()
        let (engine, calls) = (fixture.engine, fixture.calls)
        engine.beginInterruption()
        try await calls[0].end()
        let (left, _) = MemoryLink.pair()
        var late = CallConfiguration(network: .link(left, local: left.localAddress))
        late.source = .silence
        late.sink = .none
        let call = try await engine.makeCall(late)
        #expect(!call.isOnHold)
        engine.endInterruption()
        #expect(calls[0].isOnHold && calls[0].hasEnded)
        try engine.advance(by: .milliseconds(100))
    }
}
