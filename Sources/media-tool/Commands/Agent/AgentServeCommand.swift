import AgentSockets
import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// Has an agent answer calls by SIP.
struct AgentServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Answers SIP calls with a voice agent.",
        discussion: """
            Each call that comes rings while the agent is dialled, for a connection of its own, and is answered once it is there; where nobody is, the \
            call is refused (480). With --agents-at it is a line, "agentAwaited", that says where an agent may dial within 5 s, by a path of \
            that call alone. The agent is told "from" and "to" of the call, "from_number" and "to_number" where these are \
            numbers, "name", and the headers of the INVITE that begin with X-. It ends the call by closing its connection, or by \
            hanging up: what it has said before is still heard. A call that cannot be recorded goes on, and the command fails at its end.

            In Twilio's format it can do more, by messages that are ours: {"event":"dtmf","dtmf":{"digit":"12#"}}, \
            {"event":"hold"}, {"event":"resume"}, {"event":"transfer","transfer":{"to":"sip:..."}} and {"event":"hangup"}.

            It listens on 127.0.0.1:5060 unless --sip says otherwise, or --account, whose server tells others where it is. With \
            --json each thing that happens is a line, as of `sip answer` and `agent try`, and each call ends with its report, "agent" in it.

            EXAMPLES
              media-tool agent serve --sip 127.0.0.1:5060 --to ws://127.0.0.1:8765/ws
              media-tool agent serve --account sip:bot@example.org --password-file secret --to wss://agents.example.org/ws
              media-tool agent serve --sip 192.0.2.7:5060 --to audiosocket:127.0.0.1:9092 --rate 16000 --record calls
            """
    )

    @OptionGroup var agent: AgentOptions

    @Option(
        name: .customLong("sip"),
        help: ArgumentHelp("Where calls come: the own address and port, as --local.", valueName: "host:port")
    )
    var place: LocalAddress?

    @OptionGroup var sip: SIPOptions
    @OptionGroup var session: SIPSessionOptions
    @OptionGroup var security: MediaSecurityOptions
    @OptionGroup var format: MediaFormatOptions

    @Option(help: ArgumentHelp("How many calls at once; more find it busy (486).", valueName: "n"))
    var atOnce = 100

    @Option(help: ArgumentHelp("End after so many calls, those that were refused among them.", valueName: "n"))
    var calls: Int?

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var record: AgentRecordOption
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--at-once", atOnce, in: 1...10_000)
        try Quantity.check("--calls", calls, in: 1...1_000_000)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        guard place == nil || sip.local == nil else {
            throw ValidationError("'--sip' is the own address, as '--local' is. Leave out one.")
        }
        guard sip.header.isEmpty || sip.hasAccount && !sip.noRegister else {
            throw ValidationError("'--header' is about the REGISTER. Give '--account', or leave it out.")
        }
        var files = FileArguments()
        try files.write("--sip-trace", sip.sipTrace)
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let connector = try await AgentConnector(agent)
        try await CallEngine.session(CallEngineConfiguration()) { engine in
            try engine.registry.check(codecs: format.codecs)
            var sip = sip
            sip.local = place ?? sip.local ?? (sip.hasAccount ? nil : LocalAddress(argument: "127.0.0.1:5060"))
            let party = try await sip.open(towards: nil, headersOnRegister: true) { session.change(&$0) }
            security.srtp.warn(at: party.local, isTLS: sip.transport == .tls)
            let talks = AgentTalks()
            do {
                let teller = SIPTeller(isJSON: common.json, hasEvents: true)
                let reception = SIPReception(party: party, teller: teller, security: security)
                let taker = Taker(
                    command: self,
                    connector: connector,
                    reception: reception,
                    engine: engine,
                    ice: try await security.way(),
                    talks: talks
                )
                try await reception.serve(taker, registers: !sip.noRegister, callLimit: calls, seconds: seconds)
                await talks.finish()
                await party.close()
            } catch {
                await talks.finish()
                await party.close()
                throw error
            }
            if let failure = await talks.failure { throw failure }
        }
        await connector.close()
    }

    /// Has the agent take calls.
    private struct Taker: SIPReceiver {
        let command: AgentServeCommand
        let connector: AgentConnector
        let reception: SIPReception
        let engine: CallEngine
        let ice: ICEConfiguration?
        let talks: AgentTalks

        func receive(_ invite: SIPMessage, _ handle: CallHandle) async throws {
            let isFull = await talks.count >= command.atOnce
            let isLast = await talks.begunCount >= command.calls ?? .max
            guard !isFull, !isLast else { return await reception.refuse(handle, status: 486) }
            let (session, security, agent) = (command.session, command.security, command.agent)
            let talk = AgentTalk(invite.callID?.text, reception.teller)
            let media: CallSound
            do {
                let host = await reception.host(for: handle)
                media = try await security.sound(of: engine, at: host, command.format, ice: ice) { talk.connect(&$0) }
            } catch {
                return await reception.refuse(handle, because: error)
            }
            let run = await reception.begin(invite, handle, media, talk.wishes(session))
            await talks.add(talk, AgentCall(invite, agent: try agent.parameters()), of: run)
            let (endpoint, teller, offered) = (reception.party.endpoint, reception.teller, media.session)
            try? await endpoint.perform { agent, now in try agent.ring(handle, at: now) }
            Task {
                await talks.noteDial(1)
                defer { Task { await talks.noteDial(-1) } }
                do {
                    try await talk.reach(connector, within: .seconds(5))
                    talk.follow(run)
                    // Nothing that both know was answered 488 already; the end of the call tells it.
                    try? await endpoint.perform { agent, now in try agent.answer(handle, offered, at: now) }
                } catch is CancellationError {
                    // The caller has given up before.
                } catch {
                    teller.tell(
                        "agentMissing",
                        [("callID", JSONValue(invite.callID?.text)), ("reason", .string("\(error)"))],
                        text: "\(error)"
                    )
                    await endpoint.perform { agent, now in agent.reject(handle, status: 480, at: now) }
                }
            }
        }

        func note(_ event: AgentEvent, of run: SIPCallRun, _ handle: CallHandle) async {
            guard case .established(run.handle) = event, let (talk, call) = await talks.talk(of: run) else { return }
            await talk.begin(in: run, call, recordingTo: command.record.folder)
        }

        func finish(_ run: SIPCallRun) async {
            let (talk, reception) = (await talks.remove(run), reception)
            // An agent has its time to say farewell, and other calls do not wait for it.
            await talks.add(
                Task {
                    let heard = await talk?.end(run.end)
                    do {
                        let report = try await run.report(reception.party.counts())
                        talk?.tell(report, heard)
                    } catch {
                        StandardError.write("Note: a call has no report: \(error)\n")
                    }
                    if let failure = talk?.recordingFailure { await talks.note(failure) }
                }
            )
        }

        func finish(_: CallEnd) {}
    }
}

