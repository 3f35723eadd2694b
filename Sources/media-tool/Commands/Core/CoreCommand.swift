import ArgumentParser

/// The shared core: one process at a time owns the account and the database of a group.
struct CoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "core",
        abstract: "One core, and one phone, for several processes of a group.",
        discussion: """
            A core owns an account; one process of a group runs it at a time. `main` is the application, `notify`, `calls` and \
            `act` are what a push or a person wakes. Messages come by SIP for the accounts of the group (`sip account`), or from \
            a mailbox, which is a server to try it with.

            EXAMPLES
              media-tool core main --group /tmp/group
              media-tool core notify --group /tmp/group --call-id 1234@example.org
              media-tool core mailbox --port 5070 --messages pushes.jsonl
              media-tool core notify --group /tmp/group --mailbox 127.0.0.1:5070 --call-id 1
            """,
        subcommands: [
            CoreMailboxCommand.self, CoreMainCommand.self, CoreNotifyCommand.self, CoreCallsCommand.self,
            CoreActCommand.self, CoreStatusCommand.self,
        ]
    )
}
