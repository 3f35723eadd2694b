import Foundation
import Glibc
import MediaEngine
import Testing

extension Tag {
    /// Needs the wall clock.
    @Tag static var realtime: Self
}

/// A run of the built tool as a process of its own, with files for its output.
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

    private let process = Process()
    private let folder: Scratch

    /// Starts `program` with `arguments`; the roles stand for the null card.
    init(_ arguments: [String], program: String = ToolRun.path, environment: [String: String] = [:]) throws {
        folder = try Scratch()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        var variables = ProcessInfo.processInfo.environment
        variables["XDG_CONFIG_HOME"] = folder.path
        variables["MEDIA_ENGINE_AU"] = "null"
        variables["MEDIA_ENGINE_AQ"] = "null"
        process.environment = variables.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        for (name, isError) in [("out", false), ("err", true)] {
            _ = FileManager.default.createFile(atPath: folder.file(name), contents: nil)
            let handle = try #require(FileHandle(forWritingAtPath: folder.file(name)))
            if isError { process.standardError = handle } else { process.standardOutput = handle }
        }
        // Threads of the test runner block signals, and a process inherits that.
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
    }

    /// Runs the tool to its end.
    static func finished(_ arguments: String..., environment: [String: String] = [:]) throws -> ToolRun {
        let run = try ToolRun(arguments, environment: environment)
        run.wait()
        return run
    }

    /// Waits for the end; a run of more than 60 s is killed.
    @discardableResult
    func wait() -> Int32 {
        let deadline = Date().addingTimeInterval(60)
        while process.isRunning, Date() < deadline { usleep(2000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Ctrl-C.
    func interrupt() { signal(SIGINT) }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// `kill -9`: it ends without a word.
    func killAtOnce() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    var processIdentifier: Int32 { process.processIdentifier }

    var isRunning: Bool { process.isRunning }
    var status: Int32 { process.terminationStatus }
    /// Whether SIGKILL ended it.
    var isKilled: Bool { process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL }
    var output: String { (try? String(contentsOfFile: folder.file("out"), encoding: .utf8)) ?? "" }
    var errors: String { (try? String(contentsOfFile: folder.file("err"), encoding: .utf8)) ?? "" }

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

/// Programs that other projects made, to check ours against.
enum Program {
    static func path(_ name: String) -> String? {
        ["/usr/bin/", "/usr/local/bin/"].map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// UDP ports that were free a moment ago.
enum FreePort {
    /// An even port whose next one is free, too.
    static func pair() throws -> UInt16 {
        for _ in 0..<100 {
            let first = try UDPSocket(bind: .loopback(port: 0))
            let port = first.localAddress.port
            guard port % 2 == 0, (try? UDPSocket(bind: .loopback(port: port + 1))) != nil else { continue }
            return port
        }
        throw CocoaError(.featureUnsupported)
    }

    /// Waits until a program listens on `port`.
    ///
    /// It only looks: to try the port would take it from who is about to.
    static func waitUntilTaken(_ port: UInt16) {
        #expect(Patience.wait { isTaken(port) }, "nothing listens on UDP port \(port)")
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

/// Waiting for what another process does, however slow the machine.
enum Patience {
    /// Waits until `isDone`, so many seconds at most; whether it was.
    @discardableResult
    static func wait(seconds: Double = 20, until isDone: () throws -> Bool) rethrows -> Bool {
        let end = Date().addingTimeInterval(seconds)
        while try !isDone() {
            guard Date() < end else { return false }
            usleep(1000)
        }
        return true
    }

    /// Waits until the file at `path` has `byteCount` bytes.
    static func wait(forFile path: String, byteCount: Int = 1) {
        wait {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return (attributes?[.size] as? Int ?? 0) >= byteCount
        }
    }
}
