public import CallBasics
import Synchronization

extension Call {
    // MARK: Mute, hold, levels

    /// Whether the other side hears silence instead of the source.
    public var isMuted: Bool {
        get { controls.sendGain.holds(.muted) }
        set { controls.sendGain.set(.muted, newValue) }
    }

    /// Whether the call is held: no audio is sent and none is heard; keys and RTCP still pass.
    ///
    /// Where the call was made with a `heldSound`, that is sent, as long as the agreed direction has this side send.
    /// An interruption holds a call, too; who sets this takes the call out of the interruption.
    public var isOnHold: Bool {
        get { controls.receiveGain.holds(.held) || controls.receiveGain.holds(.interrupted) }
        set {
            set(.held, newValue)
            set(.interrupted, false)
        }
    }

    /// Puts the call on hold until the interruption ends; answers false when it is on hold anyway.
    func interrupt() -> Bool {
        guard !isOnHold, !hasEnded else { return false }
        set(.interrupted, true)
        return true
    }

    /// Ends the hold that `interrupt` began; answers false when there is none.
    func resumeAfterInterruption() -> Bool {
        guard controls.sending.holds(.interrupted), !hasEnded else { return false }
        set(.interrupted, false)
        return true
    }

    /// How much louder or quieter than the source is what is sent, 0 dB at first.
    ///
    /// Units: dB of amplitude, up to 30; -100 and less is silence. Samples that would leave 16 bits are clipped.
    public var sendGain: Decibels {
        get { controls.sendGain.gain }
        set { controls.sendGain.gain = newValue }
    }

    /// How much louder or quieter than it came the call is heard, 0 dB at first.
    ///
    /// Units: as `sendGain`.
    public var volume: Decibels {
        get { controls.receiveGain.gain }
        set { controls.receiveGain.gain = newValue }
    }

    /// The level of what is sent, after gain and mute.
    public var sentLevel: AudioLevel { stream.sendMeter.currentLevel }

    /// The level of what is heard, after volume.
    public var heardLevel: AudioLevel { stream.receiveMeter.currentLevel }

    // MARK: Keys

    /// Sends keys as telephone events (RFC 4733), one after the other; `,` is a pause of 2 s.
    ///
    /// - Parameters:
    ///   - digits: The keys, 0-9 * # A-D.
    ///   - duration: How long each key is held, at least 40 ms.
    ///   - gap: The silence after each.
    /// - Throws: `EngineError` when a character is no key, none were agreed, or there are more than can wait; then none
    ///   is sent.
    public func sendDTMF(
        _ digits: String,
        duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) throws(EngineError) {
        let sequence = try EngineError.wrapping { try DTMFSequence(parsing: digits) }
        try sendKeys(
            sequence.elements.map { element in
                switch element {
                case .digit(let digit):
                    .key(code: digit.eventCode, duration: duration.nanoseconds, gap: gap.nanoseconds)
                case .pause(let pause): .pause(pause.nanoseconds)
                }
            }
        )
    }

    /// Presses a key, until `releaseKey`; it is sent for 100 ms at least.
    ///
    /// - Throws: `EngineError` when no telephone events were agreed, or too many keys wait.
    public func pressKey(_ digit: DTMFDigit) throws(EngineError) {
        try sendKeys([.press(code: digit.eventCode)])
    }

    /// Releases the key that is pressed.
    ///
    /// - Throws: `EngineError` when the call has ended.
    public func releaseKey() throws(EngineError) {
        try order([.command(.releaseKey, to: stream.sender)])
    }

    private func sendKeys(_ commands: [RTPSendCommand]) throws(EngineError) {
        let stream = stream
        let agreement = stream.agreement
        guard agreement.codec != nil, agreement.telephoneEvents != nil else {
            throw .state(
                .notAgreed,
                "\(name) has agreed on no payload type for telephone events. Agree on one, usually 101."
            )
        }
        let places = stream.sender.keyPlaces
        guard places.take(commands.count) else { throw tooManyKeys }
        try order(commands.map { .command($0, to: stream.sender) }, orGiveBack: places, commands.count)
    }

    private var tooManyKeys: EngineError {
        .state(.queueFull, "\(name) has more keys to send than can wait. Send them in parts.")
    }

    // MARK: Tones

    /// Mixes DTMF tones into what is sent, for equipment that knows no telephone events; `,` is a pause of 2 s.
    ///
    /// - Parameters:
    ///   - digits: The keys, 0-9 * # A-D.
    ///   - duration: How long each tone sounds.
    ///   - gap: The silence after each.
    /// - Throws: `EngineError` when a character is no key, or there are more than can wait; then none is sent.
    public func sendInBandDTMF(
        _ digits: String,
        duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) throws(EngineError) {
        let sequence = try EngineError.wrapping { try DTMFSequence(parsing: digits) }
        let tones = stream.sendTones
        guard tones.places.take(sequence.elements.count) else { throw tooManyKeys }
        let now = engine.now
        let orders = sequence.elements.map { element -> GraphRunner.Order in
            switch element {
            case .digit(let digit):
                .command(
                    .play(digit, duration: duration.nanoseconds, gap: gap.nanoseconds, requestedAt: now),
                    to: tones
                )
            case .pause(let pause): .command(.pause(pause.nanoseconds), to: tones)
            }
        }
        try order(orders, orGiveBack: tones.places, orders.count)
    }

    /// Mixes a tone into what is sent, in place of the one that sounds there.
    ///
    /// - Throws: `EngineError` when the tone cannot be played at the codec's rate, or the call has ended.
    public func insertTone(_ tone: ToneSpec) throws(EngineError) {
        let tones = stream.sendTones
        try tones.turns.withLock { _ throws(EngineError) in
            try EngineError.wrapping { try tones.prepare(tone) }
            try order([.command(.tone(requestedAt: engine.now), to: tones)])
        }
    }

    /// Ends the tone in what is sent.
    ///
    /// - Throws: `EngineError` when the call has ended.
    public func removeTone() throws(EngineError) {
        try order([.command(.stopTone, to: stream.sendTones)])
    }

    private func order(
        _ orders: [GraphRunner.Order],
        orGiveBack places: Credits? = nil,
        _ count: Int = 0
    ) throws(EngineError) {
        do throws(EngineError) {
            guard !hasEnded else { throw endedError }
            try engine.loop.give(orders)
        } catch {
            places?.give(count)
            throw error
        }
    }
}
