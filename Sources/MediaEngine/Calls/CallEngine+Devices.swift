import Synchronization

extension CallEngine {
    /// The cards that are there; a role's card stands for what the role is bound to.
    public var cards: CardList { state.withLock { $0.cards } }

    /// Looks anew which cards there are.
    ///
    /// Cards in use stay in use.
    ///
    /// - Throws: `EngineError` when a role is bound to a role.
    public func reloadSoundDevices() throws(EngineError) {
        let cards = try EngineError.wrapping { try CardList(bindings: configuration.cardBindings) }
        state.withLock { $0.cards = cards }
    }

    /// The name of the card that calls are heard on.
    public var playbackDevice: String { state.withLock { $0.devices.playback.description.name } }

    /// The name of the card that calls are spoken into.
    public var captureDevice: String { state.withLock { $0.devices.capture.description.name } }

    /// The name of the card that rings and key tones are heard on.
    public var ringerDevice: String { state.withLock { $0.devices.ringer.description.name } }

    /// Lets calls be heard on another card, also while they run: the streams go on, only the card changes.
    ///
    /// - Parameter name: The card's name or identity, `alsa:PCM`, or `null`.
    /// - Throws: `EngineError` when there is no such card or, with calls running, it does not open; then the old one
    ///   stays in use.
    public func setPlaybackDevice(_ name: String) throws(EngineError) {
        try setPlaybackCard(try EngineError.wrapping { try cards.card(named: name) })
    }

    /// As `setPlaybackDevice`, with a card that need not be in the list.
    ///
    /// - Throws: `EngineError` when, with calls running, the card does not open.
    public func setPlaybackCard(_ card: any SoundCard) throws(EngineError) {
        try EngineError.wrapping { try routePlayback(to: card, .asked) }
    }

    /// Lets calls be spoken into another card, also while they run.
    ///
    /// - Parameter name: The card's name or identity, `alsa:PCM`, or `null`.
    /// - Throws: `EngineError` when there is no such card or, with calls running, it does not open; then the old one
    ///   stays in use.
    public func setCaptureDevice(_ name: String) throws(EngineError) {
        try setCaptureCard(try EngineError.wrapping { try cards.card(named: name) })
    }

    /// As `setCaptureDevice`, with a card that need not be in the list.
    ///
    /// - Throws: `EngineError` when, with calls running, the card does not open.
    public func setCaptureCard(_ card: any SoundCard) throws(EngineError) {
        try EngineError.wrapping { try routeCapture(to: card, .asked) }
    }

    /// Lets rings and key tones be heard on another card; a tone stream that is warm stays warm on it.
    ///
    /// - Parameter name: The card's name or identity, `alsa:PCM`, or `null`.
    /// - Throws: `EngineError` when there is no such card or it does not open.
    public func setRingerDevice(_ name: String) throws(EngineError) {
        try setRingerCard(try EngineError.wrapping { try cards.card(named: name) })
    }

    /// As `setRingerDevice`, with a card that need not be in the list.
    ///
    /// - Throws: `EngineError` when the card does not open for the tone stream that runs.
    public func setRingerCard(_ card: any SoundCard) throws(EngineError) {
        let tones = state.withLock { state in
            state.devices.ringer = card
            return state.tones
        }
        try tones?.move(to: [card])
    }

    /// Lets sound flow through the call card, or stops it: the gate of an audio session.
    ///
    /// Only an engine that `gatesAudioSession` waits for it.
    public func activateAudioSession(_ isActive: Bool) {
        let devices = state.withLock { $0.devices }
        if let filter = devices.playbackFilter {
            send(isActive ? filter.activateCommand : filter.deactivateCommand)
        }
        if let filter = devices.captureFilter {
            send(isActive ? filter.activateCommand : filter.deactivateCommand)
        }
    }

    /// What went through the playback card so far; nil while no call uses it.
    public var playbackStatistics: CardStatistics? {
        state.withLock { $0.devices.playbackFilter?.statistics.value }
    }

    /// What went through the capture card so far; nil while no call uses it.
    public var captureStatistics: CardStatistics? {
        state.withLock { $0.devices.captureFilter?.statistics.value }
    }
}
