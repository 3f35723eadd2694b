import AgentSockets
import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// Has an agent call somebody by SIP.
struct AgentCallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls a SIP URI, and has a voice agent speak.",
        discussion: """
            The agent is dialled first, or with --agents-at awaited for up to 60 s: where it is not, nobody's phone rings. It is told of the call when that is answered, and \
            hears and speaks from then on. The call ends with either side, after --seconds, and by Ctrl-C; it fails when it was \
            not answered, when the agent's connection broke off, and when it could not be recorded.

            With --json each thing that happens is a line, as of `sip call --events` and `agent try`; the last one has the report, "agent" in it.

            EXAMPLES
              media-tool agent call sip:127.0.0.1:5070 --to ws://127.0.0.1:8765/ws --parameter purpose=survey
              media-tool agent call sip:bob@example.org --account sip:bot@example.org --password-file secret \
            --to audiosocket:127.0.0.1:9092
            """
    )

    @Argument(help: "Whom to call.")
    var uri: String

    @OptionGroup var agent: AgentOptions
    @OptionGroup var sip: SIPOptions
    @OptionGroup var session: SIPSessionOptions
    @OptionGroup var security: MediaSecurityOptions
    @OptionGroup var format: MediaFormatOptions

    @Option(help: ArgumentHelp("How long to talk.", valueName: "n"))
    var seconds: Double?

    @Option(
        help: ArgumentHelp(
            "How long it may ring, 1 to 600. Default: what --timeout says, else 60.",
            valueName: "s"
        )
    )
    var ringTimeout: Double?

    @OptionGroup var record: AgentRecordOption
    @OptionGroup var common: CommonOptions

    func validate() throws {
        _ = try SIPOptions.uri(uri, "URI")
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try Quantity.check("--ring-timeout", ringTimeout, in: 1...600, "s")
        var files = FileArguments()
        try files.write("--sip-trace", sip.sipTrace)
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let target = try SIPOptions.uri(uri, "URI")
        let failure = try await CallEngine.session(CallEngineConfiguration()) { engine -> String? in
            let talk = AgentTalk(nil, SIPTeller(isJSON: common.json, hasEvents: true))
            let connector = try await AgentConnector(agent)
            let isThere: Void? = try await Interruption.orValue {
                try await talk.reach(connector, within: .seconds(60))
            }
            await connector.close()
            guard isThere != nil, !Interruption.hasCome else {
                _ = await talk.end(nil)
                return nil
            }
            do {
                return try await call(target, engine, talk)
            } catch {
                _ = await talk.end(nil)
                throw error
            }
        }
        guard let failure else { return }
        throw ToolFailure.reported(failure)
    }

    /// Calls, and answers what has failed, if something has.
    private func call(_ target: SIPURI, _ engine: CallEngine, _ talk: AgentTalk) async throws -> String? {
        let party = try await sip.open(towards: target) { agent in
            session.change(&agent)
            sip.limitRinging(of: &agent, ringTimeout)
        }
        do {
            let failure = try await call(target, engine, talk, party)
            await party.close()
            return failure
        } catch {
            await party.close()
            throw error
        }
    }

    private func call(
        _ target: SIPURI,
        _ engine: CallEngine,
        _ talk: AgentTalk,
        _ party: SIPParty
    ) async throws -> String? {
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        if party.account != nil, !sip.noRegister {
            var iterator = party.endpoint.events.makeAsyncIterator()
            try await party.register(&iterator, teller)
        }
        var outgoing = SIPOutgoingCall(
            party: party,
            engine: engine,
            target: target,
            uri: uri,
            security: security,
            format: format,
            teller: teller
        )
        (outgoing.headers, outgoing.isByTLS) = (try sip.headers(), sip.transport == .tls)
        let told = try agent.parameters()
        var wishes = talk.wishes(session)
        wishes.takesEnd = { _ = await talk.end($0) }
        let report = try await outgoing.run(wishes, { talk.connect(&$0) }, whenCalling: { talk.follow($0) }) { run, _ in
            let call = AgentCall(callID: run.callID, to: target, from: party.address, agent: told)
            await talk.begin(in: run, call, recordingTo: record.folder)
            guard let seconds, await Interruption.wait(.seconds(fraction: seconds)), !Task.isCancelled else { return }
            await run.hangUp()
        }
        talk.tell(report, await talk.end(report.end))
        if report.end.cause == .cancelled, Interruption.hasCome { return nil }
        return talk.failure ?? report.failure ?? talk.recordingFailure.map { "\($0)" }
    }
}
