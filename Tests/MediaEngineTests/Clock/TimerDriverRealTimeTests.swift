import Dispatch
@testable import MediaEngine
import Synchronization
import TestSupport
import Testing

/// Ticks by the wall clock.
@Suite(.serialized, .timeLimit(.minutes(2)), .tags(.realtime), .onSteadyMachine) struct TimerDriverRealTimeTests {
    private final class Target: TickTarget, @unchecked Sendable {
        let times = Mutex<[(due: MediaTime, late: Duration)]>([])
        /// Half of the smallest normal number.
        let tiny = Mutex<Float?>(nil)
        var isIdle: Bool { false }
        private let wanted: Int
        private let isReached = DispatchSemaphore(value: 0)

        /// Waits for `wanted` ticks.
        init(_ wanted: Int) {
            self.wanted = wanted
        }

        func tick(at now: MediaTime, lateness: Duration) {
            let half = Float(wanted) / Float(2 * wanted)
            tiny.withLock { $0 = Float.leastNormalMagnitude * half }
            let count = times.withLock { times in
                times.append((now, lateness))
                return times.count
            }
            if count == wanted { isReached.signal() }
        }

        func obey() {}

        func wait() throws {
            try #require(isReached.wait(timeout: .now() + 30) == .success)
        }
    }

    /// Says of the fifth tick that it was due so long ago.
    private final class StallingPacer: TickPacer, @unchecked Sendable {
        private let pacer = DeadlinePacer()
        private let stall: Duration
        private var count = 0

        init(_ stall: Duration) {
            self.stall = stall
        }

        func wait(until deadline: MediaTime, tickDuration: Duration, _ sleeper: Sleeper) -> MediaTime {
            count += 1
            let due = pacer.wait(until: deadline, tickDuration: tickDuration, sleeper)
            return count == 5 ? due - stall : due
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

    @Test func `what is too small to be heard is zero on the thread of ticks`() throws {
        let target = Target(1)
        let driver = TimerDriver(target, tickDuration: .milliseconds(2))
        try driver.start()
        try target.wait()
        driver.stop()
        #expect(target.tiny.withLock(\.self) == 0)
    }

    @Test func `every tick that a stall delayed is made up, and the next ones are in time`() throws {
        let target = Target(100)
        let driver = TimerDriver(
            target,
            tickDuration: .milliseconds(5),
            pacer: StallingPacer(.milliseconds(200)),
            policy: LatenessPolicy(),
            priority: TimerDriver.defaultPriority,
            name: "test"
        )
        try driver.start()
        try target.wait()
        driver.stop()
        let ticks = target.times.withLock { $0 }
        #expect(driver.statistics.skippedCount == 0)
        #expect(driver.statistics.lateness.maximum >= .milliseconds(200))
        // The fifth is due 200 ms before it runs, and those behind it one tick after the other.
        let steps = zip(ticks.dropFirst(5), ticks.dropFirst(6)).map { ($1.due - $0.due).nanoseconds }
        #expect(steps.allSatisfy { $0 == 5_000_000 })
        #expect(ticks[5].late >= .milliseconds(200))
        let late = ticks.dropFirst(5).prefix { $0.late >= .milliseconds(5) }.count
        #expect((35...60).contains(late), "\(late)")
    }

    @Test func `what cannot be made up is skipped and counted`() throws {
        let target = Target(10)
        let driver = TimerDriver(
            target,
            tickDuration: .milliseconds(5),
            pacer: StallingPacer(.milliseconds(100)),
            policy: LatenessPolicy(longestBacklog: .milliseconds(10)),
            priority: TimerDriver.defaultPriority,
            name: "test"
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
