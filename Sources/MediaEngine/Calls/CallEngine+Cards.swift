extension CallEngine {
    // MARK: Cards

    /// The cards that are there; a role's card stands for what the role is bound to.
    ///
    /// In virtual time they are the roles and the built-in cards.
    public var cards: CardList { core.cards.list }

    /// Looks anew which cards there are, those of `CallEngineConfiguration.fallbackDevices` among them.
    ///
    /// Cards in use stay in use.
    /// - Throws: `EngineError` when a role is bound to a role.
    public func reloadCards() async throws(EngineError) { try await core.cards.reload() }

    /// Lets calls have their card, or keeps it closed, as while the system gives the sound to others.
    ///
    /// While it is closed calls hear and say nothing, and go on: packets leave in time. An engine begins with the card
    /// allowed. Rings are not concerned, nor cards of single calls; keys are heard on the ringer meanwhile.
    public func setCallCardAllowed(_ isAllowed: Bool) {
        for route in [core.cards.capture, core.cards.playback] { route.allow(isAllowed) }
    }

    /// The name of the card that calls are heard on, or spoken into: the one in use, which may stand in for another.
    public func cardName(_ direction: CardDirection) -> String { core.cards.route(direction).cardName }

    /// Lets calls be heard on `card`, or spoken into it, also while they run: the streams go on, only the card changes.
    ///
    /// - Throws: `EngineError` when, with calls running, the card does not open; then the old one stays in use.
    public func setCard(_ card: any SoundCard, _ direction: CardDirection) async throws(EngineError) {
        do throws(CardError) {
            try await core.cards.route(direction).setCard(card)
        } catch {
            throw .card(error)
        }
    }

    /// As `setCard`, with a card of the list.
    ///
    /// - Parameters:
    ///   - name: The card's name or identity, `alsa:PCM`, or `null`.
    ///   - direction: Playback, or capture.
    /// - Throws: `EngineError` when there is no such card, or as `setCard`.
    public func setCard(named name: String, _ direction: CardDirection) async throws(EngineError) {
        try await setCard(try EngineError.wrapping { try cards.card(named: name) }, direction)
    }

    /// Cards that take over, in this order, while the card that was asked for is away or busy.
    ///
    /// They replace the names in `CallEngineConfiguration.fallbackDevices`. Without any, silence takes its place; in either
    /// case it is used as soon as it can be.
    public func setFallbackCards(_ cards: [any SoundCard]) { core.cards.setFallbackCards(cards) }

    /// What went through the call card in one direction so far; nil while no call uses it.
    package func cardStatistics(_ direction: CardDirection) -> CardStatistics? {
        let route = core.cards.route(direction)
        return route.isInUse ? route.statistics : nil
    }

    /// The changes of card that calls went through, the last 64, the oldest first.
    public var routeChanges: [RouteChange] { core.cards.changes }

    /// What the cards of the calls, shared ones and their own, did so far; empty while no call uses one.
    public var cardReports: [CardReport] {
        let shared = [core.cards.capture, core.cards.playback].filter(\.isInUse).map { CardReport($0) }
        return shared + calls.flatMap(\.cardReports)
    }

    // MARK: Ringer

    /// Lets rings and key tones be heard on another card; a tone stream that is warm stays warm on it.
    ///
    /// - Throws: `EngineError` when the card does not open for the tone stream that runs; then the old one stays in use.
    public func setRinger(_ card: any SoundCard) async throws(EngineError) {
        try await core.setRinger(card)
    }

    /// As `setRinger`, with a card of the list.
    ///
    /// - Parameter name: The card's name or identity, `alsa:PCM`, or `null`.
    /// - Throws: `EngineError` when there is no such card, or as `setRinger`.
    public func setRinger(named name: String) async throws(EngineError) {
        try await setRinger(try EngineError.wrapping { try cards.card(named: name) })
    }
}
