import ArgumentParser
import CallBasics
internal import Glibc
import MediaEngine
import SIP
import SIPTransport

/// Registers an account.
struct SIPRegisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Registers a SIP account, keeps it registered, and tells each change.",
        discussion: """
            It ends after --seconds, or by Ctrl-C, and takes its binding away. It fails when the account is not registered at \
            the end. SIGUSR1 has it register anew, SIGUSR2 has it take the network for gone, and the next one for back.

            EXAMPLES
              media-tool sip register --account sip:alice@example.org --password-file secret
              media-tool sip register --account sip:alice@example.org --registrar sip:192.0.2.1 --once --json
              media-tool sip register --account sip:alice@example.org --push-provider fcm --push-prid TOKEN
              media-tool sip register --account sip:alice@example.org --unregister
            """
    )

    @OptionGroup var told: StoryOptions
    @OptionGroup var sip: SIPOptions

    @Flag(help: "Register once, and end; the binding stays for as long as it was granted.")
    var once = false

    @Flag(help: "Take the binding away that a run before this one, of the same --instance, has left.")
    var unregister = false

    @Option(
        help: ArgumentHelp(
            "Register anew each so many seconds, as a phone in the background does; 1 to 86400.",
            valueName: "s"
        )
    )
    var background: Double?

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    @Flag(help: "In virtual time, at a server of the tool, without a socket.")
    var virtual = false

    @Option(help: ArgumentHelp("What all of --virtual is drawn by: the same seed, the same bytes.", valueName: "n"))
    var seed: UInt64?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try sip.check(virtual: virtual, seed: seed, [("--unregister", unregister), ("--story", told.story != nil)])
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try Quantity.check("--background", background, in: 1...86_400, "s")
        guard sip.hasAccount || virtual else {
            throw ValidationError("Missing '--account'. Say who is to be registered.")
        }
        guard !sip.noRegister else { throw ValidationError("'--no-register' is for calls. Leave it out.") }
        let once = once ? "--once" : unregister ? "--unregister" : nil
        let others = [
            ("--seconds", seconds != nil), ("--background", background != nil),
            ("--unregister", unregister && once == "--once"),
        ]
        if let once, let other = others.first(where: \.1)?.0 {
            throw ValidationError("'\(once)' ends by itself. Leave out '\(other)'.")
        }
        var files = FileArguments()
        try files.write("--sip-trace", sip.sipTrace)
        try files.write("--story", told.story)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        guard !virtual else { return try await runVirtual() }
        let recorder = told.recorder("registration", [sip.account ?? "the account", sip.registrar ?? "the registrar"])
        try await recorder.telling {
            let party = try await sip.open(towards: nil, story: recorder, headersOnRegister: true)
            do {
                try await keep(party, recorder)
            } catch {
                await party.leave()
                throw error
            }
            await party.leave()
            try recorder?.finish(callID: nil, status: "ok", code: 200, reason: "none", failure: nil)
        }
    }

    private func runVirtual() async throws {
        let pair = try VirtualParties(seed: seed ?? 1, alice: sip.account ?? "sip:alice@example.test", bob: nil)
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        let talk = seconds ?? background.map { $0 * 3 } ?? 10
        try await pair.register(for: once ? nil : .seconds(fraction: talk), each: background, teller)
    }

    private func keep(_ party: SIPParty, _ recorder: StoryRecorder?) async throws {
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        guard let account = party.account, var course = party.registrationCourse(teller) else { return }
        let signals = UserSignals()
        let isLeaving = unregister
        try await party.endpoint.perform { agent, now in
            if isLeaving {
                try agent.unregisterFormer(account, at: now)
            } else {
                try agent.register(account, at: now)
            }
        }
        let tasks = [
            Task { await end(party, account) }, Task { await obey(signals, party, account, teller, recorder) },
            Task { await refresh(party, account) },
        ]
        defer {
            for task in tasks { task.cancel() }
            withExtendedLifetime(signals) {}
        }
        let network = followNetwork(party, teller, recorder)
        defer { network?.close() }
        var failure: ToolFailure? = ToolFailure.unregistered
        var wasRegistered = false
        for await event in party.endpoint.events {
            switch await course.receive(event) {
            case .ok?:
                (failure, wasRegistered) = (nil, true)
                if once { return }
            case .failed(let told, let isFinal)?:
                failure = told
                // Who said how long to wait has waited.
                let isOver = sip.timeout != nil && !wasRegistered
                if once || unregister || isFinal || isOver { throw told }
            case .waiting?: failure = ToolFailure("There is no network, so that the account is not registered.")
            case .cleared?:
                if let failure, !unregister { throw failure }
                return
            case nil: break
            }
        }
        // Without a network nothing could be taken away.
        if let failure { throw failure }
    }

    /// Takes the binding away at the end; without a network only the sockets are closed.
    private func end(_ party: SIPParty, _ account: AccountHandle) async {
        await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
        guard !Task.isCancelled else { return }
        let isReachable = await party.endpoint.perform { agent, now in
            if agent.isNetworkReachable { agent.unregister(account, at: now) }
            return agent.isNetworkReachable
        }
        if !isReachable { await party.endpoint.close() }
    }

    private func refresh(_ party: SIPParty, _ account: AccountHandle) async {
        guard let background else { return }
        while await Interruption.wait(.seconds(fraction: background)), !Task.isCancelled {
            await party.endpoint.perform { agent, now in agent.refresh(account, at: now) }
        }
    }

    /// Registers anew at SIGUSR1, and takes the network for gone, or for back, at SIGUSR2.
    private func obey(
        _ signals: UserSignals,
        _ party: SIPParty,
        _ account: AccountHandle,
        _ teller: SIPTeller,
        _ recorder: StoryRecorder?
    ) async {
        for await signal in signals.signals {
            let (begin, sent) = (MonotonicClock.current, await party.counts().sent)
            let (local, wasReachable) = (
                party.local.host, await party.endpoint.perform { agent, _ in agent.isNetworkReachable }
            )
            if signal == .second {
                let change = wasReachable ? "off" : "on"
                recorder?.noteNetwork(change, from: local, to: wasReachable ? nil : local, at: begin)
            }
            let isReachable = await party.endpoint.perform { agent, now in
                if signal == .first {
                    agent.refresh(account, at: now)
                } else {
                    agent.setNetworkReachable(!agent.isNetworkReachable, at: now)
                }
                return agent.isNetworkReachable
            }
            guard signal == .second else { continue }
            let time = await party.counts().sent > sent ? (MonotonicClock.current - begin).roundedMilliseconds : nil
            teller.tell(
                "network",
                [
                    ("change", isReachable ? "on" : "off"), ("from", .string(local)),
                    ("to", isReachable ? .string(local) : .null), ("interface", .null),
                    ("firstPacketMs", time.map { .number($0) } ?? .null),
                ],
                text: isReachable ? "The network is back." : "The network is taken for gone."
            )
        }
    }

    /// Moves with the own address that leads to the server.
    ///
    /// Nil where that was given, or the kernel tells nothing of the network.
    private func followNetwork(_ party: SIPParty, _ teller: SIPTeller, _ recorder: StoryRecorder?) -> NetworkWatcher? {
        guard let server = party.peer else { return nil }
        let watcher: NetworkWatcher
        do throws(NetworkWatchError) { watcher = try NetworkWatcher() } catch { return nil }
        let changes = watcher.changes(towards: server)
        Task {
            var own = party.local
            for await change in changes {
                let start = MonotonicClock.current
                guard let path = change.path, path.source != own.with(port: 0), path.source.isIPv4 == own.isIPv4 else {
                    continue
                }
                let (former, sent) = (own, await party.counts().sent)
                recorder?.noteNetwork("address", from: own.host, to: path.source.host, at: start)
                // Where it cannot be opened it has gone again, which the next change tells.
                guard let moved = try? await party.endpoint.move(to: path.source) else { continue }
                own = moved
                let time = (MonotonicClock.current - start).roundedMilliseconds
                let hasLeft = await party.counts().sent > sent
                teller.tell(
                    "network",
                    [
                        ("change", .string("address")), ("from", .string(former.host)), ("to", .string(own.host)),
                        ("interface", JSONValue(path.interfaceName)),
                        ("firstPacketMs", hasLeft ? .number(time) : .null),
                    ],
                    text: "The own address is \(own.host) now."
                )
            }
        }
        return watcher
    }
}

extension NetworkPath {
    /// What the kernel calls the interface; nil when it is gone.
    fileprivate var interfaceName: String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IF_NAMESIZE)) { name in
            guard let start = name.baseAddress, if_indextoname(interface, start) != nil else { return nil }
            return String(cString: start)
        }
    }
}
