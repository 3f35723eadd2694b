import CallBasics
import MediaEngineTesting
import Synchronization
import TestSupport
import Testing

@testable import MediaEngine

/// The cards of an engine on a machine whose cards come and go.
@Suite struct EngineCardsTests {
    /// A card that is listed and never opens.
    private final class DeafCard: SoundCard {
        let description = CardDescription(id: "test:deaf", name: "deaf", backend: "test", directions: .duplex)

        func open(
            _ direction: CardDirection,
            _ configuration: CardConfiguration,
            at now: MediaTime
        ) throws(CardError) -> any CardEndpoint {
            throw CardError(.absent, "It is not there.")
        }
    }

    private func cards(_ devices: Watched<[any SoundCard]>) throws -> EngineCards {
        var configuration = CallEngineConfiguration.virtual()
        configuration.cardBindings = try CardBindings(flags: ["au": "deaf", "aq": "null"], environment: [:])
        configuration.fallbackDevices = ["headset", "speaker"]
        let bindings = configuration.cardBindings
        return try EngineCards(
            configuration,
            timebase: EngineTimebase(logger: configuration.logger),
            onEvent: { _ in }
        ) { () throws(CardError) in try CardList(devices: devices.value, bindings: bindings) }
    }

    @Test func `in virtual time nobody asks ALSA for its cards`() throws {
        let cards = try CallEngine(.virtual()).cards.cards.map(\.description)
        #expect(cards.map(\.backend).filter { $0 != "built-in" }.count == CardRole.allCases.count)
        #expect(cards.contains { $0.id == "builtin:null" })
    }

    @Test func `a fallback card that is plugged in later stands in once the cards are looked at again`() async throws {
        let devices = Watched<[any SoundCard]>([DeafCard()])
        let cards = try cards(devices)
        cards.playback.use()
        await cards.playback.opened()
        devices.update { $0.append(NullCard(name: "speaker")) }
        try await cards.reload()
        await cards.playback.opened()
        #expect(cards.playback.cardName == "speaker")
        await cards.playback.release()
        cards.shutDown()
    }

    @Test func `cards that the application has set to stand in stay so`() async throws {
        let devices = Watched<[any SoundCard]>([DeafCard()])
        let cards = try cards(devices)
        cards.setFallbackCards([NullCard(name: "own")])
        devices.update { $0.append(NullCard(name: "speaker")) }
        try await cards.reload()
        cards.playback.use()
        await cards.playback.opened()
        #expect(cards.playback.cardName == "own")
        await cards.playback.release()
        cards.shutDown()
    }
}
