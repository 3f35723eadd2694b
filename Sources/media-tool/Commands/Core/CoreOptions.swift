import ArgumentParser
import LocalMessaging
import Mailbox
import SharedCore

/// The group that a command works in.
struct GroupOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The directory of the group; made when it is missing.", valueName: "dir"),
        completion: .directory
    )
    var group: String

    func container() throws -> GroupContainer { try GroupContainer(directory: group) }
}

/// The mailbox from which a core gets messages.
struct MailboxOption: ParsableArguments {
    @Option(help: ArgumentHelp("Where the mailbox is.", valueName: "host:port"))
    var mailbox: HostPort

    func service() -> MailboxService { MailboxService(host: mailbox.host, port: Int(mailbox.port)) }
}
