import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// Calls somebody by SIP.
struct SIPCallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls a SIP URI: sound from a card, or from and to files; keys, hold and resume.",
        discussion: """
            The call ends after --seconds of talk, else with the end of --input, else when the other side hangs up, or by \
            Ctrl-C: CANCEL or BYE goes out, and the report is printed. It fails when the call was not answered.

            With --virtual, two parties of the tool call each other over a simulated network: --loss, --delay and the others of \
            that kind are for it. Both send the input, or a test signal.

            An account is needed where a server wants to know who calls; it is registered first.

            EXAMPLES
              media-tool sip call sip:127.0.0.1:5070 --input speech.wav --output heard.wav --dtmf '159#'
              media-tool sip call sip:bob@example.org --account sip:alice@example.org --password-file secret
              media-tool sip call sip:door@192.0.2.7 --codec PCMU --seconds 20 --json --events
              media-tool sip call --virtual --seed 7 --loss 10 --json
            """
    )

    @Argument(help: "Whom to call; nobody with --virtual.")
    var uri: String?

    @OptionGroup var told: StoryOptions
    @OptionGroup var sip: SIPOptions
    @OptionGroup var audio: CallSoundOptions
    @OptionGroup var keys: SIPKeyOptions
    @OptionGroup var session: SIPSessionOptions
    @OptionGroup var security: MediaSecurityOptions

    @Option(help: ArgumentHelp("How long to talk.", valueName: "n"))
    var seconds: Double?

    @Option(
        help: ArgumentHelp(
            "How long it may ring, 1 to 600. Default: what --timeout says, else 60.",
            valueName: "s"
        )
    )
    var ringTimeout: Double?

    @Option(help: ArgumentHelp("Take the call back after so long, answered or not.", valueName: "s"))
    var cancelAfter: Double?

    @Option(help: ArgumentHelp("Hold the call so long after its answer.", valueName: "s"))
    var holdAfter: Double?

    @Option(help: ArgumentHelp("Resume the call so long after its answer.", valueName: "s"))
    var resumeAfter: Double?

    @Option(help: ArgumentHelp("Describe the session once more by UPDATE, so long after the answer.", valueName: "s"))
    var updateAfter: Double?

    @Option(
        help: ArgumentHelp(
            "Ask the other side to call somebody else: hold first, leave once they talk, resume if they do not.",
            valueName: "uri"
        )
    )
    var transferTo: String?

    @Option(
        help: ArgumentHelp(
            "Hold, call somebody else, and hand the call over to them once they have answered; resume if they do not.",
            valueName: "uri"
        )
    )
    var attendedWith: String?

    @Option(help: ArgumentHelp("Transfer so long after the answer. Default: 1.", valueName: "s"))
    var transferAfter: Double?

    @Flag(help: "Leave the offer to the other side: INVITE without a description.")
    var delayedOffer = false

    @Flag(help: "Refuse video that the other side wants, and talk on; as long as none is sent here, so is done anyway.")
    var refuseVideo = false

    @Flag(help: "With --json, a line for each thing that happens; the last has the report.")
    var events = false

    @Flag(help: "A whole call in virtual time, without a socket: the same seed, the same bytes.")
    var virtual = false

    @OptionGroup var network: ImpairmentOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try checkParties()
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try Quantity.check("--ring-timeout", ringTimeout, in: 1...600, "s")
        for (name, value) in [
            ("--cancel-after", cancelAfter), ("--hold-after", holdAfter), ("--resume-after", resumeAfter),
            ("--transfer-after", transferAfter), ("--update-after", updateAfter),
        ] {
            try Quantity.check(name, value, in: 0...86_400, "s")
        }
        if let resumeAfter, resumeAfter <= holdAfter ?? .infinity {
            throw ValidationError("'--resume-after' comes after '--hold-after'. Give both, the second one longer.")
        }
        guard transferAfter == nil || transferTo != nil || attendedWith != nil else {
            throw ValidationError(
                "'--transfer-after' needs somebody to talk to. Give '--transfer-to' or '--attended-with', or leave it out."
            )
        }
        guard transferTo == nil || attendedWith == nil else {
            throw ValidationError("'--transfer-to' and '--attended-with' exclude each other. Leave out one.")
        }
        if let transferTo { _ = try SIPOptions.uri(transferTo, "--transfer-to") }
        if let attendedWith { _ = try SIPOptions.uri(attendedWith, "--attended-with") }
        guard common.json || !events else {
            throw ValidationError("'--events' is about JSON. Give '--json', or leave it out.")
        }
        var files = FileArguments()
        try audio.check(&files)
        try files.write("--sip-trace", sip.sipTrace)
        try files.write("--story", told.story)
    }

    /// Refuses what belongs to another kind of call.
    private func checkParties() throws {
        guard virtual else {
            guard let uri else { throw ValidationError("Missing expected argument '<uri>'. Say whom to call.") }
            _ = try SIPOptions.uri(uri, "URI")
            guard network.impairment == Impairment(), network.seed == 1 else {
                throw ValidationError(
                    "A bad network is simulated with '--virtual' alone. Give it, or leave out the rest."
                )
            }
            return
        }
        let given =
            [
                ("<uri>", uri != nil), ("--hold-after", holdAfter != nil), ("--update-after", updateAfter != nil),
                ("--cancel-after", cancelAfter != nil), ("--events", events), ("--ring-timeout", ringTimeout != nil),
                ("--dtmf-way", keys.dtmfWay != nil), ("--delayed-offer", delayedOffer),
                ("--transfer-to", transferTo != nil), ("--attended-with", attendedWith != nil),
                ("--follow-transfers", session.followTransfers), ("--100rel", session.hundredRel),
                ("--refuse-video", refuseVideo),
                ("--device", audio.device != nil), ("--pcap", audio.pcap != nil),
                ("--session-expires", session.sessionExpires != nil),
                ("--transport tls", sip.transport == .tls), ("--srtp dtls", security.srtp == .dtls),
                ("--srtp auto", security.srtp == .auto),
            ] + sip.ofNetworks
        if let wrong = given.first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' needs a network that is there. Leave out '--virtual', or it.")
        }
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        guard let uri else { return try await runVirtual() }
        let target = try SIPOptions.uri(uri, "URI")
        let recorder = told.recorder("call", [sip.account ?? "this side", uri])
        let report = try await CallEngine.session(try audio.engineConfiguration()) { engine in
            try await recorder.telling {
                var report = try await call(target, uri, engine, recorder)
                report.story = told.story
                try recorder?.finish(report)
                return report
            }
        }
        show(report)
        if let failure = report.failure, report.end.cause != .cancelled || !Interruption.hasCome {
            throw ToolFailure.reported(failure)
        }
    }

    /// Prints the report, which is the last of the events where they are told.
    private func show(_ report: SIPCallReport) {
        let event: [(String, JSONValue)] = events ? [("event", .string("ended"))] : []
        common.show(.object(event + report.members), text: report.text)
    }

    private func runVirtual() async throws {
        let recorder = told.recorder("call", ["alice", "bob"], seed: network.seed)
        let report = try await CallEngine.session(.virtual(seed: network.seed)) { engine in
            let call = SIPVirtualCall(
                audio: audio,
                dtmf: keys.dtmf,
                encryption: security.srtp.encryption,
                network: network,
                transport: sip.transport,
                seconds: seconds,
                recorder: recorder
            )
            var report = try await recorder.telling { try await call.run(on: engine) }
            report.story = told.story
            return report
        }
        show(report)
        if let failure = report.failure { throw ToolFailure.reported(failure) }
    }

    private func call(_ target: SIPURI, _ uri: String, _ engine: CallEngine, _ recorder: StoryRecorder?) async throws
        -> SIPCallReport
    {
        let party = try await sip.open(towards: target, story: recorder) { agent in
            session.change(&agent)
            sip.limitRinging(of: &agent, ringTimeout)
        }
        do {
            let report = try await call(target, uri, party, engine)
            await party.close()
            return report
        } catch {
            await party.close()
            throw error
        }
    }

    private func call(
        _ target: SIPURI,
        _ uri: String,
        _ party: SIPParty,
        _ engine: CallEngine
    ) async throws -> SIPCallReport {
        let teller = SIPTeller(isJSON: common.json, hasEvents: events)
        if party.account != nil, !sip.noRegister {
            var iterator = party.endpoint.events.makeAsyncIterator()
            try await party.register(&iterator, teller)
        }
        var call = SIPOutgoingCall(
            party: party,
            engine: engine,
            target: target,
            uri: uri,
            security: security,
            format: audio.format,
            teller: teller
        )
        (call.headers, call.isOfferDelayed, call.cancelAfter) = (try sip.headers(), delayedOffer, cancelAfter)
        call.isByTLS = sip.transport == .tls
        return try await call.run(keys.wishes(session), audio.ends()) { run, makeSound in
            await talk(run) { try await makeSound { ($0.source, $0.sink) = (.silence, .none) } }
        }
    }

    /// What is done once it is answered.
    private func talk(_ run: SIPCallRun, _ silence: @escaping @Sendable () async throws -> CallSound) async {
        let start = MonotonicClock.current
        var steps: [(time: Double, what: @Sendable () async -> Void)] = []
        if keys.dtmf != nil { steps.append((0.5, { await run.sendKeys() })) }
        if let holdAfter { steps.append((holdAfter, { await run.setHeld(true) })) }
        if let resumeAfter { steps.append((resumeAfter, { await run.setHeld(false) })) }
        if let updateAfter { steps.append((updateAfter, { await run.update() })) }
        if let target = transferTo.flatMap({ try? SIPURI($0) }) {
            steps.append((transferAfter ?? 1, { await run.transfer(to: target) }))
        }
        if let other = attendedWith.flatMap({ try? SIPURI($0) }) {
            steps.append((transferAfter ?? 1, { await run.transfer(over: other, silence) }))
        }
        if let seconds { steps.append((seconds, { await run.hangUp() })) }
        for step in steps.sorted(by: { $0.time < $1.time }) {
            guard await Interruption.wait(until: start + .seconds(fraction: step.time)), !Task.isCancelled else {
                return
            }
            await step.what()
        }
        guard seconds == nil, audio.input != nil else { return }
        let keyLength = keys.dtmf.map {
            0.5 + $0.length(duration: .milliseconds(100), gap: .milliseconds(100)).roundedSeconds
        }
        let keyEnd = start + .seconds(fraction: (keyLength ?? 0) + 0.1)
        while await !run.isInputOver || MonotonicClock.current < keyEnd {
            guard await Interruption.wait(.milliseconds(20)), !Task.isCancelled else { return }
        }
        await run.hangUp()
    }
}
