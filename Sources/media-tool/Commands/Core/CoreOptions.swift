import ArgumentParser
import CallCore
import DesktopNotifications
import LocalMessaging
import Logging
import Mailbox
import MediaEngine
import SharedCore
import SharedPhone
import Synchronization

/// The desktop of this session, when it shows notifications; what is printed does not wait for it.
func desktop(of group: GroupContainer) async -> DesktopPresenter? {
    let variables = ProcessEnvironment.variables
    guard variables["DBUS_SESSION_BUS_ADDRESS"] != nil, let records = try? group.subdirectory("notifications") else {
        return nil
    }
    return try? await DesktopPresenter.connect(
        applicationName: "media-tool",
        environment: variables,
        records: records
    )
}

/// From where a core gets messages: the accounts of its group, or a mailbox.
struct CoreServiceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "An account of the group, see `sip account`; more for more. Default: all.",
            valueName: "uri"
        )
    )
    var account: [String] = []

    @Option(help: ArgumentHelp("A mailbox, in place of accounts: `core mailbox`.", valueName: "host:port"))
    var mailbox: HostPort?

    @OptionGroup var place: PhoneOptions

    func validate() throws {
        let ofSIP = [("--account", !account.isEmpty)] + place.given
        guard mailbox != nil, let wrong = ofSIP.first(where: \.1)?.0 else { return }
        throw ValidationError("'\(wrong)' is about SIP. Leave out '--mailbox', or it.")
    }

    /// The phone of the group, which takes no calls; `mayAsk` says whether a person may be asked to unlock the secrets of accounts.
    func phone(of group: GroupContainer, refusesCalls: Bool = false, mayAsk: Bool = true) throws -> SIPService {
        SIPService(
            secrets: try SecretFiles(group: group),
            otherSecrets: SecretPlace.others(of: group, mayAsk: mayAsk),
            accounts: account.isEmpty ? nil : Set(account),
            place.configuration(),
            refusesCalls: refusesCalls
        )
    }

    /// The phone of the group, whose calls other processes show; says on standard error when others can read their keys.
    func phone(
        of group: GroupContainer,
        engine: CallEngine,
        _ security: MediaSecurityOptions,
        mayAsk: Bool = true
    ) async throws -> SIPService {
        var configuration = place.configuration()
        try await security.secure(&configuration)
        security.srtp.warn(at: configuration.local, isTLS: configuration.transports == [.tls])
        return SIPService(
            secrets: try SecretFiles(group: group),
            otherSecrets: SecretPlace.others(of: group, mayAsk: mayAsk),
            accounts: account.isEmpty ? nil : Set(account),
            configuration,
            engine: engine,
            screensIn: group
        )
    }

    /// What a core of the group runs; an executor asks nobody.
    func service(of group: GroupContainer) throws -> any CoreService {
        if let mailbox { mailboxService(mailbox) } else { try phone(of: group, mayAsk: false) }
    }

    /// Refuses a group that has no account to run.
    ///
    /// - Throws: `ToolFailure`
    func check(_ store: SharedStore, _ group: String) async throws {
        guard mailbox == nil else { return }
        let known = Set(try await store.accounts().map(\.address))
        if known.isEmpty {
            throw ToolFailure(
                "\(group) has no account. Add one: media-tool sip account add --group \(group) --account sip:alice@example.org"
            )
        }
        if let wrong = account.first(where: { !known.contains($0) }) {
            throw ToolFailure("\(wrong) is no account of \(group). See media-tool sip account list --group \(group).")
        }
    }

    /// A service that logs why there is no connection, once for each reason: it is made again for ever.
    private func mailboxService(_ mailbox: HostPort) -> MailboxService {
        let logger = Logger(label: "mailbox")
        let told = Mutex("")
        return MailboxService(host: mailbox.host, port: Int(mailbox.port)) { error in
            let isNew = told.withLock { told in
                defer { told = error.message }
                return told != error.message
            }
            if isNew { logger.warning("\(error.message)") }
        }
    }

    /// Refuses an action that the other side cannot take.
    func check(_ action: MessageAction) throws { if mailbox != nil { try MailboxService.check(action) } }
}
