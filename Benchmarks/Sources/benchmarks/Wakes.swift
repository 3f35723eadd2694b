import CMeasure
import EngineBenchmarks
import Glibc

/// A phone that stood still for a minute, as on a machine that slept: how soon it is registered again.
enum Wakes {
    private static let sleep = 60
    private static let registered = #""event":"registered""#

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "wake") else { return [] }
        let time = try await Cores.inDirectory { try await run(tool, in: $0) }
        return [Figure("wake: stopped for \(sleep) s, until registered again", time, "ms", .atMost(1000))]
    }

    private static func run(_ tool: String, in directory: String) async throws -> Double {
        let (server, way) = try await ToolProcess.server(tool, in: directory)
        defer { server.end() }
        let phone = try ToolProcess(
            tool,
            ["sip", "register", "--account", "sip:bob@example.test", "--json"] + way,
            output: directory + "/phone"
        )
        defer { phone.end() }
        try await phone.printed(registered)
        kill(phone.number, SIGSTOP)
        try await Task.sleep(for: .seconds(sleep))
        let before = phone.count(registered)
        let start = measure_now()
        kill(phone.number, SIGCONT)
        try await phone.printed(registered, times: before + 1)
        return Double(measure_now() - start) / 1e6
    }
}
