internal import CallBasics
internal import MediaEngine
internal import Synchronization

/// What an agent says in a call and hears of it, whatever way it talks to the call.
///
///     agent ──say, mark, clear──► queue ──► voice ──► call
///     agent ◄──heard, events── detector ◄── ears ◄── call          who speaks into it pauses it
///
/// The call is the clock, by 20 ms of what is heard. What `heard` and `tell` are given comes one after the other, in
/// the order in which it happened. It lasts for as long as somebody has it.
/// Thread: any.
final class Conversation: Sendable {
    let voice: StreamSource
    let ears: StreamSink

    private struct State {
        var queue: SpeechQueue
        var ducking: Ducking
        /// What the marks of the stream are called, by their numbers, how much was left out before them, and where they were
        /// dropped, once they are.
        var marks: [UInt64: (name: String, trimmed: Int, droppedAt: Int?)] = [:]
        /// Frames that were handed to the stream, those of them that were thrown away, and where the last of these ended.
        var writtenFrames = 0
        var clearedFrames = 0
        var clearedEnd = 0
        var report = AgentReport()
        /// Whether the agent hears, and whether it is there.
        var isBegun: Bool
        var isOver = false
        /// Whether the call is over.
        var isEnded = false
        var isHeld = false
        /// Whether the agent wants what waits to go on waiting.
        var isPaused = false
        /// What was heard in a tick that has not been played to the end yet.
        var early: StreamSink.Block?
        /// Whether it has said so while speech had paused it.
        var isCaughtPausing = false
        var follower: Task<Void, Never>?

        /// Frames that the stream still has to play, of which it has taken `position`: what was cleared it need not have noticed yet.
        func queuedFrames(_ position: Int) -> Int { max(writtenFrames - max(position, clearedEnd), 0) }
        /// Frames that wait, in the stream and before it.
        func waitingFrames(_ position: Int) -> Int { queue.waitingFrameCount + queuedFrames(position) }
        /// Frames of what the agent said that are over: heard, or left out in a pause.
        func playedFrames(_ position: Int) -> Int {
            writtenFrames - clearedFrames - queuedFrames(position) + queue.trimmedFrameCount
        }
        /// Whether nothing is to be heard, whatever waits.
        var isSilent: Bool { isHeld || isPaused }
    }

    private let heard: @Sendable ([Int16], Int) -> Void
    private let tell: @Sendable (AgentVoiceEvent) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - sampleRate: Of the sound both ways.
    ///   - isPausedBySpeech: Whether the agent is paused by who speaks into it.
    ///   - isBegun: Whether it hears the call at once.
    ///   - heard: Is given what it hears, 20 ms each, and how many frames of what it said wait.
    ///   - tell: Is given what happens.
    init(
        sampleRate: Int,
        isPausedBySpeech: Bool,
        isBegun: Bool,
        heard: @escaping @Sendable ([Int16], _ waiting: Int) -> Void,
        tell: @escaping @Sendable (AgentVoiceEvent) -> Void
    ) {
        let format = AudioFormat(sampleRate: sampleRate)
        // What was played is read with what was heard meanwhile.
        voice = StreamSource(format: format, capacity: .milliseconds(400), recordCapacity: .seconds(2))
        ears = StreamSink(format: format)
        (self.heard, self.tell) = (heard, tell)
        let ducking = Ducking(sampleRate: sampleRate, isOn: isPausedBySpeech)
        state = Mutex(State(queue: SpeechQueue(sampleRate: sampleRate), ducking: ducking, isBegun: isBegun))
    }

    deinit {
        state.withLock(\.follower)?.cancel()
    }

    /// Begins to follow the call.
    ///
    /// - Parameter callEnded: What is done when the call has ended; nil in virtual time, where `step` follows it.
    func start(callEnded: (@Sendable () async -> Void)?) {
        // Whoever has it keeps it, and these do not.
        voice.redirectEvents { [weak self] in self?.take($0) }
        guard let callEnded else { return }
        let follower = Task { [weak self, voice, ears] in
            for await block in ears { self?.hear(block) }
            // What was played last is told before the end.
            for await _ in voice.events {}
            if !Task.isCancelled { await callEnded() }
        }
        state.withLock { $0.follower = follower }
    }

