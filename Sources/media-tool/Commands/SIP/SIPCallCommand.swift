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
    @OptionGroup var sound: SIPCallOptions

    @Option(help: ArgumentHelp("How long to talk.", valueName: "n"))
    var seconds: Double?

    @Option(
        help: ArgumentHelp(
            "How long it may ring, 1 to 600. Default: 60, or --timeout if that is longer.",
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
        try sound.audio.check(&files)
        try files.write("--sip-trace", sip.sipTrace)
        try files.write("--story", told.story)
    }

    /// How long it may ring, in s.
    private var ringLimit: Double { ringTimeout ?? max(60, sip.timeout ?? 0) }

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
                ("--dtmf-way", sound.dtmfWay != nil), ("--delayed-offer", delayedOffer),
                ("--transfer-to", transferTo != nil), ("--attended-with", attendedWith != nil),
                ("--follow-transfers", sound.followTransfers), ("--100rel", sound.hundredRel),
                ("--device", sound.audio.device != nil), ("--pcap", sound.audio.pcap != nil),
                ("--story", told.story != nil), ("--session-expires", sound.sessionExpires != nil),
                ("--transport tls", sip.transport == .tls), ("--srtp dtls", sound.security.srtp == .dtls),
                ("--srtp auto", sound.security.srtp == .auto),
            ] + sip.ofNetworks
        if let wrong = given.first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' needs a network that is there. Leave out '--virtual', or it.")
        }
    }

    func run() async throws {
        common.startLogging()
        try sound.security.secrets.begin()
        Interruption.catchSignals()
        guard let uri else { return try await runVirtual() }
        let target = try SIPOptions.uri(uri, "URI")
        let recorder = told.recorder("call", [sip.account ?? "this side", uri])
        let report = try await CallEngine.session(try sound.audio.engineConfiguration()) { engine in
            try await recorder.telling {
                var report = try await call(target, uri, engine, recorder)
                report.story = told.story
                try recorder?.finish(report)
                return report
            }
        }
        show(report)
        if let failure = report.failure, report.end.cause != .cancelled || !Interruption.hasCome {
            throw Self.reported(failure)
        }
    }

    /// Prints the report, which is the last of the events where they are told.
    private func show(_ report: SIPCallReport) {
        let event: [(String, JSONValue)] = events ? [("event", .string("ended"))] : []
        common.show(.object(event + report.members), text: report.text)
    }

    /// A failure of which the report has told.
    private static func reported(_ text: String) -> ToolFailure {
        var failure = ToolFailure(text)
        failure.isReported = true
        return failure
    }

    private func runVirtual() async throws {
        let report = try await CallEngine.session(.virtual(seed: network.seed)) { engine in
            let call = SIPVirtualCall(sound: sound, network: network, transport: sip.transport, seconds: seconds)
            return try await call.run(on: engine)
        }
        show(report)
        if let failure = report.failure { throw Self.reported(failure) }
    }

    private func call(_ target: SIPURI, _ uri: String, _ engine: CallEngine, _ recorder: StoryRecorder?) async throws
        -> SIPCallReport
    {
        let party = try await sip.open(towards: target, story: recorder) { agent in
            sound.change(&agent)
            // This side ends what rings for too long.
            if sip.timeout == nil { agent.callPatience = .seconds(fraction: ringLimit + 1) }
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
        var iterator = party.endpoint.events.makeAsyncIterator()
        if party.account != nil, !sip.noRegister { try await party.register(&iterator, teller) }
        let host = party.local.isUnspecified ? "127.0.0.1" : party.local.host
        sound.security.srtp.warn(at: party.local, isTLS: sip.transport == .tls || target.goesByTLS)
        // A proxy on the way, or another target, may go by something else.
        let isPrivate = sip.transport == .tls || party.local.isLoopback
        let ice = try await sound.security.way()
        let media = try await sound.sound(of: engine, at: host, ice: ice, isPrivate: isPrivate, sound.audio.ends())
        let start = MonotonicClock.current
        var made = UserAgent.CallWishes(session: media.session, account: party.account)
        (made.spareSessions, made.isOfferDelayed) = (media.spareSessions, delayedOffer)
        made.headers = try sip.headers()
        let wishes = made
        let (handle, callID) = try await party.endpoint.perform { agent, now in
            let handle = try agent.call(target, wishes, at: now)
            return (handle, agent.callID(of: handle) ?? "")
        }
        let run = SIPCallRun(
            handle,
            of: party,
            media,
            sound,
            peer: uri,
            callID: callID,
            start: start,
            teller
        )
        let hurry = Task { await interrupt(run) }
        var talk: Task<Void, Never>?
        defer {
            hurry.cancel()
            talk?.cancel()
        }
        while await !run.hasEnded, let event = await iterator.next() {
            if case .targets(_, let targets) = event, await !run.isAnswered { tell(targets, uri, callID, teller) }
            await run.receive(event)
            guard case .established(handle) = event else { continue }
            talk = Task {
                await self.talk(run) {
                    try await sound.sound(of: engine, at: host, ice: ice, isPrivate: isPrivate) {
                        ($0.source, $0.sink) = (.silence, .none)
                    }
                }
            }
        }
        return try await run.report(party.counts())
    }

    private func tell(_ targets: [Target], _ uri: String, _ callID: String, _ teller: SIPTeller) {
        let names = targets.map { SIPParty.text($0.transport, $0.address) }
        teller.tell(
            "calling",
            [
                ("callID", .string(callID)), ("to", .string(uri)),
                ("targets", .array(names.map { .string($0) })),
            ],
            text: "Calling \(uri) at \(names.first ?? "")."
        )
    }

    /// Ends the call by Ctrl-C, or when it has rung for too long.
    private func interrupt(_ run: SIPCallRun) async {
        let ring = Task {
            try await Task.sleep(for: .seconds(fraction: ringLimit))
            if await !run.isAnswered { await run.hangUp() }
        }
        let takeBack = Task {
            guard let cancelAfter else { return }
            try await Task.sleep(for: .seconds(fraction: cancelAfter))
            await run.hangUp()
        }
        await Interruption.wait()
        ring.cancel()
        takeBack.cancel()
        if !Task.isCancelled { await run.hangUp() }
    }

    /// What is done once it is answered.
    private func talk(_ run: SIPCallRun, _ silence: @escaping @Sendable () async throws -> CallSound) async {
        let start = MonotonicClock.current
        var steps: [(time: Double, what: @Sendable () async -> Void)] = []
        if sound.dtmf != nil { steps.append((0.5, { await run.sendKeys() })) }
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
        guard seconds == nil, sound.audio.input != nil else { return }
        let keys = sound.dtmf.map {
            0.5 + $0.length(duration: .milliseconds(100), gap: .milliseconds(100)).roundedSeconds
        }
        let keyEnd = start + .seconds(fraction: (keys ?? 0) + 0.1)
        while await !run.isInputOver || MonotonicClock.current < keyEnd {
            guard await Interruption.wait(.milliseconds(20)), !Task.isCancelled else { return }
        }
        await run.hangUp()
    }
}
