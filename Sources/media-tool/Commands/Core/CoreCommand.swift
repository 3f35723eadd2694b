import ArgumentParser

/// The shared core: one process at a time owns the account and the database of a group.
struct CoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "core",
        abstract: "One core for several processes of a group, and a mailbox to try it with.",
        subcommands: [
            CoreMailboxCommand.self, CoreMainCommand.self, CoreNotifyCommand.self, CoreActCommand.self,
            CoreStatusCommand.self,
        ]
    )
}
