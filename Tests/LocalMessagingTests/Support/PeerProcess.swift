import Foundation
import Glibc
import Synchronization
import Testing

/// A run of `Tests/MessagingPeer`; killed with the value at the latest.
final class PeerProcess: Sendable {
    static let path: String = {
        let bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let first = CommandLine.arguments.first.map { URL(fileURLWithPath: $0).deletingLastPathComponent() }
        let folders = [bundle, first, root.appendingPathComponent(".build/debug")].compactMap(\.self)
        let candidates = folders.map { $0.appendingPathComponent("MessagingPeer").path }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0) } ?? ".build/debug/MessagingPeer"
    }()

    let processID: pid_t
    private let process: Process
    private let input = Pipe()
    private let lines = Record<String>()
    private let hasEnded = Gate()
    private let readCount = Atomic(0)

    /// A peer of root's that may not write anywhere lacks root's right to ignore the modes of files.
    init(_ arguments: String..., mayWriteAnywhere: Bool = true) throws {
        let (process, lines, hasEnded) = (Process(), lines, hasEnded)
        var command = [Self.path] + arguments
        if !mayWriteAnywhere, geteuid() == 0 {
            command = ["/usr/bin/setpriv", "--bounding-set", "-dac_override"] + command
        }
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.standardInput = input
        let output = Pipe()
        process.standardOutput = output
        process.terminationHandler = { _ in hasEnded.open() }
        try Self.run(process)
        self.process = process
        processID = process.processIdentifier
        // Taking a `readabilityHandler` away may crash Dispatch (swift-corelibs-libdispatch, issue 949).
        Thread.detachNewThread { Self.read(output.fileHandleForReading, into: lines) }
    }

    /// Starts it with no signal blocked: threads of the test runner block signals, and a process inherits that.
    private static func run(_ process: Process) throws {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
    }

    /// What stands for the line of a peer whose output has ended.
    static let silence = "(its output has ended)"

    /// Reads lines until the pipe is closed at its other end.
    private static func read(_ output: FileHandle, into lines: Record<String>) {
        var rest = ""
        while case let data = output.availableData, !data.isEmpty {
            rest += String(decoding: data, as: UTF8.self)
            while let end = rest.firstIndex(of: "\n") {
                lines.add(String(rest[..<end]))
                rest = String(rest[rest.index(after: end)...])
            }
        }
        lines.add(silence)
    }

    /// What it prints next, or `silence`.
    func line() async -> String {
        let number = readCount.add(1, ordering: .relaxed).newValue
        return await lines.values(number)[number - 1]
    }

    func say(_ line: String) {
        input.fileHandleForWriting.write(Data((line + "\n").utf8))
    }

    /// Kills it, and waits for its end.
    func kill() async {
        Glibc.kill(processID, SIGKILL)
        await hasEnded.passed()
    }

    deinit {
        if process.isRunning { Glibc.kill(processID, SIGKILL) }
    }
}
