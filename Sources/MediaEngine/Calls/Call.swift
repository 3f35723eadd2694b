import Synchronization

/// One full-duplex leg: it sends what its source gives, and plays what it receives.
///
/// Made by `CallEngine.makeCall`. Every method takes effect at the edge of the next tick.
/// Thread: control, any thread.
public final class Call: Sendable {
    struct Recording {
        let near: FileRecorderFilter?
        let far: FileRecorderFilter?

        var filters: [FileRecorderFilter] { [near, far].compactMap(\.self) }
    }

    struct State {
        var isMuted = false
        var isOnHold = false
        /// Whether the hold is that of an interruption, which ends with it.
        var isInterrupted = false
        var hasEnded = false
        var keys = ""
        var hasTelephoneEvents = false
        /// The key whose tones sound.
        var soundingKey: DTMFDigit?
        var isSourceEnded = false
        var protection: LossPolicy
        var recording: Recording?
        /// What works on the microphone's signal: the call's own, or one that other calls use, too.
        var voice: EchoCancellerFilter?
    }

    /// The call's name in reports.
    public let name: String
    /// Where the other side's RTP must go.
    public let localAddress: SocketAddress
    /// What happens in the call.
    ///
    /// One task reads it; the newest 256 events wait for it.
    public let events: AsyncStream<CallEvent>

    let configuration: CallConfiguration
    let stream: AudioStream
    let source: CallEndParts
    let sink: CallEndParts
    let capture: CaptureFile?
    let voice: CallVoice?
    let state: Mutex<State>
    private let engine: CallEngine
    private let eventSink: AsyncStream<CallEvent>.Continuation

    init(
        _ configuration: CallConfiguration,
        stream: AudioStream,
        source: CallEndParts,
        sink: CallEndParts,
        capture: CaptureFile?,
        voice: CallVoice?,
        localAddress: SocketAddress,
        engine: CallEngine
    ) {
        name = configuration.name
        self.configuration = configuration
        self.stream = stream
        state = Mutex(State(protection: LossPolicy(stream.lossAbilities)))
        self.source = source
        self.sink = sink
        self.capture = capture
        self.voice = voice
        self.localAddress = localAddress
        self.engine = engine
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
    }

    // MARK: What is sent

    /// Whether the other side hears silence instead of the source.
    public var isMuted: Bool {
        get { state.withLock { $0.isMuted } }
        set {
            state.withLock { $0.isMuted = newValue }
            engine.send(stream.sendGain.set(isMuted: newValue))
        }
    }

    /// Makes what is sent louder or quieter.
    public func setSendGain(_ gain: Decibels) {
        engine.send(stream.sendGain.set(gain: gain))
    }

    /// Sends keys as telephone events (RFC 4733), one after the other; `,` is a pause of 2 s.
    ///
    /// - Parameters:
    ///   - digits: The keys, 0-9 * # A-D.
    ///   - duration: How long each key is held, at least 40 ms.
    ///   - gap: The silence after each.
    /// - Throws: `EngineError` when a character is no key, there are more than can wait, or none were agreed.
    public func sendDTMF(
        _ digits: String,
        duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) throws(EngineError) {
        let sequence = try EngineError.wrapping { try DTMFSequence(parsing: digits) }
        guard configuration.stream.telephoneEventPayloadType != nil else {
            throw .state("\(name) has no payload type for telephone events. Configure one, usually 101.")
        }
        guard sequence.elements.count <= TelephoneEventSender.capacity else {
            throw .state(
                "\(sequence.elements.count) keys are more than the \(TelephoneEventSender.capacity) that can wait. "
                    + "Send them in parts."
            )
        }
        for element in sequence.elements {
            switch element {
            case .digit(let digit):
                engine.send(stream.sender.send(event: digit.eventCode, duration: duration, gap: gap))
            case .pause(let pause):
                engine.send(stream.sender.pause(pause))
            }
        }
    }

    /// Presses a key, until `releaseKey`; it is sent for 100 ms at least.
    public func pressKey(_ digit: DTMFDigit) {
        engine.send(stream.sender.press(event: digit.eventCode))
    }

    /// Releases the key that is pressed.
    public func releaseKey() {
        engine.send(stream.sender.releaseKey())
    }

