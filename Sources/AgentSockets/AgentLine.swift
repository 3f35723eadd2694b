internal import CallBasics
public import MediaEngine
internal import Synchronization

/// A call's line to a voice agent, which listens and speaks by a socket.
///
///     let line = try await AgentLine.open(to: AgentAddress("ws://127.0.0.1:8765/ws"), AgentCall(callID: id))
///     (configuration.source, configuration.sink) = (.stream(line.voice), .stream(line.ears))
///     for await event in line.events { ... }          // until the agent has gone, or the call has ended
///
/// What the agent says waits in a queue of up to ten minutes, and is spoken at the pace of the call; what it clears is silent from the
/// next packet on, after a ramp of 5 ms. What it has marked it is told of: played, or dropped. It lasts for as long as somebody
/// has it, and ends with its call.
/// Thread: any.
public final class AgentLine: Sendable {
    /// How a line is opened.
    public struct Options: Sendable {
        /// What an agent by WebSocket speaks.
        public var format = AgentFormat.twilio
        /// The rate of the sound both ways, one that the format has: by AudioSocket 8000, 16,000, 24,000 or 48,000 Hz.
        ///
        /// Nil for what most agents of the format take.
        public var sampleRate: Int?
        /// Further header fields of the request by WebSocket, as a key of the agent's.
        public var headers: [(name: String, value: String)] = []
        /// The auth token that signs the request as Twilio does (`X-Twilio-Signature`), by which the agent knows who calls; for its format.
        public var authToken: String?
        /// A file of certificates in PEM that prove the agent's, by wss; nil for those of the machine.
        public var authoritiesPath: String?
        /// Whether what the agent says pauses as soon as the other side speaks into it, until the agent clears it, or 600 ms are over
        /// without that; nil for where the format lets it clear.
        public var isPausedBySpeech: Bool?

        /// Those that most agents take.
        public init() {}
    }

    /// What happens on the line.
    public enum Event: Sendable, Hashable {
        /// To what the agent says.
        case voice(AgentVoiceEvent)
        /// It wants these keys pressed, on the other side of the call.
        case press(String)
        /// It wants the call held, or resumed.
        case hold(Bool)
        /// It wants the other side to call somebody else, and to be left by it.
        case transfer(to: String)
        /// It wants the call to end.
        case hangUp
        /// The connection is over; why, unless this side has ended it.
        case ended(AgentError?)
    }

    /// What happens, for one reader.
    ///
    /// 256 events wait for it; where there are more, what became of the voice gives way to what the agent wants. It finishes with
    /// `ended`.
    public let events: AsyncStream<Event>

    private let conversation: Conversation
    private let link: Link
    /// Nil in virtual time.
    private let reader: Task<Void, Never>?

    /// Connects, and tells the agent of the call.
    ///
    /// - Parameters:
    ///   - address: Where the agent is.
    ///   - call: What it is told; nil for a call that is not answered yet, of which `begin` tells later.
    ///   - options: How.
    /// - Returns: The line, for one call.
    /// - Throws: `AgentError` when nobody is there, or the format has no such rate, or no signature
    public static func open(
        to address: AgentAddress,
        _ call: AgentCall?,
        _ options: Options = Options()
    ) async throws(AgentError) -> AgentLine {
        var generator = SystemRandomNumberGenerator()
        let codec: any AgentCodec
        switch address.way {
        case .webSocket:
            codec = options.format.codec(sampleRate: try options.format.rate(options.sampleRate), &generator)
        case .tcp, .unix:
            let (rate, identifier) = (
                options.sampleRate ?? 8000, UInt128.random(in: 0...UInt128.max, using: &generator)
            )
            guard let made = AudioSocketCodec(sampleRate: rate, identifier: identifier) else {
                throw .noSound("AudioSocket", rate, instead: 8000)
            }
            codec = made
        }
        var headers = options.headers
        if let token = options.authToken {
            guard case .webSocket = address.way, options.format == .twilio else {
                throw AgentError(.invalidOptions, "Only requests of Twilio's format are signed. Give no auth token.")
            }
            headers.append(TwilioSignature.field(of: String(address.description.prefix { $0 != "#" }), token: token))
        }
        let connection = try await AgentConnection.open(
            to: address,
            headers: headers,
            subprotocol: options.format.subprotocol,
            authoritiesPath: options.authoritiesPath
        )
        let line = AgentLine(connection, codec, options.isPausedBySpeech)
        if let call { line.begin(call) }
        return line
    }

