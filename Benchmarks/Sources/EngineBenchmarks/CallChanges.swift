import CMeasure
import Glibc
@testable import MediaEngine

/// How fast calls are made and ended beside a thousand others, and what those notice.
enum CallChanges {
    private static let running = 1000
    private static let changes = 500
    /// Tasks that make and end calls at the same time.
    private static let taskCount = 8

    static func measure(_ options: Options) async throws -> [Figure] {
        var best = (made: 0.0, ended: 0.0, alone: 0.0, p99: Double.infinity)
        for _ in 0..<options.repetitions {
            let alone = try await run(beside: 0)
            let beside = try await run(beside: running)
            if beside.made + beside.ended > best.made + best.ended {
                best = (beside.made, beside.ended, alone.made, beside.p99)
            }
        }
        return [
            Figure(
                "calls: made a second, beside \(running)",
                best.made,
                "/s",
                .atLeast(500),
                note: "beside none \(Report.number(best.alone)) /s; \(taskCount) tasks"
            ),
            Figure("calls: ended a second, beside \(running)", best.ended, "/s", .atLeast(500)),
            Figure("calls: p99 of the ticks' lateness, from the first call on", best.p99, "ms", .atMost(1)),
        ]
    }

    private static func run(beside count: Int) async throws -> (made: Double, ended: Double, p99: Double) {
        let engine = try CallEngine(CallEngineConfiguration())
        _ = try await engine.makeCalls((0..<count / 2).flatMap { pair("others \($0)") })
        sleep(1)
        let calls = (0..<changes).map { pair("call \($0)")[0] }
        let start = measure_now()
        let made = try await withThrowingTaskGroup(of: [Call].self) { group in
            for task in 0..<taskCount {
                group.addTask {
                    var made: [Call] = []
                    for index in stride(from: task, to: changes, by: taskCount) {
                        made.append(try await engine.makeCall(calls[index]))
                    }
                    return made
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let between = measure_now()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<taskCount {
                group.addTask {
                    for index in stride(from: task, to: changes, by: taskCount) { try await made[index].end() }
                }
            }
            try await group.waitForAll()
        }
        let end = measure_now()
        let p99 = engine.tickStatistics.lateness.quantile(0.99).inMilliseconds
        await engine.shutDown()
        return (rate(from: start, to: between), rate(from: between, to: end), p99)
    }

    private static func rate(from start: Int64, to end: Int64) -> Double { Double(changes) * 1e9 / Double(end - start) }

    /// Two calls that hear each other's silence, without sockets.
    private static func pair(_ name: String) -> [CallConfiguration] {
        let (left, right) = MemoryLink.pair()
        return [(left, right), (right, left)].map { own, other in
            var call = CallConfiguration(network: .link(own, local: own.localAddress))
            call.name = name
            call.agreement.codec = "PCMU"
            call.agreement.remote = other.localAddress
            call.source = .silence
            call.sink = .none
            return call
        }
    }
}
