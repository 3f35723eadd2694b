import ArgumentParser
import CallBasics
import CallCore
import LocalMessaging
import MediaEngine
import SDP
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
    @OptionGroup var sound: SIPCallOptions

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
        guard provider == nil || !sound.followTransfers else {
            throw ValidationError("A call screen cannot call here. Leave out '--follow-transfers', or '--provider'.")
        }
        if provider?.isEmpty == true {
            throw ValidationError("The value '' of '--provider' is no directory. Name that of the screen's group.")
        }
        guard code == nil || policy == .reject else {
            throw ValidationError("'--code' says how a call is refused. Give '--policy reject', or leave it out.")
        }
        try sound.audio.check(echo: echo)
        let rings = provider != nil || way == .ring || wait > 0 && (way == .accept || way == .reject)
        guard !earlyMedia || rings else {
            throw ValidationError("'--early-media' is about ringing. Give '--after', '--policy ring' or '--provider'.")
        }
        guard sip.header.isEmpty || sip.hasAccount && !sip.noRegister else {
            throw ValidationError("'--header' is about the REGISTER. Give '--account', or leave it out.")
        }
        guard sound.audio.pcap == nil || calls == 1 else {
            throw ValidationError("'--pcap' is the capture of one call. Give '--calls 1', or leave it out.")
        }
        var files = FileArguments()
        try sound.audio.check(&files)
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
        try sound.security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let group = try provider.map { try GroupContainer(directory: $0) }
        let recorder = told.recorder("call", ["the caller", sip.account ?? "this side"])
        try await CallEngine.session(try sound.audio.engineConfiguration()) { engine in
            try await recorder.telling {
                let party = try await sip.open(towards: nil, story: recorder, headersOnRegister: true) {
                    sound.change(&$0)
                }
                sound.security.srtp.warn(at: party.local, isTLS: sip.transport == .tls)
                do {
                    let teller = SIPTeller(isJSON: common.json, hasEvents: true)
                    let ice = try await sound.security.way()
                    let taker = Taker(party: party, engine: engine, ice: ice, recorder: recorder, teller: teller)
                    if let group { try await serve(taker, screensOf: group) } else { try await serve(taker) }
                    await party.close()
                } catch {
                    await party.close()
                    throw error
                }
            }
        }
    }

    /// Who takes calls, and tells of them.
    private struct Taker {
        let party: SIPParty
        let engine: CallEngine
        let ice: ICEConfiguration?
        let recorder: StoryRecorder?
        let teller: SIPTeller
        let desk = AnswerDesk()
        var screen: AnswerScreen?
    }

    private func serve(_ taker: Taker, screensOf group: GroupContainer) async throws {
        var taker = taker
        let screen = AnswerScreen(taker.party, taker.engine, taker.desk, isEarly: earlyMedia, taker.teller)
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
        let (party, desk, teller) = (taker.party, taker.desk, taker.teller)
        let names = party.addresses
        teller.tell(
            "listening",
            [
                ("local", JSONValue(names.first)), ("addresses", .array(names.map { .string($0) })),
                ("account", JSONValue(party.address)),
            ],
            text: names.isEmpty
                ? "Called by own connections alone." : "Listening at \(names.joined(separator: ", "))."
        )
        var iterator = party.endpoint.events.makeAsyncIterator()
        if party.account != nil, !sip.noRegister { try await party.register(&iterator, teller) }
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            guard !Task.isCancelled else { return }
            await desk.close()
            if await desk.isEmpty { await party.endpoint.close() }
        }
        defer { watch.cancel() }
        while let event = await iterator.next() {
            if case .incoming(let handle, let invite) = event {
                try await receive(invite, handle, by: taker)
            } else if let handle = event.call, let run = await desk.run(handle) {
                await run.receive(event)
                if let followed = await run.followed { await desk.add(run, as: followed) }
                await taker.screen?.note(event, of: handle)
                if case .established(run.handle) = event, sound.dtmf != nil { Task { await Self.key(run) } }
                if await run.hasEnded { try await finish(run, by: taker) }
                if case .ended = event { await desk.forget(handle) }
            } else if case .ended(let handle, let end) = event, await !desk.wasUnacceptable(handle) {
                // It was refused before it had sound.
                try taker.recorder?.finish(end)
            }
            let (count, isClosed, isEmpty) = await (desk.endedCount, desk.isClosed, desk.isEmpty)
            if isEmpty, isClosed || count >= calls ?? .max { break }
        }
        guard await desk.endedCount == 0 else { return }
        try taker.recorder?.finish(
            callID: nil,
            status: "cancelled",
            code: nil,
            reason: "none",
            failure: "Nobody called."
        )
    }

    /// What a caller offers; nothing is known of it where he leaves the offer to this side.
    private static func members(of description: SessionDescription?) -> [(String, JSONValue)] {
        let media: [MediaDescription] = description?.media ?? []
        let audio = media.first { $0.kind == "audio" }
        let hasVideo = media.contains { $0.kind == "video" && $0.port > 0 }
        return [
            ("codecs", .array((audio?.formats ?? []).map { .string($0.encodingName) })),
            ("direction", JSONValue(audio?.direction.rawValue)), ("video", .bool(hasVideo)),
        ]
    }

    private static func key(_ run: SIPCallRun) async {
        guard await Interruption.wait(.milliseconds(500)), await !run.hasEnded else { return }
        await run.sendKeys()
    }

    /// Does with a call what the policy says, or the screen.
    private func receive(_ invite: SIPMessage, _ handle: CallHandle, by taker: Taker) async throws {
        let (party, desk, teller) = (taker.party, taker.desk, taker.teller)
        let from = try? invite.from()
        let callID = invite.callID?.text ?? ""
        guard sound.encryption.takes(try? invite.sessionDescription()) else {
            // The caller may offer otherwise: that is the call.
            await desk.noteUnacceptable(handle)
            teller.tell(
                "unacceptable",
                [("callID", .string(callID)), ("from", from.map { .string($0.uri.bytes.text) } ?? .null)],
                text:
                    "\(from?.uri.bytes.text ?? "Somebody") offered no sound that --srtp \(sound.security.srtp.rawValue) takes."
            )
            return await party.endpoint.perform { agent, now in agent.reject(handle, status: 488, at: now) }
        }
        teller.tell(
            "incoming",
            [
                ("callID", .string(callID)), ("from", from.map { .string($0.uri.bytes.text) } ?? .null),
                ("displayName", from?.displayName.map { .string($0.text) } ?? .null),
            ] + Self.members(of: try? invite.sessionDescription()),
            text: "Call from \(from?.uri.bytes.text ?? "somebody")."
        )
        let endpoint = party.endpoint
        // One file takes one call at a time.
        let hasFile = sound.audio.output != nil || sound.audio.pcap != nil || told.story != nil
        let isTaken = await !desk.isEmpty && hasFile
        if isTaken || way == .busy {
            await desk.noteRefusal()
            return await endpoint.perform { agent, now in agent.reject(handle, status: 486, at: now) }
        }
        let host = party.local.isUnspecified ? Self.host(of: invite) : party.local.host
        let media = try await sound.sound(of: taker.engine, at: host, ice: taker.ice, sound.audio.ends(echo: echo))
        let run = SIPCallRun(
            handle,
            of: party,
            media,
            sound,
            peer: from?.uri.bytes.text ?? "the caller",
            callID: callID,
            start: MonotonicClock.current,
            teller
        )
        await desk.add(run, as: handle)
        if let screen = taker.screen { return await screen.receive(invite, handle) }
        let session = media.session
        if wait > 0 && way != .defer || way == .ring {
            let early = earlyMedia ? session : nil
            try? await endpoint.perform { agent, now in try agent.ring(handle, with: early, at: now) }
        }
        guard way != .ring else { return }
        let (code, isRejected, wait) = (code ?? 603, way == .reject, wait)
        Task {
            if wait > 0 { guard await Interruption.wait(.seconds(fraction: wait)) else { return } }
            await endpoint.perform { agent, now in
                if isRejected { return agent.reject(handle, status: code, at: now) }
                // Nothing that both know was answered 488 already; the end of the call tells it.
                try? agent.answer(handle, session, at: now)
            }
        }
    }

    /// The own address that a caller used, where all are listened on.
    private static func host(of invite: SIPMessage) -> String {
        (try? invite.requestURI().hostBytes.text).flatMap { SocketAddress(host: $0, port: 0)?.host } ?? "127.0.0.1"
    }

    private func finish(_ run: SIPCallRun, by taker: Taker) async throws {
        let (party, desk, teller, recorder) = (taker.party, taker.desk, taker.teller, taker.recorder)
        var report = try await run.report(party.counts())
        report.story = told.story
        await desk.remove(run)
        try recorder?.finish(report)
        teller.tell("ended", report.members, text: report.text)
    }
}

/// The calls that are up.
actor AnswerDesk {
    private var runs: [CallHandle: SIPCallRun] = [:]
    private var unacceptable: Set<CallHandle> = []
    private(set) var endedCount = 0
    private(set) var isClosed = false

    var isEmpty: Bool { runs.isEmpty }

    func run(_ handle: CallHandle) -> SIPCallRun? { runs[handle] }
    func add(_ run: SIPCallRun, as handle: CallHandle) { runs[handle] = run }

    /// What a caller offers cannot be taken: no call has come yet.
    func noteUnacceptable(_ handle: CallHandle) { unacceptable.insert(handle) }

    /// Whether that was so of a call that has ended, asked once.
    func wasUnacceptable(_ handle: CallHandle) -> Bool { unacceptable.remove(handle) != nil }

    /// A call was refused without sound.
    func noteRefusal() { endedCount += 1 }

    /// One call of a run has ended, and others may go on.
    func forget(_ handle: CallHandle) { runs[handle] = nil }

    func remove(_ run: SIPCallRun) {
        runs = runs.filter { $0.value !== run }
        endedCount += 1
    }

    /// Ends all calls, and takes no more.
    func close() async {
        isClosed = true
        for run in runs.values { await run.hangUp() }
    }
}
