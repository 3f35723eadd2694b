import EngineBenchmarks
import Foundation

/// Texts by SIP that a server keeps, and processes of the tool that are started for them, one after the other, as pushes do.
enum PushedTexts {
    private static let count = 60

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
        let group = try await PushedGroup(tool, in: directory)
        defer { group.server.end() }
        var times: [Double] = []
        for number in 0..<count {
            let callID = try await group.sent(group.send("text", "sent\(number)"))
            let notify = ["core", "notify", "--call-id", callID, "--json"] + group.options + PushedGroup.place
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