/// Calls with agents that are up, or on their way.
private actor AgentTalks {
    private var talks: [CallHandle: (talk: AgentTalk, call: AgentCall)] = [:]
    /// Calls that have begun, and agents that are being dialled, also for calls that were taken back.
    private(set) var begunCount = 0
    private var dialCount = 0
    /// Ends of calls that go on.
    private var farewells: [Int: Task<Void, Never>] = [:]
    private var lastNumber = 0
    /// Why a call was not recorded, the first of them.
    private(set) var failure: (any Error)?

    var count: Int { max(talks.count, dialCount) }

    func noteDial(_ change: Int) { dialCount += change }
    func note(_ error: any Error) { failure = failure ?? error }

    func add(_ talk: AgentTalk, _ call: AgentCall, of run: SIPCallRun) {
        talks[run.handle] = (talk, call)
        begunCount += 1
    }

    func talk(of run: SIPCallRun) -> (talk: AgentTalk, call: AgentCall)? { talks[run.handle] }
    func remove(_ run: SIPCallRun) -> AgentTalk? { talks.removeValue(forKey: run.handle)?.talk }

    func add(_ farewell: Task<Void, Never>) {
        lastNumber += 1
        let number = lastNumber
        farewells[number] = farewell
        Task {
            await farewell.value
            farewells[number] = nil
        }
    }

    /// Waits for all ends that go on.
    func finish() async { for farewell in farewells.values { await farewell.value } }
}

/// Where talks with agents are recorded.
struct AgentRecordOption: ParsableArguments {
    @Option(
        name: .customLong("record"),
        help: ArgumentHelp(
            "Record each call there: a WAV file, the agent on the left, and beside it a JSON file of what happened.",
            valueName: "dir"
        ),
        completion: .directory
    )
    var folder: String?

    func validate() throws { try FileArguments.checkFolder("--record", folder) }
}

extension AgentCall {
    /// What an agent is told of a call that comes.
    init(_ invite: SIPMessage, agent parameters: [String: String]) {
        self.init(callID: invite.callID?.text ?? "")
        let extensions = invite.extensionHeaders.filter { $0.name.lowercased().hasPrefix("x-") }.prefix(
            Self.headerLimit
        )
        for (name, value) in extensions { self.parameters[name] = String(value.prefix(Self.valueLimit)) }
        if let from = try? invite.from() { note(from.uri, as: "from", name: from.displayName?.text) }
        if let uri = try? invite.requestURI() { note(uri, as: "to") }
        self.parameters.merge(parameters) { $1 }
    }

    /// What an agent is told of a call that is made.
    init(callID: String, to target: SIPURI, from account: String?, agent parameters: [String: String]) {
        self.init(callID: callID)
        note(target, as: "to")
        if let uri = account.flatMap({ try? SIPURI(callable: $0) }) { note(uri, as: "from") }
        self.parameters.merge(parameters) { $1 }
    }

    private mutating func note(_ uri: SIPURI, as key: String, name: String? = nil) {
        parameters[key] = String(uri.bytes.text.prefix(Self.valueLimit))
        if let user = uri.user, user.utf8.count <= 32, user.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == "+") }) {
            parameters["\(key)_number"] = user
        }
        if let name { parameters["name"] = String(name.prefix(Self.valueLimit)) }
    }

    /// Headers that are told, and characters of each.
    private static let headerLimit = 32
    private static let valueLimit = 1024
}
