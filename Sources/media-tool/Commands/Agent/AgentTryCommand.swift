import AgentSockets
import ArgumentParser
import CallBasics
import MediaEngine
import Synchronization

/// Talks to an agent through the card, or by files, without any signalling.
struct AgentTryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "Talks to a voice agent, through the card or by files.",
        discussion: """
            It ends when the agent does and what it has said was heard, after --seconds, and by Ctrl-C; with --input alone, 3 s behind the end of the file. A line \
            says when the agent speaks and falls silent, what it clears, and which marks were played or dropped. With --agents-at an agent has 60 s to \
            dial in, where the first line says, or --seconds if those are fewer.

            With --json each is a line: "agentAwaited" with "address" and "path", "connected", "speaks", "silent", "marked" with "name", "played" and "seconds" of the agent's \
            sound, "cleared" with "unheardSeconds", "press", "hold" and "transferTo" (which need a call by SIP), "hangUp", "agentEnded" with \
            "reason"; and "report" at the end. What --record keeps of the talk, `report` draws on one time line.

            EXAMPLES
              media-tool agent try --to ws://127.0.0.1:8765/ws
              media-tool agent try --to ws://127.0.0.1:8765/ws --input speech.wav --output heard.wav --json
              media-tool agent try --to ws://127.0.0.1:8765/ws --input speech.wav --record talks
              media-tool agent try --to audiosocket:127.0.0.1:9092 --rate 16000 --dtmf 12#
              media-tool agent try --agents-at 127.0.0.1:8088 --rate 16000
            """
    )

    @OptionGroup var agent: AgentOptions

    @Option(
        help: ArgumentHelp("The WAV file that the agent hears, once. \(InputPath.help)", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var input: String?

    @Option(
        help: ArgumentHelp("The WAV file to write what the agent says to.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(help: ArgumentHelp("How long it lasts at most.", valueName: "n"))
    var seconds: Double?

    @Option(help: ArgumentHelp("Keys that the agent is told of, from 0.5 s on.", valueName: "digits"))
    var dtmf: Digits?

    @OptionGroup var record: AgentRecordOption
    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try roles.check(beside: "--input", input)
        try roles.check(beside: "--output", output)
        var files = FileArguments()
        try files.read("--input", input.map { InputPath.path(of: $0) })
        try files.write("--output", output)
        try dtmf?.validate(limit: 64)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let failure = try await CallEngine.session(try roles.engineConfiguration()) { engine in try await talk(engine) }
        if let failure { throw ToolFailure(failure) }
    }

    /// Talks until it is over; answers what has failed, if something has.
    private func talk(_ engine: CallEngine) async throws -> String? {
        var generator = SystemRandomNumberGenerator()
        let name = "CA" + String(UInt128.random(in: 0...UInt128.max, using: &generator), radix: 16)
        let call = try AgentCall(callID: name, parameters: agent.parameters())
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let connector = try await AgentConnector(agent)
        let wait = Duration.seconds(min(seconds ?? 60, 60))
        let reached = try await Interruption.orValue { try await connector.line(call, within: wait, teller) }
        await connector.close()
        guard let line = reached else { return nil }
        teller.tell("connected", [("to", .string(connector.address))], text: "Connected to \(connector.address).")
        let begin = MonotonicClock.current
        let limit = try seconds.map { Duration.seconds(fraction: $0) } ?? inputLength().map { $0 + Self.rest }
        let calls = try await engine.makeCalls(legs(line))
        var recording: AgentRecording?
        if let folder = record.folder { recording = try await AgentRecording(of: calls[1], call, in: folder) }
        let state = Mutex<(isOver: Bool, failure: String?, recording: AgentRecording?)>((false, nil, recording))
        let follower = Task { [line] in
            for await event in line.events {
                teller.tell(event)
                state.withLock { $0.recording?.note(event) }
                switch event {
                case .hangUp: state.withLock { $0.isOver = true }
                case .ended(let error):
                    state.withLock { state in
                        state.isOver = true
                        state.failure = error.flatMap { $0.code == .ended ? nil : $0.description }
                    }
                default: break
                }
            }
        }
        let presser = Task { await press(calls[0]) }
        let listener = Task { for await case .keyDown(let digit) in calls[1].events { line.press(digit) } }
        var end = limit.map { begin + $0 }
        _ = await Interruption.wait(
            until: {
                let now = MonotonicClock.current
                // A pipe does not say how long it is.
                if end == nil, input != nil, calls[0].isSourceEnded { end = now + Self.rest }
                return state.withLock(\.isOver) && line.waiting == .zero || end.map { now >= $0 } ?? false
            }
        )
        for task in [presser, listener] { task.cancel() }
        await line.end()
        await follower.value
        var (path, failure): (String?, (any Error)?)
        if let recording = state.withLock(\.recording) {
            do { path = try await recording.complete() } catch { failure = error }
        }
        for call in calls { do { try await call.end() } catch { failure = failure ?? error } }
        let report = line.report
        teller.tell("report", report.members + [("recording", JSONValue(path))], text: report.text)
        if let failure { throw failure }
        return state.withLock(\.failure)
    }

    /// How long the agent has behind the end of the file.
    private static let rest = Duration.seconds(3)

    /// How long the file is; nil without one, and where it does not say.
    private func inputLength() throws -> Duration? {
        guard let input else { return nil }
        return try AudioInput(path: input, seconds: nil, format: CallEngine.cardFormat).length
    }

    /// Who talks, and the agent's line: two legs that meet in memory, as a call over a good network.
    private func legs(_ line: AgentLine) -> [CallConfiguration] {
        let (left, right) = MemoryLink.pair()
        var caller = CallConfiguration(network: .link(left, local: left.localAddress))
        caller.name = "caller"
        caller.agreement.codec = line.voice.format.sampleRate == 8000 ? "PCMU" : "opus"
        var agent = caller
        agent.network = .link(right, local: right.localAddress)
        agent.name = "agent"
        (caller.agreement.remote, agent.agreement.remote) = (right.localAddress, left.localAddress)
        (agent.source, agent.sink) = (.stream(line.voice), .stream(line.ears))
        if input != nil || output != nil {
            caller.source = input.map { .file(InputPath.path(of: $0)) } ?? .silence
            caller.sink = output.map { .file($0) } ?? .none
        }
        return [caller, agent]
    }

    /// Has the caller press the keys.
    private func press(_ caller: Call) async {
        guard let dtmf, await Interruption.wait(.milliseconds(500)) else { return }
        _ = try? caller.sendDTMF(dtmf.sequence.description)
    }
}
