import Dispatch
import TestSupport
import Testing

@testable import MediaEngine

/// Looks at the cards of a machine that take their time.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct EngineCardsRealTimeTests {
    @Test func `a look at the cards that takes long does not replace a later one`() async throws {
        var configuration = CallEngineConfiguration.virtual()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        let bindings = configuration.cardBindings
        let devices = Watched<[any SoundCard]>([NullCard()])
        let looks = Watched(0)
        let gate = DispatchSemaphore(value: 0)
        let cards = try EngineCards(
            configuration,
            timebase: EngineTimebase(logger: configuration.logger),
            onEvent: { _ in }
        ) { () throws(CardError) in
            let list = try CardList(devices: devices.value, bindings: bindings)
            let look = looks.update { count in
                count += 1
                return count
            }
            // The first is that of the start.
            if look == 2 { gate.wait() }
            return list
        }
        async let slow: Void = cards.reload()
        defer { gate.signal() }
        try await looks.wait { $0 == 2 }
        devices.update { $0.append(NullCard(name: "headset")) }
        try await cards.reload()
        gate.signal()
        try await slow
        #expect(cards.list.cards.contains { $0.description.name == "headset" })
        cards.shutDown()
    }
}
