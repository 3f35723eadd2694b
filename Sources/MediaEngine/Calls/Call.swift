public import CallBasics
import Logging
import RTP
import Synchronization

/// One full-duplex leg: it sends what its source gives, and plays what it receives.
///
/// Made by `CallEngine.makeCall`, and there until `end`. What is asked of it takes effect at the edge of the next tick.
/// Thread: control, any; nothing here blocks.
public final class Call: Sendable {
    enum Life {
        case prepared
        case running
        case ending
        case ended
    }

    struct State {
        var stream: AudioStream
        var sections: CallSections?
        var life = Life.prepared
        var phase: EncodingPhases.Phase?
        var keys = ReceivedKeys()
        var isSourceEnded = false
        var protection: LossPolicy
        var recording: CallRecording?
        /// The number of the recording whose files are being opened, while it is wanted.
        var openingRecording: Int?
        var recordingCount = 0
        /// The conference that the call is in.
        var conference: Conference?
    }

    /// The call's name in reports.
    public let name: String
    /// Where the other side's RTP must go.
    public let localAddress: SocketAddress
    /// Where its RTCP must go when RTP and RTCP do not share one port.
    public let localControlAddress: SocketAddress?
    /// What happens in the call.
    ///
    /// One task reads it; the newest 256 events wait for it. It finishes with the call's end.
    public let events: AsyncStream<CallEvent>

    let number: UInt64
    let configuration: CallConfiguration
    let source: CallSourceEnd
    let sink: CallSinkEnd
    /// The sound for who is held.
    let held: CallSourceEnd?
    let capture: CaptureFile?
    let sockets: CallSockets
    /// What works on the microphone's signal, unless another call's does.
    let ownVoice: CallVoice?
    let controls: StreamControls
    let state: Mutex<State>
    let engine: EngineCore
    /// One change of the call at a time: updates, recordings, the end.
    let changes = AsyncLock()
    private let eventSink: AsyncStream<CallEvent>.Continuation

    init(
        _ configuration: CallConfiguration,
        number: UInt64,
        stream: AudioStream,
        sockets: CallSockets,
        source: CallSourceEnd,
        sink: CallSinkEnd,
        held: CallSourceEnd?,
        capture: CaptureFile?,
        voice: CallVoice?,
        phase: EncodingPhases.Phase,
        engine: EngineCore
    ) {
        name = configuration.name
        localAddress = sockets.local
        localControlAddress = sockets.localControl
        self.number = number
        self.configuration = configuration
        self.sockets = sockets
        self.source = source
        self.sink = sink
        self.held = held
        self.capture = capture
        self.engine = engine
        ownVoice = voice
        controls = stream.controls
        state = Mutex(State(stream: stream, phase: phase, protection: LossPolicy(stream.lossAbilities)))
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
        set(.held, configuration.isOnHold)
        follow(stream.agreement)
    }

    /// The stream as it is now.
    var stream: AudioStream { state.withLock { $0.stream } }

    // MARK: Facts

    /// What both sides agreed on, as of the last update.
    public var agreement: MediaAgreement { stream.agreement }

    /// Whether the source (file, samples, stream) has been played to its end.
    package var isSourceEnded: Bool {
        engine.loop.serve()
        return state.withLock { $0.isSourceEnded }
    }

    /// Whether the call has ended, or is about to.
    public var hasEnded: Bool { state.withLock { $0.life == .ended || $0.life == .ending } }

    /// Keys that the other side has sent so far, the last 1024.
    public var receivedKeys: String {
        engine.loop.serve()
        return state.withLock { $0.keys.text }
    }

    /// What the playout does, row by row; nil unless the stream's configuration asks for it.
    package var playoutTrace: PlayoutTrace? { stream.playoutTrace }

    var endedError: EngineError { .state(.callEnded, "\(name) has ended. Make another call.") }

    // MARK: Events

    /// Tells whoever reads the events.
    func tell(_ event: CallEvent) {
        eventSink.yield(event)
    }

