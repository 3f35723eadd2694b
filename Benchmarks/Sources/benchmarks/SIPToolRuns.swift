import CMeasure
import EngineBenchmarks
import Foundation
import Glibc

/// The tool's phone and server as processes: start, memory, a whole call in virtual time, and how many registrations a core answers.
enum SIPToolRuns {
    private static let (starts, accounts, rate, callSeconds) = (20, 20_000, 4000, 60)

    static func measure(_ options: Options) async throws -> [Figure] {
        guard let tool = try options.tool(for: "sip-tool") else { return [] }
        return try await Cores.inDirectory { directory in
            try await phones(tool, directory) + [
                try virtualCall(tool, directory), try await registrar(tool, directory),
            ]
        }
    }

    private struct Registering: Decodable { let sinceStartMs: Double }

    /// One after the other registers at a server without passwords.
    private static func phones(_ tool: String, _ directory: String) async throws -> [Figure] {
        let (server, way) = try await ToolProcess.server(tool, in: directory)
        defer { server.end() }
        var times: [Double] = []
        var memory: (all: Double, own: Double) = (0, 0)
        for number in 0..<starts {
            let words = ["sip", "register", "--account", "sip:bob@example.test", "--json"] + way
            let phone = try ToolProcess(tool, words, output: directory + "/phone\(number)")
            defer { phone.end() }
            times.append(try await phone.firstLine(Registering.self).sinceStartMs)
            try await phone.printed(#""event":"registered""#)
            memory = (try mebibytes("VmRSS", of: phone.number), try mebibytes("RssAnon", of: phone.number))
        }
        times.sort()
        return [
            Figure(
                "sip-tool: start until REGISTER leaves, p50",
                times[starts / 2],
                "ms",
                .atMost(40),
                note: "longest \(Report.number(times[starts - 1])) of \(starts)"
            ),
            Figure(
                "sip-tool: memory of a process that is registered",
                memory.all,
                "MiB",
                .atMost(24),
                note: "\(Report.number(memory.own)) its own, the rest pages of files"
            ),
        ]
    }

    /// SIP and sound of both sides, from the start of the process to its end.
    private static func virtualCall(_ tool: String, _ directory: String) throws -> Figure {
        let words = ["sip", "call", "--virtual", "--seed", "7", "--seconds", "\(callSeconds)", "--json"]
        let start = measure_now()
        guard try ToolProcess(tool, words, output: directory + "/call").wait() == 0 else {
            return Figure("sip-tool: a call in virtual time / in real time", "the call failed")
        }
        let seconds = Double(measure_now() - start) / 1e9
        return Figure(
            "sip-tool: a call in virtual time / in real time",
            Double(callSeconds) / seconds,
            "",
            .atLeast(35)
        )
    }

    /// Each REGISTER is answered 200 at once; the phones are another process.
    private static func registrar(_ tool: String, _ directory: String) async throws -> Figure {
        let name = "sip-tool: REGISTERs a second that a core of `sip server` answers"
        let (server, way) = try await ToolProcess.server(tool, in: directory)
        defer { server.end() }
        let words = [
            "sip", "load", "--register", "--users", "\(accounts)", "--rate", "\(rate)", "--account",
            "sip:alice@example.test", "--json",
        ]
        let before = try processorSeconds(of: server.number)
        guard try ToolProcess(tool, words + way, output: directory + "/load").wait() == 0 else {
            return Figure(name, "a registration failed")
        }
        let seconds = try processorSeconds(of: server.number) - before
        return Figure(
            name,
            Double(accounts) / seconds,
            "/s",
            .atLeast(6000),
            note: "UDP; \(accounts) users, \(Report.number(seconds * 1e6 / Double(accounts))) us of processor time each"
        )
    }

    private static func mebibytes(_ field: String, of process: pid_t) throws -> Double {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("\(field):") }
        return (Double(line?.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "") ?? 0) / 1024
    }

    /// What its threads have computed, in the kernel, too.
    private static func processorSeconds(of process: pid_t) throws -> Double {
        let stat = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        // Behind the name, which may hold blanks; the fields 14 and 15.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let kernel = Double(fields[12]) else {
            throw Options.Wrong(description: "/proc/\(process)/stat cannot be read")
        }
        return (user + kernel) / Double(sysconf(CInt(_SC_CLK_TCK)))
    }
}
