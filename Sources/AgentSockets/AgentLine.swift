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
/// next packet on, after a ramp of 5 ms. What it has marked it is told of: played, or dropped.
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

        /// Those that most agents take.
        public init() {}
    }

    /// What happens on the line.
    public enum Event: Sendable, Hashable {
        /// The agent's sound begins to be spoken.
        case speaks
        /// Nothing of it waits any more.
        case silent
        /// What it had marked was played, or dropped; so much of all that it has said had been played then.
        case marked(name: String, isPlayed: Bool, position: Duration)
        /// It has cleared what was waiting: so much of that was never heard.
        case cleared(unheard: Duration)
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
        /// Marks in what it cleared.
        public var droppedMarks = 0
        /// How often it has cleared.
        public var clears = 0
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
        /// What the marks of the stream are called, by their numbers.
        var names: [UInt64: String] = [:]
        /// Frames that were handed to the stream, and those of them that were thrown away.
        var writtenFrames = 0
        var clearedFrames = 0
        var heardFrames = 0
        var report = Report()
        var isOver = false
        var tasks: [Task<Void, Never>] = []
    }

    private let connection: AgentConnection
    private let eventSink: AsyncStream<Event>.Continuation
    private let state: Mutex<State>

    /// Connects, and tells the agent of the call.
    ///
    /// - Parameters:
    ///   - address: Where the agent is.
    ///   - call: What it is told.
    ///   - options: How.
    /// - Returns: The line, for one call.
    /// - Throws: `AgentError` when nobody is there, or the format has no such rate
    public static func open(
        to address: AgentAddress,
        _ call: AgentCall,
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
        let line = AgentLine(connection, codec)
        line.begin(call)
        return line
    }

    private init(_ connection: AgentConnection, _ codec: any AgentCodec) {
        let format = AudioFormat(sampleRate: codec.sampleRate)
        voice = StreamSource(format: format, capacity: .milliseconds(400))
        ears = StreamSink(format: format)
        self.connection = connection
        state = Mutex(State(codec: codec, queue: SpeechQueue(sampleRate: codec.sampleRate)))
        (events, eventSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
    }

    private func begin(_ call: AgentCall) {
        tell(.begin(call))
        let tasks = [
            Task { for await event in voice.events { take(event) } },
            Task {
                for await block in ears { hear(block.samples) }
                await end()
            },
        ]
        state.withLock { $0.tasks = tasks }
        Task {
            for await frame in connection.frames { take(frame) }
            finish()
        }
    }

    // MARK: What the application does

    /// Tells the agent of a key that the other side has pressed.
    public func press(_ key: DTMFDigit) { tell(.key(key.character)) }

    /// What the line has carried up to now.
    public var report: Report {
        let rate = voice.format.sampleRate
        let queued = Int(voice.queued.nanoseconds * Int64(rate) / 1_000_000_000)
        return state.withLock { state in
            var report = state.report
            report.heard = voice.format.duration(ofFrames: state.heardFrames)
            report.played = voice.format.duration(ofFrames: max(state.writtenFrames - state.clearedFrames - queued, 0))
            report.gaps = state.queue.gapCount
            report.malformed = state.codec.malformedCount
            report.skipped = connection.droppedCount
            return report
        }
    }

    /// Ends the line: the agent is told, and the connection closed.
    public func end() async {
        let isFirst = state.withLock { state in
            defer { state.isOver = true }
            return !state.isOver
        }
        guard isFirst else { return }
        for frame in state.withLock({ $0.codec.encode(.end) }) { connection.insist(frame) }
        await connection.close()
    }

    // MARK: The call

    /// Takes 20 ms of the call, whose clock it is, too.
    private func hear(_ samples: [Int16]) {
        let frames = state.withLock { state in
            state.heardFrames += samples.count
            state.queue.tick(queued: queuedFrames)
            pass(&state)
            return state.codec.encode(.sound(samples))
        }
        for frame in frames { connection.send(frame) }
    }

    private var queuedFrames: Int {
        Int(voice.queued.nanoseconds * Int64(voice.format.sampleRate) / 1_000_000_000)
    }

    private func pass(_ state: inout State) {
        var (written, marks) = (0, [(number: UInt64, name: String)]())
        state.queue.pass(
            write: { span in
                let taken = voice.tryWrite(span)
                written += taken
                return taken
            },
            mark: { name in
                guard let mark = voice.mark() else { return false }
                marks.append((mark.number, name))
                return true
            }
        )
        state.writtenFrames += written
        for (number, name) in marks { state.names[number] = name }
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
        let (name, frames) = state.withLock { state in
            let played = fate == .played ? mark.position : state.writtenFrames
            return (state.names.removeValue(forKey: mark.number), max(played - state.clearedFrames, 0))
        }
        if let name { tell(name, fate, at: frames) }
    }

    private func tell(_ name: String, _ fate: MarkFate, at frames: Int) {
        state.withLock { state in
            if fate == .played { state.report.playedMarks += 1 } else { state.report.droppedMarks += 1 }
        }
        let position = voice.format.duration(ofFrames: frames)
        eventSink.yield(.marked(name: name, isPlayed: fate == .played, position: position))
        tell(.mark(name, fate, position: Int(position.milliseconds)))
    }

    // MARK: The agent

    private func tell(_ notice: AgentNotice) {
        let frames = state.withLock { $0.isOver ? [] : $0.codec.encode(notice) }
        for frame in frames { connection.insist(frame) }
    }

    private func take(_ frame: AgentFrame) {
        for command in state.withLock({ $0.codec.decode(frame) }) {
            switch command {
            case .sound(let samples):
                state.withLock { state in
                    let lost = state.queue.add(samples)
                    state.report.lost += voice.format.duration(ofFrames: lost)
                    pass(&state)
                }
            case .mark(let name):
                let isTaken = state.withLock { state in
                    let isTaken = state.queue.add(mark: name)
                    pass(&state)
                    return isTaken
                }
                if !isTaken { tell(name, .dropped, at: playedFrames) }
            case .clear: clear()
            case .hangUp: eventSink.yield(.hangUp)
            }
        }
    }

    private var playedFrames: Int {
        let queued = queuedFrames
        return state.withLock { max($0.writtenFrames - $0.clearedFrames - queued, 0) }
    }

    private func clear() {
        let (names, unheard, played) = state.withLock { state in
            let (waiting, queued) = (state.queue.waitingFrameCount, queuedFrames)
            let names = state.queue.clear()
            voice.flush()
            state.clearedFrames += queued
            state.report.clears += 1
            let unheard = voice.format.duration(ofFrames: waiting + queued)
            state.report.unheard += unheard
            return (names, unheard, max(state.writtenFrames - state.clearedFrames, 0))
        }
        eventSink.yield(.cleared(unheard: unheard))
        for name in names { tell(name, .dropped, at: played) }
    }

    /// The connection is over; what the call has of the agent's sound is still spoken.
    private func finish() {
        let tasks = state.withLock { state in
            defer { state.tasks = [] }
            state.isOver = true
            return state.tasks
        }
        for task in tasks { task.cancel() }
        eventSink.yield(.ended(connection.failure))
        eventSink.finish()
    }
}
