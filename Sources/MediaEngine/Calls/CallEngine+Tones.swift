import Synchronization

extension CallEngine {
    /// Opens the ringer card and keeps it warm, so that keys sound at once, until `stopDTMFStream`.
    ///
    /// Holders are counted: as many calls of `stopDTMFStream` end it.
    /// - Throws: `EngineError` when the card does not open.
    @discardableResult
    public func startDTMFStream() throws(EngineError) -> ToneStream {
        let stream = try toneStream()
        state.withLock { $0.toneHolders += 1 }
        return stream
    }

    /// Lets go of the warm stream; the last holder's call closes the card.
    ///
    /// Calls without a `start` do nothing.
    public func stopDTMFStream() {
        let ended = state.withLock { state -> ToneStream? in
            guard state.toneHolders > 0 else { return nil }
            state.toneHolders -= 1
            guard state.toneHolders == 0 else { return nil }
            return state.tones.take()
        }
        ended?.stop()
    }

    /// How many holders keep the tone stream warm.
    public var dtmfStreamHolderCount: Int { state.withLock { $0.toneHolders } }

    /// The tone stream that is open; nil when the ringer card is closed.
    public var openToneStream: ToneStream? { state.withLock { $0.tones } }

    /// Lets the user hear a key: in what is heard of the call on the call card, if there is one, else on the ringer.
    ///
    /// Without a warm stream the ringer card is opened first, and stays open until a pair of `startDTMFStream` and
    /// `stopDTMFStream`, or `shutDown`, closes it.
    /// - Parameters:
    ///   - digit: The digit.
    ///   - duration: How long it sounds; nil until `stopDTMF`.
    /// - Throws: `EngineError` when the ringer card does not open.
    public func playDTMF(_ digit: DTMFDigit, for duration: Duration? = .milliseconds(100)) throws(EngineError) {
        if let duration, let call = callOnCard {
            call.playLocally(digit, for: duration)
            return
        }
        let stream = try toneStream()
        if let duration { stream.play(digit, for: duration, gap: .milliseconds(50)) } else { stream.press(digit) }
    }

    /// Ends the key that `playDTMF` started without a duration; it has sounded for a minimum that people notice.
    public func stopDTMF() {
        openToneStream?.release()
    }

    /// Rings on the ringer card with a tone of its cadence, until `stopRinging`.
    ///
    /// - Throws: `EngineError` when the card does not open.
    public func startRinging(_ tone: ToneSpec) throws(EngineError) {
        try toneStream().play(tone)
    }

    /// Rings on the ringer card with a WAV file, again and again, until `stopRinging`.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - pause: The silence before it starts over.
    /// - Throws: `EngineError` when the card does not open or the file cannot be read.
    public func startRinging(file path: String, pause: Duration = .seconds(2)) throws(EngineError) {
        try toneStream().play(file: path, repetition: .forever(pause: pause))
    }

    /// Ends the ring.
    public func stopRinging() {
        openToneStream?.stopRinging()
    }

    /// A tone stream on cards of its own, for rings on several cards or files of another rate.
    ///
    /// - Parameters:
    ///   - cards: Where it plays, on all at once.
    ///   - format: The samples that are played.
    /// - Returns: The stream, warm until `stop`.
    /// - Throws: `EngineError` when a card does not open.
    public func makeToneStream(
        on cards: [any SoundCard],
        format: AudioFormat = CallEngine.cardFormat
    ) throws(EngineError) -> ToneStream {
        try ToneStream(cards, format: format, timebase: timebase)
    }

    private var callOnCard: Call? {
        state.withLock { state in
            state.calls.first { call in
                if case .callCard = call.configuration.sink { true } else { false }
            }
        }
    }

    /// The open stream, or a new one on the ringer card.
    private func toneStream() throws(EngineError) -> ToneStream {
        let (open, card) = state.withLock { ($0.tones, $0.devices.ringer) }
        if let open { return open }
        let stream = try makeToneStream(on: [card])
        let kept = state.withLock { state -> ToneStream in
            if let raced = state.tones { return raced }
            state.tones = stream
            return stream
        }
        if kept !== stream { stream.stop() }
        return kept
    }
}