    /// Takes what has come of the call, after each 10 ms of virtual time.
    func step() { while let block = ears.tryRead() { hear(block) } }

    // MARK: What the agent does

    /// Lets the agent hear, once.
    ///
    /// - Parameter first: What is done before it hears anything.
    func begin(first: () -> Void) {
        state.withLock { state in
            guard !state.isBegun else { return }
            state.isBegun = true
            first()
        }
    }

    /// Says something behind what it has said.
    func say(_ samples: [Int16]) {
        state.withLock { state in
            state.report.lost += voice.format.duration(ofFrames: state.queue.add(samples))
            pass(&state)
        }
    }

    /// Marks the end of what it has said; where too many marks wait, this one is dropped at once.
    func mark(_ name: String) {
        state.withLock { state in
            if !state.isOver, !state.isEnded, state.queue.add(mark: name) {
                pass(&state)
            } else {
                tell(name, isPlayed: false, at: state.playedFrames(voice.position), &state)
            }
        }
    }

    /// Takes back what was not heard yet.
    func clear() { state.withLock { state in if !state.isEnded { clear(&state) } } }

    private func clear(_ state: inout State) {
        let queued = state.queuedFrames(voice.position)
        let unheard = voice.format.duration(ofFrames: state.queue.waitingFrameCount + queued)
        let names = state.queue.clear()
        voice.flush()
        // Not before: nothing of that is to be heard.
        state.ducking.commit()
        (state.isPaused, state.isCaughtPausing) = (false, false)
        voice.isPaused = state.isSilent
        state.clearedFrames += queued
        state.clearedEnd = state.writtenFrames
        let played = state.writtenFrames - state.clearedFrames + state.queue.trimmedFrameCount
        for number in state.marks.keys where state.marks[number]?.droppedAt == nil {
            state.marks[number]?.droppedAt = played
        }
        state.report.clears += 1
        state.report.unheard += unheard
        tell(.cleared(unheard: unheard))
        for name in names { tell(name, isPlayed: false, at: played, &state) }
    }

    /// Has what waits go on waiting, by the agent's own word, or be heard; a clear ends that, too.
    func pause(_ isPaused: Bool) {
        state.withLock { state in
            guard !state.isOver else { return }
            // Who pauses itself when it is spoken into has heard that: it goes on by its own word.
            if isPaused, state.ducking.isPaused {
                state.ducking.commit()
                state.isCaughtPausing = true
            }
            state.isPaused = isPaused
            voice.isPaused = state.isSilent || state.ducking.isPaused
            guard !isPaused, state.isCaughtPausing else { return }
            state.isCaughtPausing = false
            state.report.resumptions += 1
            tell(.resumed)
        }
    }

    /// Whether what it says waits until it is to be heard.
    var isHeld: Bool {
        get { state.withLock(\.isHeld) }
        set {
            state.withLock { state in
                state.isHeld = newValue
                voice.isPaused = state.isSilent || state.ducking.isPaused
            }
        }
    }

    /// What of its sound waits to be heard, in the call and before it.
    var waiting: Duration {
        let frames = state.withLock { state in
            state.isEnded ? 0 : state.waitingFrames(voice.position)
        }
        return voice.format.duration(ofFrames: frames)
    }

    var report: AgentReport {
        state.withLock { state in
            var report = state.report
            let played = state.playedFrames(voice.position) - state.queue.trimmedFrameCount
            report.played = voice.format.duration(ofFrames: played)
            report.gaps = state.queue.gapCount
            report.trimmed = voice.format.duration(ofFrames: state.queue.trimmedFrameCount)
            return report
        }
    }

    /// The agent has gone: what it has said is still spoken, while the call lasts, but for what it wanted to wait.
    func leave() {
        state.withLock { state in
            state.isOver = true
            if state.isPaused, !state.isEnded { clear(&state) }
        }
    }