    func finishEvents() {
        eventSink.finish()
    }

    func sourceEnded() {
        state.withLock { $0.isSourceEnded = true }
        tell(.sourceEnded)
    }

    /// Listens to the filters of the stream that talk.
    func listen(to stream: AudioStream) {
        engine.loop.listen(to: stream.receiver) { [weak self] event, time in self?.handle(event, at: time) }
        engine.loop.listen(to: stream.encoder) { [weak self] event, _ in
            guard case .placed(let tick, let count) = event else { return }
            self?.hold(tick, of: count)
        }
        guard let keyListener = stream.keyListener else { return }
        engine.loop.listen(to: keyListener) { [weak self] event, _ in
            let told = self?.state.withLock { $0.keys.note(event) }
            if let told = told ?? nil { self?.tell(told) }
        }
    }

    /// Counts the call where it encodes since its packets have another length, as long as it runs.
    ///
    /// Thread: background.
    private func hold(_ tick: Int, of count: Int) {
        let phase = engine.phases.hold(tick, of: count)
        state.withLock { if $0.life == .running { $0.phase = phase } }
    }

    /// Thread: background.
    private func handle(_ event: RTPReceiveEvent, at time: MediaTime) {
        switch event {
        case .keyDown(let code):
            if let digit = state.withLock({ $0.keys.note(code) }) { tell(.keyDown(digit)) }
        case .keyUp(let code, let milliseconds):
            guard let digit = DTMFDigit(eventCode: code) else { return }
            tell(.keyUp(digit, duration: .milliseconds(Int64(milliseconds))))
        case .report: handleReport(at: time)
        case .goodbye: tell(.goodbye)
        case .sourceChanged: tell(.sourceChanged)
        case .stalled(let nanoseconds): tell(.mediaStalled(after: .nanoseconds(nanoseconds)))
        case .resumed: tell(.mediaResumed)
        }
    }

    private func handleReport(at time: MediaTime) {
        let stream = stream
        let statistics = stream.rtpStatistics
        let fraction = statistics.remoteFractionLost
        tell(.report(fractionLost: fraction))
        guard configuration.stream.fec == .auto else { return }
        let decision = state.withLock {
            $0.protection.update(fractionLost: fraction, runs: statistics.remoteLossRuns, at: time)
        }
        guard let decision else { return }
        do throws(EngineError) {
            try engine.loop.give(stream.orders(for: decision.protection))
        } catch {
            return engine.configuration.logger.warning("\(name): \(error)")
        }
        if decision.isNewMode { tell(.lossProtection(decision.protection, reason: decision.reason)) }
    }
}

/// The keys that the other side has pressed, told by telephone events, or by tones where those are listened to.
struct ReceivedKeys {
    /// Keys that are kept.
    static let capacity = 1024

    private var digits: [DTMFDigit] = []
    private var hasTelephoneEvents = false
    /// The key whose tones sound.
    private var sounding: DTMFDigit?

    /// The keys, the oldest first.
    var text: String { String(digits.map(\.character)) }

    /// Notes the event `code`; answers the key that it stands for.
    mutating func note(_ code: UInt8) -> DTMFDigit? {
        guard let digit = DTMFDigit(eventCode: code) else { return nil }
        hasTelephoneEvents = true
        append(digit)
        return digit
    }

    /// Notes the tones of a key, unless the other side sends telephone events, which say the same better; answers what is
    /// to be told.
    mutating func note(_ tones: DTMFDetectorFilter.Event) -> CallEvent? {
        guard tones.isOver else {
            guard !hasTelephoneEvents else { return nil }
            sounding = tones.digit
            append(tones.digit)
            return .keyDown(tones.digit)
        }
        defer { sounding = nil }
        guard sounding == tones.digit else { return nil }
        return .keyUp(tones.digit, duration: .nanoseconds(tones.nanoseconds))
    }

    private mutating func append(_ digit: DTMFDigit) {
        if digits.count == Self.capacity { digits.removeFirst() }
        digits.append(digit)
    }
}
