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
        /// Of the sound to an agent by AudioSocket, and of its own: 8000, 16000, 24000 or 48000 Hz; Twilio's format has 8000 Hz.
        public var sampleRate = 8000
        /// Further header fields of the request by WebSocket, as a key of the agent's.
        public var headers: [(name: String, value: String)] = []
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
        /// The agent's sound begins to be spoken.
        case speaks
        /// Nothing of it waits any more.
        case silent
        /// The other side began to speak, or has ended to, when the agent had been told of so much.
        case speechStarted(at: Duration)
        case speechStopped(at: Duration)
        /// What the agent says pauses, since the other side speaks into it.
        case paused
        /// It goes on where it paused, since the agent has not cleared it.
        case resumed
        /// What it had marked was played, or dropped; so much of all that it has said had been played then.
        case marked(name: String, isPlayed: Bool, position: Duration)
        /// It has cleared what was waiting: so much of that was never heard.
        case cleared(unheard: Duration)
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

    /// What a line has carried.
    public struct Report: Sendable, Hashable {
        /// What the agent was sent of the call.
        public var heard = Duration.zero
        /// What was played of its own sound.
        public var played = Duration.zero
        /// What it cleared before it was heard.
        public var unheard = Duration.zero
        /// What found no room.
        public var lost = Duration.zero
        /// Marks that were reached.
        public var playedMarks = 0
        /// Marks that were not: in what it cleared, more than 1024, or at the end.
        public var droppedMarks = 0
        /// How often it has cleared.
        public var clears = 0
        /// How often it was paused by speech, and how often of these it went on without being cleared.
        public var pauses = 0
        public var resumptions = 0
        /// Times that its sound had a gap within what it said.
        public var gaps = 0
        /// Messages of it that broke the format.
        public var malformed = 0
        /// Pieces of sound that it did not take in time.
        public var skipped = 0
    }

    /// The call's source: what the agent says.
    public let voice: StreamSource
    /// The call's sink: what the agent hears.
    public let ears: StreamSink
    /// What happens, for one reader.
    ///
    /// The newest 256 events wait for it. It finishes with `ended`.
    public let events: AsyncStream<Event>

    private struct State {
        var codec: any AgentCodec
        var queue: SpeechQueue
        var ducking: Ducking
        /// What the marks of the stream are called, by their numbers, and where they were dropped, once they are.
        var marks: [UInt64: (name: String, droppedAt: Int?)] = [:]
        /// Frames that were handed to the stream, those of them that were thrown away, and where the last of these ended.
        var writtenFrames = 0
        var clearedFrames = 0
        var clearedEnd = 0
        var heardFrames = 0
        var report = Report()
        /// Whether the agent has asked for the end.
        var isHungUp = false
        /// Whether it was told of the call.
        var isBegun = false
        var isOver = false
        var tasks: [Task<Void, Never>] = []

        /// Frames that the stream still has to play, of which it has taken `position`: what was cleared it need not have noticed yet.
        func queuedFrames(_ position: Int) -> Int { max(writtenFrames - max(position, clearedEnd), 0) }
        /// Frames that were heard.
        func playedFrames(_ position: Int) -> Int { writtenFrames - clearedFrames - queuedFrames(position) }
    }

    private let connection: AgentConnection
    private let eventSink: AsyncStream<Event>.Continuation
    private let state: Mutex<State>

    /// Connects, and tells the agent of the call.
    ///
    /// - Parameters:
    ///   - address: Where the agent is.
    ///   - call: What it is told; nil for a call that is not answered yet, of which `begin` tells later.
    ///   - options: How.
    /// - Returns: The line, for one call.
    /// - Throws: `AgentError` when nobody is there, or the format has no such rate
    public static func open(
        to address: AgentAddress,
        _ call: AgentCall?,
        _ options: Options = Options()
    ) async throws(AgentError) -> AgentLine {
        var generator = SystemRandomNumberGenerator()
        let codec: any AgentCodec
        switch address.way {
        case .webSocket: codec = TwilioCodec(&generator)
        case .tcp, .unix:
            guard
                let made = AudioSocketCodec(
                    sampleRate: options.sampleRate,
                    identifier: .random(in: 0...UInt128.max, using: &generator)
                )
            else {
                throw AgentError(.invalidAddress, "AudioSocket has no sound of \(options.sampleRate) Hz. Take 8000.")
            }
            codec = made
        }
        let connection = try await AgentConnection.open(
            to: address,
            headers: options.headers,
            authoritiesPath: options.authoritiesPath
        )
        let line = AgentLine(connection, codec, isPausedBySpeech: options.isPausedBySpeech)
        line.start()
        if let call { line.begin(call) }
        return line
    }

    private init(_ connection: AgentConnection, _ codec: any AgentCodec, isPausedBySpeech: Bool?) {
        let format = AudioFormat(sampleRate: codec.sampleRate)
        voice = StreamSource(format: format, capacity: .milliseconds(400))
        ears = StreamSink(format: format)
        self.connection = connection
        let ducking = Ducking(sampleRate: codec.sampleRate, isOn: isPausedBySpeech ?? type(of: codec).canClear)
        state = Mutex(State(codec: codec, queue: SpeechQueue(sampleRate: codec.sampleRate), ducking: ducking))
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
    }

    deinit {
        for task in state.withLock(\.tasks) { task.cancel() }
    }

    private func start() {
        // Whoever has the line keeps it, and these do not.
        let tasks = [
            Task { [weak self, voice] in for await event in voice.events { self?.take(event) } },
            Task { [weak self, ears] in
                for await block in ears { self?.hear(block.samples) }
                if !Task.isCancelled { await self?.end() }
            },
            Task { [weak self, frames = connection.frames] in
                for await frame in frames { self?.take(frame) }
                self?.finish()
            },
        ]
        state.withLock { $0.tasks = tasks }
    }

    // MARK: What the application does

    /// Tells the agent of the call, once: before that it hears nothing of it, and what it says waits.
    public func begin(_ call: AgentCall) {
        state.withLock { state in
            guard !state.isBegun else { return }
            state.isBegun = true
            send(.begin(call), &state)
        }
    }

    /// Tells the agent of a key that the other side has pressed.
    public func press(_ key: DTMFDigit) { tell(.key(key.character)) }

    /// Tells the agent that whom it wanted called does not take the call, by the status of SIP; the call goes on.
    public func noteTransferFailed(to target: String, status: Int) {
        tell(.transferFailed(to: target, status: status))
    }

    /// What of the agent's sound waits to be heard, in the call and before it.
    public var waiting: Duration {
        let frames = state.withLock { $0.queue.waitingFrameCount + $0.queuedFrames(voice.position) }
        return voice.format.duration(ofFrames: frames)
    }

    /// What the line has carried up to now.
    public var report: Report {
        state.withLock { state in
            var report = state.report
            report.heard = voice.format.duration(ofFrames: state.heardFrames)
            report.played = voice.format.duration(ofFrames: state.playedFrames(voice.position))
            report.gaps = state.queue.gapCount
            report.malformed = state.codec.malformedCount
            report.skipped = connection.droppedCount
            return report
        }
    }

    /// Ends the line: the agent is told, first of the marks that were not reached, and the connection closed.
    ///
    /// - Parameter reason: Why the call is over, in one word that the agent is told where its format has room for it.
    public func end(_ reason: String? = nil) async {
        let isFirst = state.withLock { state in
            guard !state.isOver else { return false }
            dropAll(&state)
            send(.end(reason), &state)
            state.isOver = true
            return true
        }
        if isFirst { await connection.close() }
    }

    // MARK: The call

    /// Takes 20 ms of the call, whose clock it is, too.
    private func hear(_ samples: [Int16]) {
        state.withLock { state in
            state.queue.tick(queued: state.queuedFrames(voice.position))
            pass(&state)
            guard state.isBegun else { return }
            listen(samples, &state)
            guard !state.isOver else { return }
            for frame in state.codec.encode(.sound(samples)) where connection.send(frame) {
                state.heardFrames += samples.count
            }
        }
    }

    /// Looks whether somebody speaks, and has the agent pause, or go on.
    private func listen(_ samples: [Int16], _ state: inout State) {
        let position = voice.position
        let isPlaying = !state.isOver && state.queuedFrames(position) > 0
        let news = state.ducking.hear(samples.span, position: position, isPlaying: isPlaying)
        switch news.speech {
        case .started(let frame)?: tell(true, at: frame, &state)
        case .stopped(let frame)?: tell(false, at: frame, &state)
        case nil: break
        }
        guard let isPaused = news.isPaused else { return }
        voice.isPaused = isPaused
        if isPaused { state.report.pauses += 1 } else { state.report.resumptions += 1 }
        eventSink.yield(isPaused ? .paused : .resumed)
    }

    private func tell(_ isSpeaking: Bool, at frame: Int, _ state: inout State) {
        let position = voice.format.duration(ofFrames: frame)
        eventSink.yield(isSpeaking ? .speechStarted(at: position) : .speechStopped(at: position))
        send(.speech(isSpeaking, position: Int(position.milliseconds)), &state)
    }

    private func pass(_ state: inout State) {
        var (written, marks) = (0, [(number: UInt64, name: String)]())
        var ducking = state.ducking
        state.queue.pass(
            write: { span in
                let taken = voice.tryWrite(span)
                ducking.note(span.extracting(first: taken))
                written += taken
                return taken
            },
            mark: { name in
                guard let mark = voice.mark() else { return false }
                marks.append((mark.number, name))
                return true
            }
        )
        state.ducking = ducking
        state.writtenFrames += written
        for (number, name) in marks { state.marks[number] = (name, nil) }
    }

    private func take(_ event: StreamSource.Event) {
        switch event {
        case .played(let mark): note(mark, .played)
        case .dropped(let mark): note(mark, .dropped)
        case .resumed: eventSink.yield(.speaks)
        case .starved: eventSink.yield(.silent)
        case .ended: break
        }
    }

    private func note(_ mark: StreamMark, _ fate: MarkFate) {
        state.withLock { state in
            guard let (name, droppedAt) = state.marks.removeValue(forKey: mark.number) else { return }
            let played = droppedAt ?? max(mark.position - state.clearedFrames, 0)
            tell(name, fate, at: fate == .played ? played : droppedAt ?? state.playedFrames(voice.position), &state)
        }
    }

    private func tell(_ name: String, _ fate: MarkFate, at frames: Int, _ state: inout State) {
        if fate == .played { state.report.playedMarks += 1 } else { state.report.droppedMarks += 1 }
        let position = voice.format.duration(ofFrames: frames)
        eventSink.yield(.marked(name: name, isPlayed: fate == .played, position: position))
        send(.mark(name, fate, position: Int(position.milliseconds)), &state)
    }

    // MARK: The agent

    private func tell(_ notice: AgentNotice) { state.withLock { send(notice, &$0) } }

    /// Sent in the order in which they are numbered.
    private func send(_ notice: AgentNotice, _ state: inout State) {
        guard state.isBegun, !state.isOver else { return }
        for frame in state.codec.encode(notice) { connection.insist(frame) }
    }

    private func take(_ frame: AgentFrame) {
        state.withLock { state in
            for request in state.codec.decode(frame) {
                switch request {
                case .sound(let samples):
                    state.report.lost += voice.format.duration(ofFrames: state.queue.add(samples))
                case .mark(let name):
                    guard state.queue.add(mark: name) else {
                        tell(name, .dropped, at: state.playedFrames(voice.position), &state)
                        continue
                    }
                case .clear: clear(&state)
                case .press(let keys): eventSink.yield(.press(keys))
                case .hold(let isHeld): eventSink.yield(.hold(isHeld))
                case .transfer(let target): eventSink.yield(.transfer(to: target))
                case .hangUp:
                    state.isHungUp = true
                    eventSink.yield(.hangUp)
                }
                pass(&state)
            }
        }
    }

    private func clear(_ state: inout State) {
        let queued = state.queuedFrames(voice.position)
        let unheard = voice.format.duration(ofFrames: state.queue.waitingFrameCount + queued)
        let names = state.queue.clear()
        voice.flush()
        // Not before: nothing of that is to be heard.
        state.ducking.commit()
        voice.isPaused = false
        state.clearedFrames += queued
        state.clearedEnd = state.writtenFrames
        let played = state.writtenFrames - state.clearedFrames
        for number in state.marks.keys where state.marks[number]?.droppedAt == nil {
            state.marks[number]?.droppedAt = played
        }
        state.report.clears += 1
        state.report.unheard += unheard
        eventSink.yield(.cleared(unheard: unheard))
        for name in names { tell(name, .dropped, at: played, &state) }
    }

    /// The line is at its end: what has not been reached never is.
    private func dropAll(_ state: inout State) {
        let played = state.playedFrames(voice.position)
        let marks = state.marks.sorted { $0.key < $1.key }.map(\.value)
        state.marks = [:]
        for (name, droppedAt) in marks { tell(name, .dropped, at: droppedAt ?? played, &state) }
        for name in state.queue.clear() { tell(name, .dropped, at: played, &state) }
    }

    /// The connection is over; what the agent has said is still spoken, while the call lasts.
    private func finish() {
        let isHungUp = state.withLock { state in
            state.isOver = true
            return state.isHungUp
        }
        // Who has hung up need not read on, and a stream that is closed unread breaks off.
        let failure = connection.failure.map { isHungUp ? AgentError(.ended, "The agent has hung up.") : $0 }
        eventSink.yield(.ended(failure))
        eventSink.finish()
    }
}
