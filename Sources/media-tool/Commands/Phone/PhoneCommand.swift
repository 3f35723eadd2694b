import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIP

/// A softphone.
struct PhoneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "phone",
        abstract: "A phone at the shell: registers accounts, calls and is called, by lines on standard input.",
        discussion: """
            It rings, and does what lines say: call, answer, end, hold, resume, swap, mute, keys, transfer, follow, text, \
            calls, devices, volume, push, quit; help lists them. Who talks is held before another call begins to talk. At the end of \
            the input, by quit and by Ctrl-C it hangs up and takes its bindings away.

            With --json each thing that happens is a line, "listening" first, and lines may be actions: \
            {"action": "start", "to": "sip:bob@example.org", "id": 1}, answer, end, setHeld with "held", setMuted with \
            "muted", playDTMF with "digits", transfer with "to" or "with", acceptTransfer, refuseTransfer, text with "to" and "text", swap, calls, devices, device with \
            "name", volume with "db", push with "payload", quit. "call" is the number of the call; left out, it is the one \
            that can be meant. Each with an "id" is answered by a line "performed", or "refused" when it cannot be read or \
            means no call.

            The accounts file is JSON: [{"address": "sip:alice@example.org", "password": "..."}], with "user", "registrar", \
            "proxies", "name" and "expires" where they are needed. Calls go from the first one.

            EXAMPLES
              media-tool phone
              media-tool phone --account sip:alice@example.org --password-file secret
              media-tool phone --accounts accounts.json --json
            """
    )

    @Option(
        help: ArgumentHelp("The accounts, with their passwords; mode 0600.", valueName: "file"),
        completion: .file()
    )
    var accounts: String?

    @OptionGroup var own: AccountOptions

    @OptionGroup var place: PhoneOptions

    @Option(help: ArgumentHelp("A codec, see `codecs`; more for more, the preferred one first.", valueName: "name"))
    var codec: [String] = []

    @OptionGroup var security: MediaSecurityOptions

    @Option(help: ArgumentHelp("Whose tones it rings with: US, UK, DE, FR.", valueName: "code"))
    var country = "US"

    @OptionGroup var roles: BindingOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard accounts == nil || own.account == nil else {
            throw ValidationError("'--accounts' lists all accounts. Leave out '--account', or it.")
        }
        try own.check([("--proxy", !own.proxy.isEmpty)])
        guard own.passwordFile != "-" else {
            throw ValidationError("Standard input has the lines of the phone. Give '--password-file' a file.")
        }
        _ = try ToneSpec(named: CallProgressTone.ringback.rawValue, country: country)
    }

    private func phoneAccounts() throws -> [PhoneAccount] {
        if let accounts { return try PhoneAccounts.read(accounts) }
        guard let address = own.account else { return [] }
        do {
            var made = try PhoneAccount(address, userName: own.user, password: try own.password())
            (made.registrar, made.proxies) = (own.registrar, own.proxy)
            made.push = try own.pushParameters().map { PhonePush($0) }
            return [made]
        } catch let error as PhoneError {
            throw ToolFailure(error.message)
        }
    }

    private func phoneConfiguration() async throws -> PhoneConfiguration {
        var configuration = place.configuration()
        if !codec.isEmpty { configuration.codecs = codec }
        configuration.takesTransfers = true
        try await security.secure(&configuration)
        return configuration
    }

    func run() async throws {
        common.startLogging()
        try security.secrets.begin()
        Interruption.catchSignals()
        StandardOutput.watch()
        let (accounts, configuration) = (try phoneAccounts(), try await phoneConfiguration())
        try await CallEngine.session(try roles.engineConfiguration()) { engine in
            let teller = SIPTeller(isJSON: common.json, hasEvents: true)
            try engine.registry.check(codecs: configuration.codecs)
            let shell = PhoneShell(engine, teller, country: country)
            let phone: Phone
            do { phone = try await Phone(engine, configuration, provider: shell) } catch {
                throw ToolFailure("\(error)")
            }
            await shell.use(phone)
            security.srtp.warn(at: phone.localAddress, isTLS: configuration.transports == [.tls])
            teller.tell(
                "listening",
                [("local", .string("\(phone.localAddress)"))],
                text: "The phone is at \(phone.localAddress). Say help."
            )
            let telling = Task { await tell(phone.events, shell, phone, teller) }
            let registering = accounts.map { account in
                Task {
                    do { try await phone.register(account) } catch let error as PhoneError {
                        // What a server says of it `events` tells.
                        guard error.code == .invalid else { return }
                        Self.tellUnregistered(account.address, error, teller)
                    }
                }
            }
            _ = try await Interruption.orValue {
                let input = InputLines()
                for await line in input.lines {
                    guard await shell.obey(line) else { return }
                    input.take()
                }
            }
            await phone.close()
            for task in registering { try? await task.value }
            await telling.value
            teller.tell("closed", text: "The phone is closed.")
        }
    }

    private static func tellUnregistered(_ address: String, _ error: PhoneError, _ teller: SIPTeller) {
        teller.tell(
            "unregistered",
            [("account", .string(address)), ("reason", .string(error.message))],
            text: "\(address) is not registered. \(error.message)"
        )
    }

    private static func tell(_ id: String, _ state: TextState, _ teller: SIPTeller) {
        var reason: String?
        let (name, words) =
            switch state {
            case .pendingDelivery: ("pendingDelivery", "waits")
            case .inProgress: ("inProgress", "is on its way")
            case .delivered: ("delivered", "was taken")
            case .notDelivered: ("notDelivered", "was not taken")
            }
        if case .notDelivered(let error) = state { reason = error.message }
        teller.tell(
            "textChanged",
            [("id", .string(id)), ("state", .string(name)), ("reason", JSONValue(reason))],
            text: "The text \(id) \(words)." + (reason.map { " \($0.printable)" } ?? "")
        )
    }

    /// What the phone tells, to its end.
    private func tell(_ events: AsyncStream<PhoneEvent>, _ shell: PhoneShell, _ phone: Phone, _ teller: SIPTeller) async
    {
        await withTaskGroup(of: Void.self) { group in
            for await event in events {
                switch event {
                case .incoming(let call), .outgoing(let call), .replaced(_, let call):
                    let uuid = await phone.identifier(of: call)
                    group.addTask { await shell.listen(to: call, uuid) }
                case .registered(let address):
                    teller.tell("registered", [("account", .string(address))], text: "\(address) is registered.")
                case .unregistered(let address, let error):
                    Self.tellUnregistered(address, error, teller)
                case .moved(let address):
                    teller.tell("moved", [("local", .string("\(address)"))], text: "The phone is at \(address) now.")
                case .logged(let entry): await shell.note(entry)
                case .text(let text):
                    teller.tell(
                        "message",
                        [
                            ("callID", .string(text.callID)), ("messageID", JSONValue(text.id)),
                            ("from", .string(text.sender)), ("room", JSONValue(text.room)),
                            ("account", JSONValue(text.account)), ("text", .string(text.text)),
                        ],
                        text:
                            "\(text.sender.printable)\(text.room.map { " in \($0.printable)" } ?? ""): \(text.text.printable)"
                    )
                    // It was printed: that is all that a shell knows of a person.
                    group.addTask {
                        for kind in [.delivered, .displayed] as [TextReceipt.Kind] {
                            try? await phone.sendReceipt(kind, of: text)
                        }
                    }
                case .textChanged(let id, let state): Self.tell(id, state, teller)
                case .composing(let peer, let isActive):
                    teller.tell(
                        "composing",
                        [("from", .string(peer)), ("state", isActive ? "active" : "idle")],
                        text: "\(peer.printable) \(isActive ? "is writing." : "writes no more.")"
                    )
                case .invitation(let invitation):
                    teller.tell(
                        "invitation",
                        [
                            ("room", .string(invitation.room)), ("from", .string(invitation.inviter)),
                            ("subject", JSONValue(invitation.subject)),
                        ],
                        text: "\(invitation.inviter.printable) invites to \(invitation.room.printable)"
                    )
                case .room(let room): teller.tell("room", room.lineMembers, text: room.line)
                case .receipt(let receipt):
                    teller.tell(
                        "receipt",
                        [
                            ("messageID", .string(receipt.id)), ("kind", .string(receipt.kind.rawValue)),
                            ("from", .string(receipt.from)),
                        ],
                        text: "\(receipt.from.printable): \(receipt.kind.rawValue)"
                    )
                }
            }
        }
    }
}