    /// Mixes DTMF tones into what is sent, for equipment that knows no telephone events.
    ///
    /// - Throws: `EngineError` when a character is no key.
    public func sendInBandDTMF(_ digits: String, duration: Duration = .milliseconds(100)) throws(EngineError) {
        let sequence = try EngineError.wrapping { try DTMFSequence(parsing: digits) }
        for command in stream.sendTones.commands(playing: sequence, digitDuration: duration) { engine.send(command) }
    }

    /// Mixes a tone into what is sent, in place of the one that sounds there.
    ///
    /// - Throws: `EngineError` when the tone cannot be played at the codec's rate.
    public func insertTone(_ tone: ToneSpec) throws(EngineError) {
        engine.send(try EngineError.wrapping { try stream.sendTones.toneCommand(tone) })
    }

    /// Ends the tone in what is sent.
    public func removeTone() {
        engine.send(stream.sendTones.stopToneCommand())
    }

    // MARK: What is heard

    /// Sets how loud the call is heard.
    public func setVolume(_ volume: Decibels) {
        engine.send(stream.receiveGain.set(gain: volume))
    }

    /// Mixes DTMF tones into what is heard here: key feedback during a call.
    func playLocally(_ digit: DTMFDigit, for duration: Duration) {
        engine.send(stream.receiveTones.playCommand(digit, for: duration, requestedAt: engine.now))
    }

    /// What the playout does, row by row; nil unless the stream's configuration asks for it.
    public var playoutTrace: PlayoutTrace? { stream.playoutTrace }

    /// The level of what is sent, after gain and mute.
    public var sentLevel: AudioLevel { stream.sendMeter.currentLevel }

    /// The level of what is heard, after volume.
    public var heardLevel: AudioLevel { stream.receiveMeter.currentLevel }

    // MARK: Hold, recording, end

    /// Whether the call is held: no audio is sent and none is heard; keys and RTCP still pass.
    public var isOnHold: Bool {
        get { state.withLock { $0.isOnHold } }
        set {
            state.withLock { state in
                state.isOnHold = newValue
                state.isInterrupted = false
            }
            applyHold(newValue)
        }
    }

    /// Puts the call on hold until the interruption ends; answers false when it is on hold anyway.
    func interrupt() -> Bool {
        let isRunning = state.withLock { state in
            guard !state.isOnHold, !state.hasEnded else { return false }
            state.isOnHold = true
            state.isInterrupted = true
            return true
        }
        if isRunning { applyHold(true) }
        return isRunning
    }

    /// Ends the hold that `interrupt` began; answers false when there is none.
    func resumeAfterInterruption() -> Bool {
        let wasInterrupted = state.withLock { state in
            guard state.isInterrupted, !state.hasEnded else { return false }
            state.isOnHold = false
            state.isInterrupted = false
            return true
        }
        if wasInterrupted { applyHold(false) }
        return wasInterrupted
    }

    private func applyHold(_ isOnHold: Bool) {
        engine.send(stream.encoder.sendingCommand(!isOnHold && configuration.sendsAudio))
        engine.send(stream.receiveGain.set(isMuted: isOnHold))
    }

    /// Records each side into a WAV file of its own, from the next tick on.
    ///
    /// - Parameters:
    ///   - near: The file for what is sent; nil records it not.
    ///   - far: The file for what is heard; nil records it not.
    /// - Throws: `EngineError` when a file cannot be written, or a recording goes on.
    public func startRecording(near: String?, far: String?) throws(EngineError) {
        try engine.startRecording(self, near: near, far: far)
    }

    /// Ends the recording; the files are whole when it returns.
    ///
    /// - Throws: `EngineError` when some samples could not be written.
    public func stopRecording() throws(EngineError) {
        try engine.stopRecording(self)
    }

    /// Whether the source (file, samples) has been played to its end.
    public var isSourceEnded: Bool { state.withLock { $0.isSourceEnded } }

    /// Whether the call has ended.
    public var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Keys that the other side has sent so far.
    public var receivedKeys: String { state.withLock { $0.keys } }

    /// Says goodbye (RTCP BYE), takes the call out of the graph and closes its files and sockets.
    ///
    /// - Throws: `EngineError` when a file could not be completed.
    public func end() throws(EngineError) {
        try engine.end(self)
    }

