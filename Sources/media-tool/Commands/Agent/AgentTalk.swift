import AgentSockets
import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport
import Synchronization

/// A call by SIP whose other end is an agent: what either wants is done to the other.
///
///     caller ◄── SIPCallRun ◄──► AgentTalk ◄──► AgentLine ──► agent
///
/// The agent is there before the call is answered, and told of it afterwards.
final class AgentTalk: Sendable {
    private struct State {
        var line: AgentLine?
        /// Begins the recording, and tells the agent of the call.
        var beginner: Task<Void, Never>?
        var recording: AgentRecording?
        /// The sound of a recording that is whole.
        var recordingPath: String?
        var recordingFailure: (any Error)?
        var follower: Task<Void, Never>?
        var presser: Task<Void, Never>?
        /// Reaches the agent.
        var dialler: Task<AgentLine, any Error>?
        /// Ends the call when the agent has been heard to the end.
        var leaver: Task<Void, Never>?
        var failure: String?
        /// Whether the call is over.
        var isOver = false
    }

    private let callID: String?
    private let teller: SIPTeller
    private let state = Mutex(State())

    /// A talk in the call that is called `callID`; nil where lines need not tell of which call they are.
    init(_ callID: String?, _ teller: SIPTeller) { (self.callID, self.teller) = (callID, teller) }

    /// Why the agent's connection broke off; nil when it did not.
    var failure: String? { state.withLock(\.failure) }

    /// Why the call was not recorded, or not to its end; nil when it was, or was not to be.
    var recordingFailure: (any Error)? { state.withLock(\.recordingFailure) }

    /// Dials the agent, or awaits it.
    ///
    /// - Throws: `AgentError` when it is not there, `CancellationError` when the call is over meanwhile
    func reach(_ connector: AgentConnector, within limit: Duration) async throws {
        let dialler = Task { [callID, teller] in try await connector.line(in: callID, within: limit, teller) }
        let isOver = state.withLock { state in
            state.dialler = dialler
            return state.isOver
        }
        if isOver { dialler.cancel() }
        let line: AgentLine
        do {
            line = try await withTaskCancellationHandler {
                try await dialler.value
            } onCancel: {
                dialler.cancel()
            }
        } catch {
            // Nobody wants to know of an agent for a call that is over.
            throw state.withLock(\.isOver) ? CancellationError() : error
        }
        let isLate = state.withLock { state in
            if !state.isOver { state.line = line }
            return state.isOver
        }
        guard isLate else { return }
        await line.end()
        throw CancellationError()
    }

    /// Where the call's sound comes from and goes to.
    func connect(_ configuration: inout CallConfiguration) {
        guard let line = state.withLock(\.line) else { return }
        (configuration.source, configuration.sink) = (.stream(line.voice), .stream(line.ears))
    }

    /// What the agent is told of the call.
    func wishes(_ session: SIPSessionOptions) -> SIPCallRun.Wishes {
        var wishes = SIPCallRun.Wishes(followsTransfers: session.followTransfers)
        wishes.takesKey = { [weak self] key in
            if let digit = DTMFDigit(key) { self?.state.withLock(\.line)?.press(digit) }
        }
        wishes.takesHold = { [weak self] isHeld in self?.state.withLock(\.line)?.isHeld = isHeld }
        wishes.takesTransfer = { [weak self] target, progress in
            guard case .failed(let status) = progress else { return }
            self?.state.withLock(\.line)?.noteTransferFailed(to: target, status: status)
        }
        return wishes
    }

    /// Does from now on what the agent says; one that goes before the call is answered, and has said nothing, ends it.
    func follow(_ run: SIPCallRun) {
        guard let line = state.withLock(\.line) else { return }
        let (keys, keySink) = AsyncStream<DTMFSequence>.makeStream(bufferingPolicy: .bufferingOldest(Self.keyLimit))
        // One after the other, and what the agent says next does not wait for them.
        let presser = Task {
            for await keys in keys where !Task.isCancelled {
                do {
                    try await run.send(keys: keys)
                } catch {
                    StandardError.write("Note: keys of the agent were not sent: \(error)\n")
                }
            }
        }
        let follower = Task {
            for await event in line.events { await take(event, in: run, line, keySink) }
            keySink.finish()
        }
        state.withLock { ($0.follower, $0.presser) = (follower, presser) }
    }

    /// The call is answered: tells the agent of it; recorded to a folder, if there is one.
    func begin(in run: SIPCallRun, _ call: AgentCall, recordingTo folder: String?) async {
        let beginner = state.withLock { state -> Task<Void, Never>? in
            guard let line = state.line, !state.isOver else { return nil }
            let beginner = Task {
                if let folder { await record(run, call, in: folder) }
                line.begin(call)
            }
            state.beginner = beginner
            return beginner
        }
        await beginner?.value
    }

    private func record(_ run: SIPCallRun, _ call: AgentCall, in folder: String) async {
        guard let sound = await run.sound.call else { return }
        do {
            let recording = try await AgentRecording(of: sound, call, in: folder)
            state.withLock { $0.recording = recording }
        } catch {
            note(error)
        }
    }

    /// The call goes on without its recording, or what is left of it.
    private func note(_ error: any Error) {
        StandardError.write("Note: the recording of a call has failed: \(error)\n")
        state.withLock { $0.recordingFailure = $0.recordingFailure ?? error }
    }

