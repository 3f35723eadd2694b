import EngineBenchmarks
import Foundation

/// Texts by SIP that a server keeps, and processes of the tool that are started for them, one after the other, as pushes do.
enum PushedTexts {
    private static let count = 60

    private struct Sent: Decodable { let callID: String }
    private struct Shown: Decodable {
        let source: String
        let waitMs: Double
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "texts") else { return [] }
        let times = try await Cores.inDirectory { try await run(tool, in: $0) }.sorted()
        let note = "\(times.count) processes, longest \(Report.number(times[times.count - 1]))"
        return [
            Figure("texts: pushed by SIP, until shown, p50", times[times.count / 2], "ms", .atMost(80), note: note),
            Figure("texts: pushed by SIP, until shown, p99", times[times.count * 99 / 100], "ms", .atMost(250)),
        ]
    }

    private static func run(_ tool: String, in directory: String) async throws -> [Double] {
        // Phones that can be woken are taken for asleep: their texts are kept at once.
        let (server, way) = try await ToolProcess.server(tool, in: directory, "--push-log", directory + "/pushes")
        defer { server.end() }
        let group = ["--group", directory + "/group"]
        let account =
            ["sip", "account", "add", "--account", "sip:bob@example.test", "--push-team", "T", "--push-bundle", "b"]
            + ["--push-remote-token", "beef"]
        let added = try ToolProcess(tool, account + group + way, output: directory + "/account")
        guard added.wait() == 0 else { throw Options.Wrong(description: "the account was not added") }
        var times: [Double] = []
        for number in 0..<count {
            let message = ["sip", "message", "sip:bob@example.test", "text", "--json", "--local", "127.0.0.1:0"] + way
            let sending = try ToolProcess(tool, message, output: "\(directory)/sent\(number)")
            let callID = try await sending.firstLine(Sent.self).callID
            guard sending.wait() == 0 else { throw Options.Wrong(description: "text \(number) was not sent") }
            let notify =
                ["core", "notify", "--call-id", callID, "--json", "--local", "127.0.0.1:0", "--transport", "udp"]
                + group
            let process = try ToolProcess(tool, notify, output: "\(directory)/shown\(number)")
            let shown = try await process.firstLine(Shown.self)
            guard process.wait() == 0, shown.source == "executor" else {
                throw Options.Wrong(description: "text \(number) was not shown")
            }
            times.append(shown.waitMs)
        }
        return times
    }
}