    /// Ends it: marks that were not reached never are.
    ///
    /// - Parameter last: What is done behind that, unless the agent had gone before.
    /// - Returns: Whether it had not.
    func end(last: () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isEnded else { return false }
            state.isEnded = true
            let played = state.playedFrames(voice.position)
            let marks = state.marks.sorted { $0.key < $1.key }.map(\.value)
            state.marks = [:]
            for (name, _, droppedAt) in marks { tell(name, isPlayed: false, at: droppedAt ?? played, &state) }
            for name in state.queue.clear() { tell(name, isPlayed: false, at: played, &state) }
            guard !state.isOver else { return false }
            last()
            state.isOver = true
            return true
        }
    }

    // MARK: The call

    /// Takes 20 ms of the call.
    private func hear(_ block: StreamSink.Block) {
        state.withLock { state in
            if let early = state.early.take() { hear(early, &state) }
            guard voice.hasPlayed(upTo: block.position + block.samples.count) else { return state.early = block }
            hear(block, &state)
        }
    }

    private func hear(_ block: StreamSink.Block, _ state: inout State) {
        let samples = block.samples
        let played = voice.played(samples.count, at: block.position)
        guard state.isBegun else { return }
        state.queue.tick(queued: state.queuedFrames(voice.position), isPlaying: !voice.isPaused)
        pass(&state)
        listen(samples, played: played ?? [Int16](repeating: 0, count: samples.count), &state)
        guard !state.isOver else { return }
        // A mark that has not been told yet waits, too.
        let hasMarks = !state.marks.isEmpty || state.queue.waitingMarkCount > 0
        heard(samples, max(state.waitingFrames(voice.position), hasMarks ? 1 : 0))
    }

    /// Looks whether somebody speaks, and has the agent pause, or go on.
    private func listen(_ samples: [Int16], played: [Int16], _ state: inout State) {
        let isPlaying = !state.isOver && !state.isSilent && state.queuedFrames(voice.position) > 0
        let news = state.ducking.hear(samples.span, played: played.span, isPlaying: isPlaying)
        switch news.speech {
        case .started(let frame)?: tell(.speechStarted(at: voice.format.duration(ofFrames: frame)))
        case .stopped(let frame)?: tell(.speechStopped(at: voice.format.duration(ofFrames: frame)))
        case nil: break
        }
        guard let isPaused = news.isPaused else { return }
        voice.isPaused = isPaused || state.isSilent
        if isPaused { state.report.pauses += 1 } else { state.report.resumptions += 1 }
        tell(isPaused ? .paused : .resumed)
    }

    /// Hands to the call what it has room for; nothing before the agent was told of the call.
    private func pass(_ state: inout State) {
        guard state.isBegun else { return }
        var (written, marks) = (0, [(number: UInt64, name: String, trimmed: Int)]())
        state.queue.pass(
            write: { span in
                let taken = voice.tryWrite(span)
                written += taken
                return taken
            },
            mark: { name, trimmed in
                guard let mark = voice.mark() else { return false }
                marks.append((mark.number, name, trimmed))
                return true
            }
        )
        state.writtenFrames += written
        for (number, name, trimmed) in marks { state.marks[number] = (name, trimmed, nil) }
    }

    private func take(_ event: StreamSource.Event) {
        state.withLock { state in
            switch event {
            case .played(let mark): note(mark, isPlayed: true, &state)
            case .dropped(let mark): note(mark, isPlayed: false, &state)
            case .resumed: tell(.speaks)
            case .starved: tell(.silent)
            case .ended: break
            }
        }
    }

    private func note(_ mark: StreamMark, isPlayed: Bool, _ state: inout State) {
        guard let (name, trimmed, droppedAt) = state.marks.removeValue(forKey: mark.number) else { return }
        let played = droppedAt ?? max(mark.position - state.clearedFrames, 0) + trimmed
        tell(name, isPlayed: isPlayed, at: isPlayed ? played : droppedAt ?? state.playedFrames(voice.position), &state)
    }

    private func tell(_ name: String, isPlayed: Bool, at frames: Int, _ state: inout State) {
        if isPlayed { state.report.playedMarks += 1 } else { state.report.droppedMarks += 1 }
        tell(.marked(name: name, isPlayed: isPlayed, position: voice.format.duration(ofFrames: frames)))
    }
}
