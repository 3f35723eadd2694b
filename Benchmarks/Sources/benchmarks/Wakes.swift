import CMeasure
import EngineBenchmarks
import Glibc

/// A phone that stood still for a minute, as on a machine that slept: how soon it is registered again.
enum Wakes {
    private static let sleep = 60

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
        try await registered(phone, 1)
        kill(phone.number, SIGSTOP)
        try await Task.sleep(for: .seconds(sleep))
        let before = registrations(phone)
        let start = measure_now()
        kill(phone.number, SIGCONT)
        try await registered(phone, before + 1)
        return Double(measure_now() - start) / 1e6
    }

    /// How often the phone has said that it is registered.
    private static func registrations(_ phone: ToolProcess) -> Int {
        phone.lines.count { $0.contains(#""event":"registered""#) }
    }

    /// Returns once it has said so that often.
    private static func registered(_ phone: ToolProcess, _ count: Int) async throws {
        let limit = ContinuousClock.now + .seconds(10)
        while registrations(phone) < count {
            guard .now < limit else { throw Options.Wrong(description: "the phone did not register") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
