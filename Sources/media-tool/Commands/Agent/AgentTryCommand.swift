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
            says when the agent speaks and falls silent, what it clears, and which marks were played or dropped.

            With --json each is a line: "connected", "speaks", "silent", "marked" with "name", "played" and "seconds" of the agent's \
            sound, "cleared" with "unheardSeconds", "hangUp", "ended" with "reason"; and "report" at the end.

            EXAMPLES
              media-tool agent try --to ws://127.0.0.1:8765/ws
              media-tool agent try --to ws://127.0.0.1:8765/ws --input speech.wav --output heard.wav --json
              media-tool agent try --to audiosocket:127.0.0.1:9092 --rate 16000 --dtmf 12#
            """
    )

    @Option(
        help: ArgumentHelp(
            "The agent: ws://HOST:PORT/PATH, wss://..., audiosocket:HOST:PORT, audiosocket:/PATH.",
            valueName: "address"
        )
    )
    var to: String

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

    @Option(help: ArgumentHelp("Samples a second by AudioSocket: 8000, 16000, 24000 or 48000.", valueName: "hz"))
    var rate: Int?

    @Option(
        help: ArgumentHelp("What the agent is told of the call, as from=alice; more for more.", valueName: "name=value")
    )
    var parameter: [String] = []

    @Option(help: ArgumentHelp("A header field of the request by WebSocket; more for more.", valueName: "name: value"))
    var header: [String] = []

    @Option(
        help: ArgumentHelp(
            "Certificates (PEM) that prove the agent's by wss, in the place of the machine's.",
            valueName: "file"
        ),
        completion: .file()
    )
    var ca: String?

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        _ = try address()
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try roles.check(beside: "--input", input)
        try roles.check(beside: "--output", output)
        var files = FileArguments()
        try files.read("--input", input.map { InputPath.path(of: $0) })
        try files.read("--ca", ca)
        try files.write("--output", output)
        if let rate, ![8000, 16_000, 24_000, 48_000].contains(rate) {
            throw ValidationError("The value '\(rate)' of '--rate' is none. Give 8000, 16000, 24000 or 48000.")
        }
        let isWeb = to.lowercased().hasPrefix("ws")
        if isWeb, rate ?? 8000 != 8000 {
            throw ValidationError("Twilio's format has 8000 Hz. Leave out '--rate', or take audiosocket:.")
        }
        let ofWeb = [("--header", !header.isEmpty), ("--parameter", !parameter.isEmpty), ("--ca", ca != nil)]
        if let other = ofWeb.first(where: \.1)?.0, !isWeb {
            throw ValidationError("'\(other)' is for WebSocket. Leave it out, or take ws:// or wss://.")
        }
        if ca != nil, !to.lowercased().hasPrefix("wss:") {
            throw ValidationError("'--ca' is for TLS. Leave it out, or take wss://.")
        }
        try dtmf?.validate(limit: 64)
        _ =
            try parameter.map { try Self.pair($0, "=", "--parameter") }
            + header.map { try Self.pair($0, ":", "--header") }
    }

    private func address() throws -> AgentAddress {
        do throws(AgentError) { return try AgentAddress(to) } catch { throw ValidationError(error.description) }
    }

    private static func pair(_ text: String, _ mark: Character, _ option: String) throws -> (
        name: String, value: String
    ) {
        guard let place = text.firstIndex(of: mark), place > text.startIndex else {
            throw ValidationError("The value '\(text)' of '\(option)' has no '\(mark)' behind a name.")
        }
        let value = text[text.index(after: place)...]
        return (String(text[..<place]), String(mark == ":" ? value.drop { $0 == " " } : value))
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        if try address().isInTheClear {
            StandardError.write("Note: what is said goes to \(to) in the clear. Take wss:// where others can listen.\n")
        }
        let failure = try await CallEngine.session(try roles.engineConfiguration()) { engine in try await talk(engine) }
        if let failure { throw ToolFailure(failure) }
    }

    /// Talks until it is over; answers what has failed, if something has.
    private func talk(_ engine: CallEngine) async throws -> String? {
        var options = AgentLine.Options()
        options.sampleRate = rate ?? 8000
        options.headers = try header.map { try Self.pair($0, ":", "--header") }
        options.authoritiesPath = ca
        let told = try parameter.map { try Self.pair($0, "=", "--parameter") }
        var generator = SystemRandomNumberGenerator()
        let name = "CA" + String(UInt128.random(in: 0...UInt128.max, using: &generator), radix: 16)
        let call = AgentCall(callID: name, parameters: Dictionary(told.map { ($0.name, $0.value) }) { $1 })
        let line = try await AgentLine.open(to: try address(), call, options)
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        teller.tell("connected", [("to", .string(to))], text: "Connected to \(to).")
        let begin = MonotonicClock.current
        let calls = try await engine.makeCalls(legs(line))
        let state = Mutex<(isOver: Bool, failure: String?)>((false, nil))
        let follower = Task { [line] in
            for await event in line.events {
                teller.tell(event)
                switch event {
                case .hangUp: state.withLock { $0.isOver = true }
                case .ended(let error):
                    state.withLock { $0 = (true, error.flatMap { $0.code == .ended ? nil : $0.description }) }
                default: break
                }
            }
        }
        let presser = Task { await press(calls[0]) }
        let listener = Task { for await case .keyDown(let digit) in calls[1].events { line.press(digit) } }
        let limit = try seconds.map { Duration.seconds(fraction: $0) } ?? inputLength().map { $0 + .seconds(3) }
        _ = await Interruption.wait(
            until: {
                state.withLock(\.isOver) && line.waiting == .zero
                    || limit.map { MonotonicClock.current - begin >= $0 } ?? false
            }
        )
        for task in [presser, listener] { task.cancel() }
        await line.end()
        await follower.value
        for call in calls { try await call.end() }
        let report = line.report
        teller.tell("report", report.members, text: report.text)
        return state.withLock(\.failure)
    }

    /// How long the file is; nil without one.
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

extension SIPTeller {
    /// Tells what happens on a line to an agent.
    fileprivate func tell(_ event: AgentLine.Event) {
        switch event {
        case .speaks: tell("speaks", text: "The agent speaks.")
        case .silent: tell("silent", text: "The agent is silent.")
        case .marked(let name, let isPlayed, let position):
            tell(
                "marked",
                [
                    ("name", .string(name)), ("played", .bool(isPlayed)),
                    ("seconds", .number(position.roundedSeconds)),
                ],
                text: "Mark \(name): \(isPlayed ? "played" : "dropped") at \(position.roundedSeconds) s of its sound."
            )
        case .cleared(let unheard):
            let seconds = unheard.roundedSeconds
            tell("cleared", [("unheardSeconds", .number(seconds))], text: "Cleared: \(seconds) s were not heard.")
        case .hangUp: tell("hangUp", text: "The agent hangs up.")
        case .ended(let error?): tell("ended", [("reason", .string(error.description))], text: error.description)
        case .ended(nil): break
        }
    }
}

extension AgentLine.Report {
    fileprivate var members: [(String, JSONValue)] {
        [
            ("heardSeconds", .number(heard.roundedSeconds)), ("playedSeconds", .number(played.roundedSeconds)),
            ("unheardSeconds", .number(unheard.roundedSeconds)), ("lostSeconds", .number(lost.roundedSeconds)),
            ("marks", .object([("played", .integer(playedMarks)), ("dropped", .integer(droppedMarks))])),
            ("clears", .integer(clears)), ("gaps", .integer(gaps)), ("malformed", .integer(malformed)),
            ("skipped", .integer(skipped)),
        ]
    }

    fileprivate var text: String {
        """
        The agent heard \(heard.roundedSeconds) s and spoke \(played.roundedSeconds) s; it cleared \(clears) times, by which \
        \(unheard.roundedSeconds) s were not heard.
        Marks: \(playedMarks) played, \(droppedMarks) dropped. Gaps in what it said: \(gaps). Not understood: \(malformed) messages.
        """
    }
}
