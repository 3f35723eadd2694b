import Foundation
import Glibc
import TestSupport
import Testing

/// A run of `media-tool phone --json` that takes lines.
final class PhoneRun {
    let run: ToolRun
    private let lines: FileHandle

    /// One at an own address, nil has it follow the machine's, in a network, nil is that of the tests.
    init(
        _ folder: Scratch,
        at local: String?,
        in network: NetworkNamespace?,
        _ arguments: [String],
        environment: [String: String] = [:]
    ) throws {
        let path = folder.file("lines-\(UUID().uuidString)")
        guard mkfifo(path, 0o600) == 0 else { throw POSIXError(.EIO) }
        let place = local.map { ["--local", $0] } ?? []
        let command = (network?.command ?? []) + [ToolRun.path, "phone", "--json"] + place + arguments
        run = try ToolRun(
            ["-c", #"lines="$1"; shift; exec "$@" <"$lines""#, "sh", path] + command,
            program: "/bin/sh",
            environment: environment
        )
        lines = try #require(FileHandle(forWritingAtPath: path))
        try #require(run.printed(#""event":"listening""#), "\(run.errors)")
    }

    convenience init(_ folder: Scratch, _ arguments: String...) throws {
        try self.init(folder, at: "127.0.0.1:0", in: nil, arguments)
    }

    func say(_ line: String) throws { try lines.write(contentsOf: Data((line + "\n").utf8)) }

    /// Waits until its only call has received more packets than `count`; how many it has, nil when it never has.
    func received(moreThan count: Int) throws -> Int? {
        func lists() throws -> [[String: Any]] {
            try run.jsonLines().filter { $0["event"] as? String == "calls" }
        }
        let former = try lists().count
        var latest: Int?
        ProgramRun.wait {
            guard run.isRunning, (try? say("calls")) != nil, let lists = try? lists() else { return true }
            let calls = lists.dropFirst(former).last?["calls"] as? [[String: Any]]
            latest = calls?.first?["receivedPackets"] as? Int
            return latest ?? 0 > count
        }
        return latest.flatMap { $0 > count ? $0 : nil }
    }

    /// What it has printed, but for the calls that are on.
    var story: String {
        run.output.split(separator: "\n").filter { !$0.contains(#""event":"calls""#) }.joined(separator: "\n")
    }

    /// How often it has printed `text`.
    func count(_ text: String) -> Int { run.output.components(separatedBy: text).count - 1 }

    func prints(_ text: String) -> Bool { run.printed(text) }

    func prints(_ isPrinted: (String) -> Bool) -> Bool { run.wait { isPrinted(run.output) } }

    /// The end of its input.
    func close() { try? lines.close() }

    /// Its exit code.
    func ends() -> Int32 { run.wait() }
}
