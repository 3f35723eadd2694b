import CMeasure
import EngineBenchmarks
import Glibc

/// What it costs to start the tool.
enum ToolStart {
    static func measure(_ options: Options) throws -> [Figure] {
        guard let path = try options.tool(for: "tool") else { return [] }
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(path), strdup("codecs"), nil]
        defer { for argument in arguments { free(argument) } }
        var (wall, cpu) = (Double.infinity, Double.infinity)
        for _ in 0..<30 {
            var (elapsed, used): (Int64, Int64) = (0, 0)
            let code = measure_run(path, &arguments, &elapsed, &used)
            guard code == 0 else { throw Options.Wrong(description: "\(path) codecs answered \(code)") }
            wall = min(wall, Double(elapsed) / 1e6)
            cpu = min(cpu, Double(used) / 1e6)
        }
        let peak = measure_peak_memory(path, &arguments)
        guard peak > 0 else { throw Options.Wrong(description: "its memory could not be read: \(peak)") }
        return [
            Figure("tool: codecs, start to exit", wall, "ms", .atMost(25), note: "CPU \(Report.number(cpu)) ms"),
            Figure("tool: codecs, peak memory", Double(peak) / 1024, "MiB", .atMost(20)),
        ]
    }
}
