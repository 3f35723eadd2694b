import Dispatch
@testable import MediaEngine
import Synchronization
import TestSupport
import Testing

/// Ticks by the wall clock.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime)) struct TimerDriverRealTimeTests {
    private final class Target: TickTarget, @unchecked Sendable {
        let times = Mutex<[(due: MediaTime, late: Duration)]>([])
        private let wanted: Int
        private let isReached = DispatchSemaphore(value: 0)

        /// Waits for `wanted` ticks.
        init(_ wanted: Int) {
            self.wanted = wanted
        }

        func tick(at now: MediaTime, lateness: Duration) {
            let count = times.withLock { times in
                times.append((now, lateness))
                return times.count
            }
            if count == wanted { isReached.signal() }
        }

        func wait() throws {
            try #require(isReached.wait(timeout: .now() + 30) == .success)
        }
    }

    /// Says of one tick that it was due 100 ms ago.
    private final class StallingPacer: TickPacer, @unchecked Sendable {
        private let pacer = DeadlinePacer()
        private var count = 0

        func wait(until deadline: MediaTime, tickDuration: Duration) -> MediaTime {
            count += 1
            let due = pacer.wait(until: deadline, tickDuration: tickDuration)
            return count == 5 ? due - .milliseconds(100) : due
        }
    }

    @Test func `ticks are due exactly one tick apart, and none comes after the end`() throws {
        let target = Target(100)
        let driver = TimerDriver(target, tickDuration: .milliseconds(2))
        try driver.start()
        try target.wait()
        driver.stop()
        let times = target.times.withLock { $0.map(\.due) }
        #expect(driver.statistics.count == times.count)
        let steps = zip(times, times.dropFirst()).map { ($1 - $0).nanoseconds }
        #expect(steps.allSatisfy { $0 > 0 && $0 % 2_000_000 == 0 })
        let other = Target(10)
        let otherDriver = TimerDriver(other, tickDuration: .milliseconds(2))
        try otherDriver.start()
        try other.wait()
        otherDriver.stop()
        #expect(target.times.withLock { $0.count } == times.count)
    }

    @Test func `after a stall the driver skips, counts and goes on`() throws {
        let target = Target(10)
        let driver = TimerDriver(
            target,
            tickDuration: .milliseconds(5),
            pacer: StallingPacer(),
            policy: LatenessPolicy(maximumCatchUp: 2)
        )
        try driver.start()
        try target.wait()
        driver.stop()
        #expect(driver.statistics.skippedCount >= 15)
        #expect(driver.statistics.lateCount >= 1)
        #expect(driver.statistics.lateness.maximum >= .milliseconds(10))
    }

    @Test func `the scheduling that was granted is told`() throws {
        let driver = TimerDriver(Target(1), priority: 10)
        try driver.start()
        driver.stop()
        let scheduling = try #require(driver.scheduling)
        switch scheduling {
        case .realTime(let priority): #expect(priority == 10)
        case .refused: #expect(scheduling.description.contains("ulimit -r"))
        case .normal: Issue.record("real time was asked for")
        }
    }
}
