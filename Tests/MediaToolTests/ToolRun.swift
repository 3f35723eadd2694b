import Foundation
import Glibc
import MediaEngine
import Synchronization
import TestSupport
import Testing

extension Tag {
    /// Needs the wall clock, threads, sockets or processes: the suite runs alone.
    @Tag static var realtime: Self
}

/// A run of the built tool as a process of its own.
final class ToolRun {
    /// The tool beside the test bundle.
    static let path: String = {
        let bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let first = CommandLine.arguments.first.map { URL(fileURLWithPath: $0).deletingLastPathComponent() }
        let folders = [bundle, first, root.appendingPathComponent(".build/debug")].compactMap(\.self)
        let candidates = folders.map { $0.appendingPathComponent("media-tool").path }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0) } ?? ".build/debug/media-tool"
    }()

    private let run: ProgramRun
    private let folder: Scratch

    /// Starts `program` with `arguments`; the roles stand for the null card.
    init(_ arguments: [String], program: String = ToolRun.path, environment: [String: String] = [:]) throws {
        folder = try Scratch()
        var variables = ProcessInfo.processInfo.environment
        variables["XDG_CONFIG_HOME"] = folder.path
        variables["XDG_STATE_HOME"] = folder.path
        variables["MEDIA_ENGINE_AU"] = "null"
        variables["MEDIA_ENGINE_AQ"] = "null"
        run = try ProgramRun(program, arguments, environment: variables.merging(environment) { $1 })
    }

    /// Runs the tool to its end.
    static func finished(_ arguments: String..., environment: [String: String] = [:]) throws -> ToolRun {
        let run = try ToolRun(arguments, environment: environment)
        run.wait()
        return run
    }

    /// Waits for its end; a run of more than 60 s is killed.
    @discardableResult
    func wait() -> Int32 { run.wait() }

    /// Whether it ends within a time.
    func ends(within limit: Duration) -> Bool { run.ends(within: limit) }

    /// Waits until it has printed what `isDone` looks for, or has ended; whether it had.
    @discardableResult
    func wait(until isDone: () throws -> Bool) rethrows -> Bool {
        try ProgramRun.wait { try isDone() || !isRunning }
        return try isDone()
    }

    /// Waits until the output holds `text`.
    func printed(_ text: String) -> Bool { run.prints(text) }

    /// Ctrl-C.
    func interrupt() { signal(SIGINT) }

    func signal(_ number: Int32) { run.send(number) }

    /// `kill -9`: it ends without a word.
    func killAtOnce() {
        run.send(SIGKILL)
        run.wait()
    }

    var processIdentifier: Int32 { run.processIdentifier }

    var isRunning: Bool { run.isRunning }
    var status: Int32 { run.status }
    /// Whether SIGKILL ended it.
    var isKilled: Bool { run.wasSignalled && run.status == SIGKILL }
    var output: String { run.output }
    var errors: String { run.errors }

    /// The JSON object on standard output.
    func json() throws -> [String: Any] {
        let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
        return try #require(value as? [String: Any])
    }

    /// The JSON objects on the lines of standard output that are whole.
    func jsonLines() throws -> [[String: Any]] {
        try output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    /// Where it listens for SIP, as it says itself: first of all, or by one transport.
    func address(by transport: String? = nil) throws -> String {
        try #require(printed(#""event":"listening""#), "\(errors)")
        let all = try #require(try jsonLines().first?["addresses"] as? [String])
        let named = all.first { transport == nil || $0.hasPrefix("\(transport ?? "") ") }
        return try #require(named?.split(separator: " ").last.map(String.init), "\(all)")
    }
}

/// A folder that goes away with the value.
final class Scratch {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "media-tool-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    /// Bytes of the file called `name`.
    func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: file(name)))) }
}

/// UDP ports that were free a moment ago.
enum FreePort {
    /// An even port that is free, as the three behind it.
    ///
    /// It is below those that the kernel gives to who asks for any (32768 and on), so that nobody gets it meanwhile; and none is
    /// given twice, since who asks for two has not taken the first yet.
    static func pair() throws -> UInt16 {
        for _ in 0..<100 {
            let port = 4 * UInt16(5000 + given.wrappingAdd(1, ordering: .relaxed).newValue % 2500)
            let sockets = (0..<4).map { try? UDPSocket(bind: .loopback(port: port + $0)) }
            if sockets.allSatisfy({ $0 != nil }) { return port }
        }
        throw CocoaError(.featureUnsupported)
    }

    private static let given = Atomic(Int.random(in: 0..<2500))

    /// Waits until a program listens on `port`.
    ///
    /// It only looks into the kernel's table: to try the port would take it from who is about to.
    static func waitUntilTaken(_ port: UInt16) {
        #expect(Polling.wait { isTaken(port) }, "nothing listens on UDP port \(port)")
    }

    /// Whether the kernel lists a socket with local `port`: "sl: address:port …", in hexadecimal digits.
    private static func isTaken(_ port: UInt16) -> Bool {
        ["/proc/net/udp", "/proc/net/udp6"].contains { path in
            guard let table = try? String(contentsOfFile: path, encoding: .utf8) else { return false }
            return table.split(separator: "\n").dropFirst().contains { row in
                let fields = row.split(separator: " ", maxSplits: 2)
                guard fields.count > 1, let digits = fields[1].split(separator: ":").last else { return false }
                return UInt16(digits, radix: 16) == port
            }
        }
    }
}
