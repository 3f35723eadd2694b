import TestSupport
import Testing

@testable import MediaEngine

/// Tone streams whose cards take long to open.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct ToneStreamRealTimeTests {
    private static func engine() throws -> CallEngine {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        return try CallEngine(configuration)
    }

    @Test func `a stream that is stopped while it moves to a card closes that one, too`() async throws {
        let engine = try Self.engine()
        let (first, slow) = (GatedCard(name: "first"), GatedCard(name: "slow", isOpen: false))
        let stream = try await engine.makeToneStream(on: [first])
        let moving = Task { try await stream.move(to: [slow]) }
        try await slow.begun.wait { $0 == 1 }
        await stream.stop()
        try await first.openCount.wait { $0 == 0 }
        slow.letOpen()
        let error = await #expect(throws: EngineError.self) { try await moving.value }
        guard case .state(let failure) = error else { throw try #require(error) }
        #expect(failure.code == .callEnded)
        #expect(slow.opened.value == 1)
        try await slow.openCount.wait { $0 == 0 }
        await engine.shutDown()
    }

    @Test func `a ringer that changes while the engine shuts down is refused, and no card stays open`() async throws {
        let engine = try Self.engine()
        let (first, slow) = (GatedCard(name: "first"), GatedCard(name: "slow", isOpen: false))
        try await engine.setRinger(first)
        try await engine.startDTMFStream()
        let moving = Task { try await engine.setRinger(slow) }
        try await slow.begun.wait { $0 == 1 }
        await engine.shutDown()
        slow.letOpen()
        await #expect(throws: EngineError.self) { try await moving.value }
        try await slow.opened.wait { $0 == 1 }
        for card in [first, slow] { try await card.openCount.wait { $0 == 0 } }
    }
}
