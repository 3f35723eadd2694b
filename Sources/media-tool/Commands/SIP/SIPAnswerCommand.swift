import ArgumentParser
import CallBasics
import CallCore
import LocalMessaging
import MediaEngine
import SIP
import SIPTransport

/// What is done with calls that come.
enum AnswerPolicy: String, ExpressibleByArgument, CaseIterable {
    case accept, ring, reject, busy
    /// Says nothing until it is accepted, as of a call whose push was answered before it came.
    case `defer`
}

/// Answers calls by SIP.
struct SIPAnswerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "answer",
        abstract: "Answers SIP calls: with a card, with files, or by giving back what it hears.",
        discussion: """
            It listens on 127.0.0.1 unless --local says otherwise, or --account, whose server tells others where it is. With \
            --json each thing that happens is a line, "listening" first, and each call ends with its report.

            With --provider a call screen decides, in the place of --policy: `provider serve`, or act, of that group answers, \
            ends, holds, mutes and sends keys. It cannot call, nor join calls. What comes rings until a screen is there, and the \
            card is open while the screen says so.

            EXAMPLES
              media-tool sip answer --local 127.0.0.1:5070 --echo
              media-tool sip answer --local 192.0.2.7:5060 --input greeting.wav --output heard.wav --calls 1
              media-tool sip answer --account sip:bob@example.org --password-file secret --policy busy --json
              media-tool sip answer --local 127.0.0.1:5070 --provider /tmp/group
            """
    )

    @OptionGroup var told: StoryOptions
    @OptionGroup var sip: SIPOptions
    @OptionGroup var audio: CallSoundOptions
    @OptionGroup var keys: SIPKeyOptions
    @OptionGroup var session: SIPSessionOptions
    @OptionGroup var security: MediaSecurityOptions

    @Flag(help: "Send back what is heard.")
    var echo = false

    @Option(help: ArgumentHelp("End after so many calls.", valueName: "n"))
    var calls: Int?

    @Option(
        help: """
            What is done with a call: accept, ring (and not answer), reject, busy; defer rings nowhere, and answers after --after, \
            as a pushed call whose answer was pressed before it came. Default: accept.
            """
    )
    var policy: AnswerPolicy?

    @Option(
        help: ArgumentHelp(
            "The group whose call screen says what is done with a call: `provider serve --group`.",
            valueName: "dir"
        ),
        completion: .directory
    )
    var provider: String?

    @Option(help: ArgumentHelp("The code that --policy reject answers, 400 to 699. Default: 603.", valueName: "n"))
    var code: Int?

    @Option(help: ArgumentHelp("Ring so long before a call is accepted or refused.", valueName: "s"))
    var after: Double?

    @Flag(help: "Describe the session while it rings (183), so that sound flows before the answer.")
    var earlyMedia = false

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--calls", calls, in: 1...1_000_000)
        try Quantity.check("--code", code, in: 400...699)
        try Quantity.check("--after", after, in: 0...600, "s")
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        if provider != nil, let other = [("--policy", policy != nil), ("--after", after != nil)].first(where: \.1)?.0 {
            throw ValidationError(
                "'--provider' has a screen say what is done with a call. Leave out '\(other)', or it."
            )
        }
        guard provider == nil || !session.followTransfers else {
            throw ValidationError("A call screen cannot call here. Leave out '--follow-transfers', or '--provider'.")
        }
        if provider?.isEmpty == true {
            throw ValidationError("The value '' of '--provider' is no directory. Name that of the screen's group.")
        }
        guard code == nil || policy == .reject else {
            throw ValidationError("'--code' says how a call is refused. Give '--policy reject', or leave it out.")
        }
        try audio.check(echo: echo)
        let rings = provider != nil || way == .ring || wait > 0 && (way == .accept || way == .reject)
        guard !earlyMedia || rings else {
            throw ValidationError("'--early-media' is about ringing. Give '--after', '--policy ring' or '--provider'.")
        }
        guard sip.header.isEmpty || sip.hasAccount && !sip.noRegister else {
            throw ValidationError("'--header' is about the REGISTER. Give '--account', or leave it out.")
        }
        guard audio.pcap == nil || calls == 1 else {
            throw ValidationError("'--pcap' is the capture of one call. Give '--calls 1', or leave it out.")
        }
        var files = FileArguments()
        try audio.check(&files)
        try files.write("--sip-trace", sip.sipTrace)
        try files.write("--story", told.story)
        guard told.story == nil || calls == 1 else {
            throw ValidationError("'--story' tells of one call. Give '--calls 1', or leave it out.")
        }
    }

    /// What is done with a call where no screen says it.
    private var way: AnswerPolicy { policy ?? .accept }
    /// How long a call rings before.
    private var wait: Double { after ?? 0 }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let group = try provider.map { try GroupContainer(directory: $0) }
        let recorder = told.recorder("call", ["the caller", sip.account ?? "this side"])
        try await CallEngine.session(try audio.engineConfiguration()) { engine in
            try await recorder.telling {
                try audio.check(by: engine.registry)
                let party = try await sip.open(towards: nil, story: recorder, headersOnRegister: true) {
                    session.change(&$0)
                }
                security.srtp.warn(at: party.local, isTLS: sip.transport == .tls)
                do {
                    let teller = SIPTeller(isJSON: common.json, hasEvents: true)
                    let reception = SIPReception(party: party, teller: teller, security: security)
                    let ice = try await security.way()
                    let taker = Taker(command: self, reception: reception, engine: engine, ice: ice, recorder: recorder)
                    if let group { try await serve(taker, screensOf: group) } else { try await serve(taker) }
                    await party.close()
                } catch {
                    await party.close()
                    throw error
                }
            }
        }
    }

    private func serve(_ taker: Taker, screensOf group: GroupContainer) async throws {
        var taker = taker
        let reception = taker.reception
        let screen = AnswerScreen(reception.party, taker.engine, reception.desk, isEarly: earlyMedia, reception.teller)
        taker.screen = screen
        try await screen.open(in: group)
        do {
            try await serve(taker)
            await screen.close()
        } catch {
            await screen.close()
            throw error
        }
    }

    private func serve(_ taker: Taker) async throws {
        try await taker.reception.serve(taker, registers: !sip.noRegister, callLimit: calls, seconds: seconds)
        guard await taker.reception.desk.endedCount == 0 else { return }
        try taker.recorder?.finish(
            callID: nil,
            status: "cancelled",
            code: nil,
            reason: "none",
            failure: "Nobody called."
        )
    }

    /// Who takes calls, and tells of them.
    private struct Taker: SIPReceiver {
        let command: SIPAnswerCommand
        let reception: SIPReception
        let engine: CallEngine
        let ice: ICEConfiguration?
        let recorder: StoryRecorder?
        var screen: AnswerScreen?

        /// Does with a call what the policy says, or the screen.
        func receive(_ invite: SIPMessage, _ handle: CallHandle) async throws {
            let (audio, way, wait) = (command.audio, command.way, command.wait)
            // One file takes one call at a time.
            let hasFile = audio.output != nil || audio.pcap != nil || command.told.story != nil
            let isTaken = await !reception.desk.isEmpty && hasFile
            if isTaken || way == .busy { return await reception.refuse(handle, status: 486) }
            let media: CallSound
            do {
                let (host, ends) = (await reception.host(for: handle), audio.ends(echo: command.echo))
                media = try await command.security.sound(of: engine, at: host, audio.format, ice: ice, ends)
            } catch {
                return await reception.refuse(handle, because: error)
            }
            _ = await reception.begin(invite, handle, media, command.keys.wishes(command.session))
            if let screen { return await screen.receive(invite, handle) }
            let (endpoint, session) = (reception.party.endpoint, media.session)
            if wait > 0 && way != .defer || way == .ring {
                let early = command.earlyMedia ? session : nil
                try? await endpoint.perform { agent, now in try agent.ring(handle, with: early, at: now) }
            }
            guard way != .ring else { return }
            let (code, isRejected) = (command.code ?? 603, way == .reject)
            Task {
                if wait > 0 { guard await Interruption.wait(.seconds(fraction: wait)) else { return } }
                await endpoint.perform { agent, now in
                    if isRejected { return agent.reject(handle, status: code, at: now) }
                    // Nothing that both know was answered 488 already; the end of the call tells it.
                    try? agent.answer(handle, session, at: now)
                }
            }
        }

        func note(_ event: AgentEvent, of run: SIPCallRun, _ handle: CallHandle) async {
            await screen?.note(event, of: handle)
            guard case .established(run.handle) = event, command.keys.dtmf != nil else { return }
            Task {
                guard await Interruption.wait(.milliseconds(500)), await !run.hasEnded else { return }
                await run.sendKeys()
            }
        }

        func finish(_ run: SIPCallRun) async throws {
            var report = try await run.report(reception.party.counts())
            report.story = command.told.story
            try recorder?.finish(report)
            reception.teller.tell("ended", report.members, text: report.text)
        }

        func finish(_ end: CallEnd) throws { try recorder?.finish(end) }
    }
}