    private func take(
        _ event: AgentLine.Event,
        in run: SIPCallRun,
        _ line: AgentLine,
        _ keys: AsyncStream<DTMFSequence>.Continuation
    ) async {
        teller.tell(event, in: callID)
        state.withLock { $0.recording?.note(event) }
        switch event {
        case .press(let text):
            guard let sequence = try? DTMFSequence(parsing: text), case .enqueued = keys.yield(sequence) else {
                return StandardError.write("Note: keys of the agent were not sent: too many of them wait.\n")
            }
        case .hold(let isHeld): await run.setHeld(isHeld)
        case .transfer(let target):
            guard let uri = try? SIPURI(callable: target) else {
                return line.noteTransferFailed(to: target, status: 400)
            }
            await run.transfer(to: uri)
        case .hangUp: await leave(run, line)
        case .ended(let error?):
            if error.code != .ended { state.withLock { $0.failure = error.description } }
            await leave(run, line)
        case .ended(nil), .voice: break
        }
    }

    /// Ends the call once what the agent has said was heard; before the answer at once, unless something waits for that.
    private func leave(_ run: SIPCallRun, _ line: AgentLine) async {
        let isAnswered = await run.isAnswered
        guard isAnswered || line.waiting > .zero else { return await run.hangUp() }
        state.withLock { state in
            guard state.leaver == nil else { return }
            state.leaver = Task {
                // What is held nobody hears, and what was played last is on its way for a while.
                _ = await Interruption.wait(until: { line.waiting == .zero || line.isHeld || Task.isCancelled })
                guard !Task.isCancelled, await Interruption.wait(Self.farewell), !Task.isCancelled else { return }
                await run.hangUp()
            }
        }
    }

    /// The call is over: tells the agent why, and answers what was carried; nil when it was never there.
    func end(_ end: CallEnd?) async -> AgentReport? {
        let line = state.withLock { state in
            state.isOver = true
            for task in [state.leaver, state.presser] { task?.cancel() }
            state.dialler?.cancel()
            return state.line
        }
        guard let line else { return nil }
        await line.end(end?.cause.word)
        await state.withLock(\.follower)?.value
        await state.withLock(\.beginner)?.value
        await completeRecording()
        return line.report
    }

    /// Completes the recording while the sound is there: the report comes also when that fails.
    private func completeRecording() async {
        guard let recording = state.withLock({ $0.recording.take() }) else { return }
        do {
            let path = try await recording.complete()
            state.withLock { $0.recordingPath = path }
        } catch {
            note(error)
        }
    }

    /// Tells what it came to.
    func tell(_ report: SIPCallReport, _ heard: AgentReport?) {
        let path = state.withLock(\.recordingPath)
        teller.tell(
            "ended",
            report.members + [("agent", heard.map { .object($0.members) } ?? .null), ("recording", JSONValue(path))],
            text: report.text + (heard?.text ?? "")
        )
    }

    private static let farewell = Duration.milliseconds(100)
    /// Presses that wait for those before them.
    private static let keyLimit = 16
}

extension CallEnd.Cause {
    /// What an agent is told.
    fileprivate var word: String {
        switch self {
        case .hungUp: "hungUp"
        case .cancelled: "cancelled"
        case .refused: "refused"
        case .timeout: "timeout"
        case .failed: "failed"
        case .unacknowledged: "unacknowledged"
        case .expired: "expired"
        case .replaced: "replaced"
        case .unacceptable: "unacceptable"
        }
    }
}

/// A recording of a call with an agent: both sides in a WAV file, the agent on the left, and beside it what happened, in JSON.
struct AgentRecording: Sendable {
    private let path: String
    private let sound: Call
    private let call: AgentCall
    private let begin: MediaTime
    private var events: [JSONValue] = []

    /// Begins to record in a folder, under a name that no other call has.
    ///
    /// - Throws: `EngineError` when the file cannot be written
    init(of sound: Call, _ call: AgentCall, in folder: String) async throws {
        (path, self.sound, self.call) = ("\(folder)/\(CallUUID())", sound, call)
        try await sound.startRecording(stereo: path + ".wav")
        begin = MonotonicClock.current
    }

    /// Keeps what happens for the text, up to a bound.
    mutating func note(_ event: AgentLine.Event) {
        guard let line = event.line, events.count < Self.limit else { return }
        let at: [(String, JSONValue)] = [
            ("atSeconds", .number((MonotonicClock.current - begin).roundedSeconds)), ("event", .string(line.name)),
        ]
        events.append(.object(at + line.members))
    }

    /// Ends the recording, writes the text beside the sound, and answers the sound's path.
    ///
    /// - Throws: `EngineError` when the sound, `ToolFailure` when the text could not be written
    func complete() async throws -> String {
        try await sound.stopRecording()
        try write()
        return path + ".wav"
    }

    private func write() throws {
        let parameters = call.parameters.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value)) }
        let text = JSONValue.object([
            ("callID", .string(call.callID)), ("parameters", .object(parameters)), ("left", "agent"),
            ("right", "other side"), ("events", .array(events)),
        ])
        try TextFile.write(text.text + "\n", to: path + ".json")
    }

    private static let limit = 100_000
}
