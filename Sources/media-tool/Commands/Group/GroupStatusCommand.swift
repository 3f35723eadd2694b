import ArgumentParser
import LocalMessaging

/// Lists the servers of a group.
struct GroupStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Lists the servers of a group: live, or stale since their process was killed.",
        discussion: """
            Nobody is asked: the lock beside each socket tells. The next server of that name replaces a stale socket. \
            With --json, each server is a line.

            EXAMPLES
              media-tool group status --group /run/user/1000/phone
              media-tool group status --group /run/user/1000/phone --json
            """
    )

    @OptionGroup var place: GroupOption
    @OptionGroup var common: CommonOptions

    func run() throws {
        common.startLogging()
        let servers = try GroupContainer(directory: place.group, isCreated: false).servers()
        guard !common.json else {
            for server in servers { StandardOutput.write(Self.json(server).text + "\n") }
            return
        }
        let rows = servers.map { [$0.name, Self.state(of: $0), $0.process.map { "\($0)" } ?? ""] }
        StandardOutput.write(Table.text([["NAME", "STATE", "PROCESS"]] + rows))
    }

    private static func json(_ server: ServedName) -> JSONValue {
        [
            "name": .string(server.name),
            "state": .string(state(of: server)),
            "pid": server.process.map { .integer(Int($0)) } ?? .null,
        ]
    }

    private static func state(of server: ServedName) -> String { server.isLive ? "live" : "stale" }
}