    /// A line by a connection that stands.
    convenience init(_ connection: AgentConnection, _ codec: any AgentCodec, _ isPausedBySpeech: Bool?) {
        self.init(Link(connection, codec), connection.frames, isPausedBySpeech)
    }

    /// A line in virtual time, which `step` and `receive` move.
    package convenience init(
        virtual transport: any AgentTransport,
        _ codec: any AgentCodec,
        isPausedBySpeech: Bool? = nil
    ) {
        self.init(Link(transport, codec), nil, isPausedBySpeech)
    }

    private init(_ link: Link, _ frames: AgentFrames?, _ isPausedBySpeech: Bool?) {
        (self.link, events) = (link, link.events)
        let conversation = Conversation(
            sampleRate: link.sampleRate,
            isPausedBySpeech: isPausedBySpeech ?? link.canClear,
            isBegun: false,
            heard: { link.hear($0, waiting: $1) },
            tell: { link.tell($0) }
        )
        self.conversation = conversation
        guard let frames else {
            reader = nil
            conversation.start(callEnded: nil)
            return
        }
        reader = Task {
            for await frame in frames { link.receive(frame, conversation) }
            conversation.leave()
            link.finish()
        }
        conversation.start { [weak self] in await self?.end() }
    }

    deinit { reader?.cancel() }

    /// Takes what has come of the call, after each 10 ms of virtual time.
    package func step() { conversation.step() }

    /// Takes what the agent has sent, in virtual time.
    package func receive(_ frame: AgentFrame) { link.receive(frame, conversation) }

    // MARK: What the application does

    /// The call's source: what the agent says.
    public var voice: StreamSource { conversation.voice }
    /// The call's sink: what the agent hears.
    public var ears: StreamSink { conversation.ears }

    /// Tells the agent of the call, once: before that it hears nothing of it, and what it says waits.
    public func begin(_ call: AgentCall) { conversation.begin { link.begin(call) } }

    /// Tells the agent of a key that the other side has pressed.
    public func press(_ key: DTMFDigit) { link.send(.key(key.character)) }

    /// Tells the agent that whom it wanted called does not take the call, by the status of SIP; the call goes on.
    public func noteTransferFailed(to target: String, status: Int) {
        link.send(.transferFailed(to: target, status: status))
    }

    /// Whether what the agent says waits, as while the call is held, after a ramp of 5 ms.
    public var isHeld: Bool {
        get { conversation.isHeld }
        set { conversation.isHeld = newValue }
    }

    /// What of the agent's sound waits to be heard, in the call and before it; nothing once the call has ended.
    public var waiting: Duration { conversation.waiting }

    /// What the line has carried up to now.
    public var report: AgentReport { link.complete(conversation.report) }

    /// Ends the line: the agent is told, first of the marks that were not reached, and the connection closed.
    ///
    /// - Parameter reason: Why the call is over, in one word that the agent is told where its format has room for it.
    public func end(_ reason: String? = nil) async {
        if conversation.end(last: { link.end(reason) }) { await link.close() }
    }
}

/// A connection to an agent with its format, and who is told of what comes by it.
///
/// Thread: any.
private final class Link: Sendable {
    private struct State {
        var codec: any AgentCodec
        var heardFrames = 0
        /// Whether the agent was told of the call, and of its end.
        var isBegun = false
        var isOver = false
        /// Whether the connection is over.
        var isGone = false
        /// Whether it has asked for the end.
        var isHungUp = false
    }

