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
            the end.

            EXAMPLES
              media-tool sip register --account sip:alice@example.org --password-file secret
              media-tool sip register --account sip:alice@example.org --registrar sip:192.0.2.1 --once --json
              media-tool sip register --account sip:alice@example.org --push-provider fcm --push-prid TOKEN
            """
    )

    @OptionGroup var told: StoryOptions
    @OptionGroup var sip: SIPOptions

    @Flag(help: "Register once, and end; the binding stays for as long as it was granted.")
    var once = false

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        guard sip.account != nil else { throw ValidationError("Missing '--account'. Say who is to be registered.") }
        guard !sip.noRegister else { throw ValidationError("'--no-register' is for calls. Leave it out.") }
        guard !once || seconds == nil else { throw ValidationError("'--once' ends by itself. Leave out '--seconds'.") }
        var files = FileArguments()
        try files.write("--sip-trace", sip.sipTrace)
        try files.write("--story", told.story)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let recorder = told.recorder("registration", [sip.account ?? "", sip.registrar ?? "the registrar"])
        try await recorder.telling {
            let party = try await sip.open(towards: nil, story: recorder)
            do {
                try await keep(party)
            } catch {
                await party.leave()
                throw error
            }
            await party.leave()
            try recorder?.finish(callID: nil, status: "ok", code: 200, reason: "none", failure: nil)
        }
    }

    private func keep(_ party: SIPParty) async throws {
        guard let account = party.account else { return }
        let teller = SIPTeller(isJSON: common.json, hasEvents: true)
        var start = MonotonicClock.current
        try await party.endpoint.perform { agent, now in try agent.register(account, at: now) }
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            guard !Task.isCancelled else { return }
            await party.endpoint.perform { agent, now in agent.unregister(account, at: now) }
        }
        defer { watch.cancel() }
        let network = followNetwork(party, teller)
        defer { network?.close() }
        var cause: RequestFailure?
        var isRegistered = false
        var failure = ToolFailure("The account was not registered before the end. Give it more time.")
        for await event in party.endpoint.events {
            switch event {
            case .registrationFailed(_, let failure): cause = failure
            case .registration(_, .refreshing, _): start = MonotonicClock.current
            case .registration(_, .progress, _) where !isRegistered:
                teller.tell(
                    "registering",
                    [("account", .string(sip.account ?? "")), ("local", .string("\(party.local)"))],
                    text: "Registering \(sip.account ?? "")."
                )
            case .registration(_, .ok, _):
                isRegistered = true
                await tellRegistered(party, account, MonotonicClock.current - start, teller)
                if once { return }
            case .registration(_, .failed, let reason):
                isRegistered = false
                failure = await party.failure(reason, cause)
                let code: JSONValue = if case .status(let code) = reason { .integer(code) } else { .null }
                teller.tell(
                    "registration",
                    [("state", .string("failed")), ("code", code), ("reason", .string(failure.description))],
                    text: failure.description
                )
                // What only another password or name can mend is not tried again here.
                if once || Self.isFinal(reason) { throw failure }
            case .registration(_, .cleared, _):
                teller.tell("unregistered", text: "Not registered any more.")
                guard isRegistered else { throw failure }
                return
            default: break
            }
        }
    }

    /// Moves with the own address that leads to the server.
    ///
    /// Nil where that was given, or the kernel tells nothing of the network.
    private func followNetwork(_ party: SIPParty, _ teller: SIPTeller) -> NetworkWatcher? {
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

    private static func isFinal(_ reason: Registration.Reason) -> Bool {
        switch reason {
        case .status(401), .status(403), .status(404), .status(407), .notListed, .notWritable: true
        default: false
        }
    }

    private func tellRegistered(
        _ party: SIPParty,
        _ account: AccountHandle,
        _ time: Duration,
        _ teller: SIPTeller
    ) async {
        let (binding, seen) = await party.endpoint.perform { agent, _ in
            (agent.binding(of: account), agent.publicAddress(of: account))
        }
        let seconds = Int(binding?.granted ?? 0)
        teller.tell(
            "registered",
            [
                ("account", .string(sip.account ?? "")), ("expires", .integer(seconds)),
                ("publicAddress", seen.map { .string("\($0)") } ?? .null),
                ("pushServed", binding?.isPushServed.map { .bool($0) } ?? .null),
                ("pushRegistrationSeconds", binding?.wakeSeconds.map { .integer(Int($0)) } ?? .null),
                ("serviceRoute", .array((binding?.serviceRoutes ?? []).map { .string($0.uri.bytes.text) })),
                ("roundTripMs", .number(time.roundedMilliseconds)),
            ],
            text: "Registered for \(seconds) s" + (seen.map { ", seen as \($0)" } ?? "") + "."
                + (binding?.isPushServed == false ? " The server sends no pushes of this service." : "")
        )
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
