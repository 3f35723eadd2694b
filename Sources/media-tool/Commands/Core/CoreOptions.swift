import ArgumentParser
import LocalMessaging
import Mailbox
import SharedCore

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

    func service() -> MailboxService { MailboxService(host: mailbox.host, port: Int(mailbox.port)) }
}