    let events: AsyncStream<AgentLine.Event>
    let sampleRate: Int
    let canClear: Bool
    private let connection: any AgentTransport
    private let queue = AgentEventQueue()
    private let state: Mutex<State>

    init(_ connection: any AgentTransport, _ codec: any AgentCodec) {
        self.connection = connection
        (sampleRate, canClear) = (codec.sampleRate, type(of: codec).canClear)
        state = Mutex(State(codec: codec))
        events = queue.events
    }

    deinit { queue.close() }

    // MARK: To the agent

    func begin(_ call: AgentCall) {
        state.withLock { $0.isBegun = true }
        send(.begin(call))
    }

    func hear(_ samples: [Int16], waiting frameCount: Int) {
        state.withLock { state in
            for frame in state.codec.encode(.sound(samples)) where connection.send(frame) {
                state.heardFrames += samples.count
            }
            for frame in state.codec.encode(.waiting(frameCount: frameCount)) { connection.insist(frame) }
        }
    }

    /// Sent in the order in which they are numbered.
    func send(_ notice: AgentNotice) {
        state.withLock { state in
            guard state.isBegun, !state.isOver else { return }
            for frame in state.codec.encode(notice) { connection.insist(frame) }
        }
    }

    func tell(_ event: AgentVoiceEvent) {
        // The end comes last.
        state.withLock { state in if !state.isGone { queue.put(.voice(event)) } }
        switch event {
        case .speechStarted(let time): send(.speech(true, position: Int(time.milliseconds)))
        case .speechStopped(let time): send(.speech(false, position: Int(time.milliseconds)))
        case .marked(let name, let isPlayed, let position):
            send(.mark(name, isPlayed ? .played : .dropped, position: Int(position.milliseconds)))
        case .cleared: send(.cleared)
        case .speaks, .silent, .paused, .resumed: break
        }
    }

    func end(_ reason: String?) {
        send(.end(reason))
        state.withLock { $0.isOver = true }
    }

    func close() async { await connection.close() }

    // MARK: From the agent

    func receive(_ frame: AgentFrame, _ conversation: Conversation) {
        let (requests, wasHungUp) = state.withLock { ($0.codec.decode(frame), $0.isHungUp) }
        var isHungUp = wasHungUp
        for request in requests {
            // Who has hung up may still clear: the call ends once what was said before is heard.
            guard !isHungUp || request.isClear else { continue }
            obey(request, conversation)
            if case .hangUp = request { isHungUp = true }
        }
    }

    private func obey(_ request: AgentRequest, _ conversation: Conversation) {
        switch request {
        case .sound(let samples): conversation.say(samples)
        case .mark(let name): conversation.mark(name)
        case .clear: conversation.clear()
        case .pause(let isPaused): conversation.pause(isPaused)
        case .press(let keys): queue.put(.press(keys))
        case .hold(let isHeld): queue.put(.hold(isHeld))
        case .transfer(let target): queue.put(.transfer(to: target))
        case .hangUp:
            state.withLock { $0.isHungUp = true }
            queue.put(.hangUp)
        }
    }

    /// The connection is over; what the agent has said is still spoken, while the call lasts.
    func finish() {
        let isHungUp = state.withLock { state in
            (state.isOver, state.isGone) = (true, true)
            return state.isHungUp
        }
        // Who has hung up need not read on, and a stream that is closed unread breaks off.
        let failure = connection.failure.map { isHungUp ? AgentError(.ended, "The agent has hung up.") : $0 }
        queue.finish(with: .ended(failure))
    }

    /// A report with what the connection knows.
    func complete(_ report: AgentReport) -> AgentReport {
        var report = report
        state.withLock { state in
            report.heard = AudioFormat(sampleRate: sampleRate).duration(ofFrames: state.heardFrames)
            report.malformed = state.codec.malformedCount
        }
        report.skipped = connection.droppedCount
        return report
    }
}