    /// What was sent and received so far.
    ///
    /// - Parameter peer: The call at the other end when it is in this engine; then the delay from mouth to ear is
    ///   known.
    /// - Returns: The counters, read at once.
    public func report(hearing peer: Call? = nil) -> LegReport {
        LegReport(
            name: name,
            rtp: stream.transport.statistics,
            playout: stream.playout.statistics,
            format: stream.format,
            mouthToEar: peer.flatMap { mouthToEar(from: $0) },
            voicePath: stream.transport.session.voicePath,
            dtmf: receivedKeys,
            protection: protection,
            sentLevel: sentLevel,
            heardLevel: heardLevel,
            echo: state.withLock { $0.voice }?.statistics
        )
    }

    private var protection: LegReport.Protection {
        let policy = state.withLock { $0.protection }
        switch configuration.stream.fec {
        case .auto:
            return LegReport.Protection(mode: policy.current.mode, reason: policy.reason, changes: policy.changeCount)
        case .on: return LegReport.Protection(mode: .fec, reason: "always on, as configured", changes: 0)
        case .off: return LegReport.Protection(mode: .none, reason: "off, as configured", changes: 0)
        }
    }

    /// From the capture of the sound that was played last to its playing, the codec's own delay included.
    private func mouthToEar(from peer: Call) -> Duration? {
        let played = stream.playout.statistics
        let anchor = peer.stream.transport.senderAnchor
        // The time stamps of an accepted codec with another clock rate were moved to this one's.
        guard played.hasPlayed, let timestamp = anchor.timestamp,
            peer.stream.codec.clockRate == stream.codec.clockRate
        else { return nil }
        let distance = Int32(bitPattern: played.lastPlayTimestamp &- timestamp)
        let units = Int64(distance) * 1_000_000_000 / Int64(stream.codec.clockRate)
        let captured = anchor.time + .nanoseconds(units)
        return played.lastPlayTime - captured + peer.stream.codecDelay
    }

    // MARK: Events

    /// Takes an event of one of the call's filters.
    ///
    /// Thread: background.
    func handle(_ event: GraphEvent) {
        switch event.name {
        case "key down":
            guard let digit = DTMFDigit(eventCode: UInt8(truncatingIfNeeded: event.value)) else { return }
            state.withLock {
                $0.keys.append(digit.character)
                $0.hasTelephoneEvents = true
            }
            eventSink.yield(.keyDown(digit))
        case "key up":
            guard let digit = DTMFDigit(eventCode: UInt8(truncatingIfNeeded: event.value)) else { return }
            eventSink.yield(.keyUp(digit, duration: .milliseconds(event.detail)))
        case "dtmfstrt", "dtmf": if let received = ReceivedDigit(event) { handleTones(received) }
        case "report": handleReport(at: event.time)
        case "source": eventSink.yield(.sourceChanged)
        case "goodbye": eventSink.yield(.goodbye)
        case "ended":
            state.withLock { $0.isSourceEnded = true }
            eventSink.yield(.sourceEnded)
        default: break
        }
    }

    /// Tells the tones of a key as a key, unless the other side sends telephone events, which say the same better.
    private func handleTones(_ received: ReceivedDigit) {
        let isTold = state.withLock { state in
            if received.isOver {
                defer { state.soundingKey = nil }
                return state.soundingKey == received.digit
            }
            guard !state.hasTelephoneEvents else { return false }
            state.soundingKey = received.digit
            state.keys.append(received.digit.character)
            return true
        }
        guard isTold else { return }
        eventSink.yield(
            received.isOver ? .keyUp(received.digit, duration: received.duration) : .keyDown(received.digit)
        )
    }

    /// Tells whoever reads the events.
    func tell(_ event: CallEvent) {
        eventSink.yield(event)
    }

    func finishEvents() {
        eventSink.finish()
    }

    private func handleReport(at time: MediaTime) {
        let statistics = stream.transport.statistics
        let fraction = statistics.remoteFractionLost
        eventSink.yield(.report(fractionLost: fraction))
        guard configuration.stream.fec == .auto else { return }
        let decision = state.withLock {
            $0.protection.update(fractionLost: fraction, runs: statistics.remoteLossRuns, at: time)
        }
        guard let decision else { return }
        for command in stream.commands(for: decision.protection) { engine.send(command) }
        if decision.isNewMode { eventSink.yield(.lossProtection(decision.protection, reason: decision.reason)) }
    }
}
