import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import SharedCore

/// A core in a process of its own, for the benchmarks to kill, to stop, and to read from.
enum CorePeer {
    enum Role: String {
        /// Runs an executor that waits for a message which never comes.
        case executor
        /// Runs a main that delivers each message that somebody waits for.
        case main
        /// Has the lock of a core and as much memory as its file `memory` says in KiB, and runs no core.
        case holder
    }

    private static let argument = "core-peer"

    /// Starts a core in a group, and waits until it runs.
    ///
    /// - Returns: Its process.
    static func start(_ role: Role, in directory: String) async throws -> CInt {
        let process = try spawn(role, in: directory)
        let store = try SharedStore(group: GroupContainer(directory: directory))
        try await wait(for: process, directory) {
            let status = try await store.status()
            return status.state != .free && status.owner?.pid == process
        }
        return process
    }

    /// Starts a process that holds the lock of a group and has as much memory as another, and waits until it does.
    ///
    /// - Returns: Its process.
    static func startHolder(_ kilobytes: Int64, in directory: String) async throws -> CInt {
        try Data("\(kilobytes)".utf8).write(to: URL(filePath: "\(directory)/memory"))
        let process = try spawn(.holder, in: directory)
        try await wait(for: process, directory) { FileManager.default.fileExists(atPath: "\(directory)/held") }
        return process
    }

    private static func spawn(_ role: Role, in directory: String) throws -> CInt {
        let words = ["benchmarks", argument, role.rawValue, directory]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = measure_start("/proc/self/exe", &arguments)
        guard process > 0 else {
            throw Options.Wrong(description: "no second process: \(String(cString: strerror(-process)))")
        }
        return process
    }

    private static func wait(
        for process: CInt,
        _ directory: String,
        until isThere: () async throws -> Bool
    ) async throws {
        let limit = ContinuousClock.now + .seconds(10)
        while try await !isThere() {
            guard .now < limit else {
                measure_stop(process)
                throw Options.Wrong(description: "the core in \(directory) did not start")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// The part for which this process was started as a core.
    static var assignment: (Role, directory: String)? {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, arguments[1] == argument, let role = Role(rawValue: arguments[2]) else {
            return nil
        }
        return (role, arguments[3])
    }

    /// Runs until it is killed, or its core ends.
    static func run(as role: Role, in directory: String) async -> Never {
        do {
            let group = try GroupContainer(directory: directory)
            switch role {
            case .executor:
                let service = DeliveringService(delivers: false)
                let core = try ExecutorCore(group: group, service: service)
                _ = try await core.newMessage(callID: "never")
            case .main:
                let service = DeliveringService(delivers: true)
                let core = try MainCore(group: group, service: service)
                try await core.start()
                if let failure = await core.failed() { throw failure }
            case .holder: try await hold(group, directory)
            }
        } catch {
            Benchmark.complain("the \(role.rawValue) in \(directory): \(error)")
            exit(1)
        }
        exit(0)
    }

    /// Takes the lock, and memory up to what is asked for, until it is killed.
    private static func hold(_ group: GroupContainer, _ directory: String) async throws {
        let lock = try CoreLock(group: group)
        try await lock.wait(for: .writer)
        let text = try String(contentsOfFile: "\(directory)/memory", encoding: .utf8)
        let missing = max(0, (Int(text) ?? 0) - Int(measure_memory(getpid(), "VmRSS"))) << 10
        let memory = [UInt8](repeating: 1, count: missing)
        try Data().write(to: URL(filePath: "\(directory)/held"))
        try await Task.sleep(for: .seconds(60))
        withExtendedLifetime((lock, memory)) {}
    }
}

/// A service without a server: it delivers what is waited for, or nothing.
actor DeliveringService: CoreService {
    private let delivers: Bool
    private var context: CoreContext?
    private var number = 0

    init(delivers: Bool) { self.delivers = delivers }

    func start(_ context: CoreContext) { self.context = context }
    func fetchPending() {}
    func perform(_ action: MessageAction) {}
    func stop() {}

    /// Who waits, waits for the next number: each message says, by the monotonic clock, when its delivery began.
    func fetchSoon() async {
        guard delivers else { return }
        // Long enough for the one who waits to fall asleep.
        try? await Task.sleep(for: .milliseconds(10))
        let message = IncomingMessage(callID: "\(number)", sender: "well", text: "\(measure_now())")
        if (try? await context?.deliver(message)) == true { number += 1 }
    }

    func run() async throws {
        while true { try await Task.sleep(for: .seconds(60)) }
    }
}
