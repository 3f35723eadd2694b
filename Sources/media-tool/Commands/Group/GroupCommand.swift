internal import CallBasics
import ArgumentParser
import LocalMessaging

/// Messages between the processes of a group.
struct GroupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "group",
        abstract: "Sends messages between processes: serves a name, sends to it, listens to it.",
        discussion: """
            A group is a directory of one user, made when a server or a listener needs it. A server has a name in it, \
            which belongs to it until it ends, however it ends.

            With --json, each message is one JSON object on a line.

            EXAMPLES
              media-tool group serve --group /run/user/1000/phone --name news
              media-tool group listen --group /run/user/1000/phone --name news --topic calls
              media-tool group send --group /run/user/1000/phone --name news --topic calls --body '{"from":"sip:a@b"}'
              media-tool group status --group /run/user/1000/phone --json
            """,
        subcommands: [
            GroupServeCommand.self, GroupSendCommand.self, GroupListenCommand.self, GroupStatusCommand.self,
        ]
    )
}

/// Which group.
struct GroupOption: ParsableArguments {
    @Option(help: ArgumentHelp("The directory of the group.", valueName: "dir"), completion: .directory)
    var group: String

    func validate() throws {
        if group.isEmpty { throw ValidationError("The value '' of '--group' is no directory. Name one.") }
    }

    /// The group, whose directory is made when it is missing, if that is wanted.
    func container(isCreated: Bool = true) throws(GroupError) -> GroupContainer {
        try GroupContainer(directory: group, isCreated: isCreated)
    }
}

/// Which server of which group.
struct ServerOptions: ParsableArguments {
    @OptionGroup var place: GroupOption

    @Option(help: ArgumentHelp("The server's name: letters, digits, '.', '-' and '_'.", valueName: "name"))
    var name: String

    func validate() throws {
        do {
            try GroupContainer.check(name)
        } catch {
            throw ValidationError("\(error)")
        }
    }
}
