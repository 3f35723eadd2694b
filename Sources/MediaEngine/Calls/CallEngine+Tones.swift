import CallBasics
import Synchronization

extension CallEngine {
    // MARK: Keys

    /// Opens the ringer card and keeps it warm, so that keys sound at once, until `stopDTMFStream`.
    ///
    /// Holders are counted: as many calls of `stopDTMFStream` end it. A card that does not open now is tried again, and told
    /// by an event.
    /// - Throws: `EngineError` when a thread cannot be started, or the engine has been shut down.
    public func startDTMFStream() async throws(EngineError) { try await core.holdTones() }

    /// Lets go of the warm stream; the last holder's call closes the card.
    ///
    /// Calls without a `start` do nothing.
    public func stopDTMFStream() async { await core.releaseTones() }

    /// How many holders keep the tone stream warm.
    package var dtmfStreamHolderCount: Int { core.state.withLock { $0.toneHolders } }

    /// The tone stream that is open; nil when the ringer card is closed.
    package var openToneStream: ToneStream? { core.state.withLock { $0.tones } }

    /// Plays a key for the person at this machine: mixed into what is heard while a call is heard on the call card, on
    /// the ringer otherwise, which is opened if no stream is warm.
    ///
    /// It is heard on the ringer, too, while a call has no card: the call card is kept closed, busy or away.
    ///
    /// - Parameters:
    ///   - digit: The key.
    ///   - duration: How long it sounds; nil until `stopDTMF`.
    /// - Throws: `EngineError` when more keys wait than fit, or a thread cannot be started.
    public func playDTMF(_ digit: DTMFDigit, for duration: Duration? = .milliseconds(100)) async throws(EngineError) {
        try await core.playDTMF(digit, for: duration)
    }

    /// Ends the keys that `playDTMF` started without a duration; each has sounded for a minimum that people notice.
    ///
    /// - Throws: `EngineError` when the media thread does not run.
    public func stopDTMF() throws(EngineError) { try core.stopDTMF() }

    /// From `playDTMF` to the hand-over of the key's first sample to the card, for the last 256 keys, the oldest first.
    ///
    /// Keys that waited for others have waited that much longer; those that no card got are not among them.
    public var keyToSample: [Duration] { core.keyToSample }

    // MARK: Rings

    /// Rings on the ringer card with a tone of its cadence, until `stopRinging`.
    ///
    /// - Throws: `EngineError` when the tone cannot be played, or a thread cannot be started.
    public func startRinging(_ tone: ToneSpec) async throws(EngineError) {
        try await core.withTones { try $0.play(tone) }
    }

    /// Rings on the ringer card with a WAV file, again and again, until `stopRinging`.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - pause: The silence before it starts over.
    /// - Throws: `EngineError` when the file cannot be read, or a thread cannot be started.
    public func startRinging(file path: String, pause: Duration = .seconds(2)) async throws(EngineError) {
        try await core.startRinging(file: path, repetition: .forever(pause: pause))
    }

    /// Ends the ring.
    ///
    /// - Throws: `EngineError` when the media thread does not run.
    public func stopRinging() async throws(EngineError) {
        try await core.stopRinging()
    }

    // MARK: Streams

    /// A tone stream on cards of its own, for rings on several cards or files of another rate.
    ///
    /// - Parameters:
    ///   - cards: Where it plays, on all at once.
    ///   - format: The samples that are played.
    /// - Returns: The stream, warm until `stop`.
    /// - Throws: `EngineError` when a card does not open.
    public func makeToneStream(
        on cards: [any SoundCard],
        format: AudioFormat = AudioFormat(sampleRate: 48000)
    ) async throws(EngineError) -> ToneStream {
        try await core.makeToneStream(on: cards, format: format)
    }
}
