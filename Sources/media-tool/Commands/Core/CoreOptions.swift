import ArgumentParser
import DesktopNotifications
import LocalMessaging
import Logging
import Mailbox
import SharedCore
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

/// The mailbox from which a core gets messages.
struct MailboxOption: ParsableArguments {
    @Option(help: ArgumentHelp("Where the mailbox is.", valueName: "host:port"))
    var mailbox: HostPort

    /// A service that logs why there is no connection, once for each reason: it is made again for ever.
    func service() -> MailboxService {
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
}
