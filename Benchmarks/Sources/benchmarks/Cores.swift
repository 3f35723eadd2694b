import CMeasure
import EngineBenchmarks
import Foundation
import Glibc
import LocalMessaging
import SharedCore
import Synchronization

/// Cores in processes that are killed and stopped: how long until the next one owns the lock and runs, and until a
/// message reaches the one who waits for it.
enum Cores {
    private static let killCount = 50
    private static let messageCount = 300
    private static let mainCount = 30
    private static let stoppedCount = 3

    static func measure(_: Options) async throws -> [Figure] {
        var figures = try await ownerKilled()
        figures += try await handOver()
        figures += try await mainStarts()
        return figures
    }

    /// Runs with a new directory, which is removed afterwards.
    static func inDirectory<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appending(path: "cores-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: directory,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try await body(directory)
    }

    // MARK: The owner is killed

    private static func ownerKilled() async throws -> [Figure] {
        var (owned, bare, ran): ([Double], [Double], [Double]) = ([], [], [])
        for _ in 0..<killCount {
            var memory: Int64 = 0
            owned.append(
                try await inDirectory { directory in
                    let owner = try await CorePeer.start(.executor, in: directory)
                    memory = measure_memory(owner, "VmRSS")
                    return try await death(of: owner, in: directory)
                }
            )
            bare.append(
                try await inDirectory { [memory] directory in
                    try await death(of: try await CorePeer.startHolder(memory, in: directory), in: directory)
                }
            )
            ran.append(
                try await inDirectory { directory in
                    let owner = try await CorePeer.start(.executor, in: directory)
                    let service = StartWitness()
                    let waiting = try ExecutorCore(group: GroupContainer(directory: directory), service: service)
                    let push = Task { try await waiting.newMessage(callID: "a") }
                    try await Task.sleep(for: .milliseconds(50))
                    let death = measure_now()
                    kill(owner, SIGKILL)
                    _ = try await push.value
                    measure_stop(owner)
                    await waiting.stop()
                    return Double(service.startedAt - death) / 1e6
                }
            )
        }
        let floor = median(bare)
        return [
            Figure(
                "cores: owner killed, another owns the lock, p50",
                median(owned),
                "ms",
                .atMost(2),
                note: "longest \(Report.number(owned.max() ?? .infinity)) of \(owned.count)"
            ),
            Figure(
                "cores: the same / a process without a core, of as much memory",
                median(owned) / floor,
                note: "its p50 \(Report.number(floor)) ms"
            ),
            figure("cores: owner killed, another core runs, longest", ran, .atMost(50)),
        ]
    }

    /// Kills who holds the lock of a group: until another has it, in ms.
    private static func death(of owner: CInt, in directory: String) async throws -> Double {
        let lock = try CoreLock(group: GroupContainer(directory: directory))
        async let arrival: Int64 = {
            try await lock.wait(for: .writer)
            return measure_now()
        }()
        // Asleep in the kernel by then.
        try await Task.sleep(for: .milliseconds(20))
        let death = measure_now()
        kill(owner, SIGKILL)
        let taken = try await arrival
        measure_stop(owner)
        return Double(taken - death) / 1e6
    }

    private static func median(_ times: [Double]) -> Double {
        let sorted = times.sorted()
        return sorted.isEmpty ? .infinity : sorted[sorted.count / 2]
    }

    // MARK: A message arrives

    private static func handOver() async throws -> [Figure] {
        let times = try await inDirectory { directory in
            let main = try await CorePeer.start(.main, in: directory)
            defer { measure_stop(main) }
            let group = try GroupContainer(directory: directory)
            let service = DeliveringService(delivers: false)
            var times: [Double] = []
            for number in 0..<messageCount {
                let reader = try ExecutorCore(group: group, service: service)
                guard case .message(let claim, .main) = try await reader.newMessage(callID: "\(number)"),
                    let begin = Int64(claim.message.text)
                else { throw Options.Wrong(description: "message \(number) did not come from the main") }
                times.append(Double(measure_now() - begin) / 1e6)
                try await reader.acknowledge(claim)
                await reader.stop()
            }
            return times.sorted()
        }
        let (p50, p99) = (times[times.count / 2], times[times.count * 99 / 100])
        return [
            Figure(
                "cores: message from the running core to its reader's return, p50",
                p50,
                "ms",
                .atMost(5),
                note: "its commit and its claim included; p99 \(Report.number(p99)) of \(times.count)"
            )
        ]
    }

    // MARK: A main starts

    private static func mainStarts() async throws -> [Figure] {
        var (orderly, stopped): ([Double], [Double]) = ([], [])
        for index in 0..<mainCount + stoppedCount {
            let isStopped = index >= mainCount
            let time = try await inDirectory { directory in
                let executor = try await CorePeer.start(.executor, in: directory)
                defer { measure_stop(executor) }
                let group = try GroupContainer(directory: directory)
                let service = DeliveringService(delivers: false)
                let main = try MainCore(group: group, service: service)
                if isStopped { kill(executor, SIGSTOP) }
                let begin = measure_now()
                try await main.start()
                let end = measure_now()
                await main.stop()
                return Double(end - begin) / 1e6
            }
            if isStopped { stopped.append(time) } else { orderly.append(time) }
        }
        let limit = CoreConfiguration().yieldLimit.inMilliseconds
        return [
            figure("cores: main starts, executor ends in order, longest", orderly, .atMost(250)),
            figure("cores: main starts, executor under SIGSTOP, longest", stopped, .atMost(3500)),
            figure(
                "cores: main starts, after the end of that executor, longest",
                stopped.map { $0 - limit },
                .atMost(250)
            ),
        ]
    }

    /// The longest of some times, with their median.
    private static func figure(_ name: String, _ times: [Double], _ limit: Figure.Limit) -> Figure {
        Figure(
            name,
            times.max() ?? .infinity,
            "ms",
            limit,
            note: "p50 \(Report.number(median(times))) of \(times.count)"
        )
    }
}

/// A service that remembers when it was set to work, and delivers the message "a".
private final class StartWitness: CoreService {
    private struct State {
        var startedAt: Int64 = 0
        var context: CoreContext?
    }

    private let state = Mutex(State())

    var startedAt: Int64 { state.withLock { $0.startedAt } }

    func start(_ context: CoreContext) async { state.withLock { $0.context = context } }

    func fetchPending() async throws {
        let context = state.withLock { state in
            state.startedAt = measure_now()
            return state.context
        }
        try await context?.deliver(IncomingMessage(callID: "a", sender: "witness", text: "text"))
    }

    func run() async throws { try await Task.sleep(for: .seconds(60)) }
    func perform(_ action: MessageAction) async {}
    func stop() async {}
}
