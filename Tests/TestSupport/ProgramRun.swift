public import Foundation
import Glibc

/// A run of a program as a process of its own: what it has printed so far, and its end, are waited for.
///
/// Thread: any; waits block the caller's.
public final class ProgramRun: @unchecked Sendable {
    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var openPipeCount = 2
        var isRunning = true
    }

    /// Guards the state of all runs, and tells of every change of it: a test may wait for whichever run says something.
    private final class Changes: @unchecked Sendable {
        private let condition = NSCondition()
        private var count = 0

        func note(_ body: () -> Void) {
            condition.lock()
            defer { condition.unlock() }
            body()
            count += 1
            condition.broadcast()
        }

        func reading<Result>(_ body: () -> Result) -> Result {
            condition.lock()
            defer { condition.unlock() }
            return body()
        }

        /// How many there were.
        var number: Int { reading { count } }

        /// Waits for one after the first `number`; whether it came before `end`.
        func wait(after number: Int, until end: Date) -> Bool {
            condition.lock()
            defer { condition.unlock() }
            while count == number { guard condition.wait(until: end) else { return count != number } }
            return true
        }
    }

    private static let changes = Changes()

    private let process = Process()
    private var state = State()

    /// Starts `program`, with nothing on its standard input.
    public init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String]? = nil,
        directory: URL? = nil
    ) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        if let environment { process.environment = environment }
        if let directory { process.currentDirectoryURL = directory }
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.terminationHandler = { [self] _ in update { $0.isRunning = false } }
        // Threads of the test runner block signals, and a process inherits that.
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
        read(output) { $0.output += $1 }
        read(errors) { $0.errors += $1 }
    }

    // MARK: Waiting

    /// Waits until `isDone`, for `limit` at most; whether it was.
    ///
    /// It is asked whenever any run has printed or ended.
    @discardableResult
    public static func wait(_ limit: Duration = .seconds(60), until isDone: () throws -> Bool) rethrows -> Bool {
        let end = Date(timeIntervalSinceNow: limit / .seconds(1))
        while true {
            let number = changes.number
            if try isDone() { return true }
            guard changes.wait(after: number, until: end) else { return try isDone() }
        }
    }

    /// Waits for its end, and for all that it printed; kills it when that takes longer than `limit`.
    ///
    /// - Returns: Its exit status.
    @discardableResult
    public func wait(_ limit: Duration = .seconds(60)) -> Int32 {
        if !ends(within: limit) {
            send(SIGKILL)
            ends(within: limit)
        }
        return status
    }

    /// Whether it ends, with all that it printed read, before `limit` is over.
    @discardableResult
    public func ends(within limit: Duration) -> Bool {
        Self.wait(limit) { hasEnded }
    }

    /// Whether it prints `text` on standard output, within the usual limit and before it ends.
    public func prints(_ text: String) -> Bool {
        Self.wait { output.contains(text) || hasEnded }
        return output.contains(text)
    }

    // MARK: What it does

    /// Its process number.
    public var processIdentifier: Int32 { process.processIdentifier }
    /// Whether it has not ended yet.
    public var isRunning: Bool { locked { $0.isRunning } }
    /// What it has printed on standard output.
    public var output: String { locked { String(decoding: $0.output, as: UTF8.self) } }
    /// What it has printed on standard error.
    public var errors: String { locked { String(decoding: $0.errors, as: UTF8.self) } }
    /// Its exit status, or the number of the signal that ended it; only after its end.
    public var status: Int32 { process.terminationStatus }
    /// Whether a signal ended it; only after its end.
    public var wasSignalled: Bool { process.terminationReason == .uncaughtSignal }

    /// Sends it a signal.
    public func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    private var hasEnded: Bool { locked { !$0.isRunning && $0.openPipeCount == 0 } }

    // MARK: Its state

    private func read(_ pipe: Pipe, _ take: @escaping @Sendable (inout State, Data) -> Void) {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            while case let part = handle.availableData, !part.isEmpty { update { take(&$0, part) } }
            // Its process keeps the pipe. With a thousand of them open, Foundation's `Process.run`, which looks through all that is
            // open, reads beyond the end of its list.
            try? handle.close()
            update { $0.openPipeCount -= 1 }
        }
    }

    private func update(_ body: (inout State) -> Void) { Self.changes.note { body(&state) } }

    private func locked<Result>(_ body: (State) -> Result) -> Result { Self.changes.reading { body(state) } }
}
