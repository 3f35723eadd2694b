import CMeasure
import EngineBenchmarks
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
    }

    private static let argument = "core-peer"

    /// Starts a core in a group, and waits until it runs.
    ///
    /// - Returns: Its process.
    static func start(_ role: Role, in directory: String) async throws -> CInt {
        let words = ["benchmarks", argument, role.rawValue, directory]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = measure_start("/proc/self/exe", &arguments)
        guard process > 0 else {
            throw Options.Wrong(description: "no second process: \(String(cString: strerror(-process)))")
        }
        let store = try SharedStore(group: GroupContainer(directory: directory))
        let limit = ContinuousClock.now + .seconds(10)
        while try await store.status().owner?.pid != process {
            guard .now < limit else {
                measure_stop(process)
                throw Options.Wrong(description: "the core in \(directory) did not start")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
        return process
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
            let service = DeliveringService(try SharedStore(group: group), delivers: role == .main)
            switch role {
            case .executor:
                let core = try ExecutorCore(group: group, service: service)
                _ = try await core.newMessage(callID: "never")
            case .main:
                let core = try MainCore(group: group, service: service)
                try await core.start()
                if let failure = await core.failed() { throw failure }
            }
        } catch {
            Benchmark.complain("the \(role.rawValue) in \(directory): \(error)")
            exit(1)
        }
        exit(0)
    }
}

/// A service without a server: it delivers what is waited for, or nothing.
actor DeliveringService: CoreService {
    private let store: SharedStore
    private let delivers: Bool
    private var context: CoreContext?

    init(_ store: SharedStore, delivers: Bool) {
        self.store = store
        self.delivers = delivers
    }

    func start(_ context: CoreContext) { self.context = context }
    func fetchPending() {}
    func perform(_ action: MessageAction) {}
    func stop() {}

    /// Each message says, by the monotonic clock, when its delivery began.
    func run() async throws {
        while true {
            // Long enough for the one who waits to fall asleep.
            try await Task.sleep(for: delivers ? .milliseconds(10) : .seconds(60))
            guard delivers else { continue }
            for waiter in try await store.waiters() {
                guard case .message(let callID) = waiter.item, try await store.message(callID: callID) == nil else {
                    continue
                }
                try await Task.sleep(for: .milliseconds(10))
                let message = IncomingMessage(callID: callID, sender: "well", text: "\(measure_now())")
                try await context?.deliver(message)
            }
        }
    }
}
