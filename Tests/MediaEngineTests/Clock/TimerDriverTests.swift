import Glibc
import MediaEngine
import Synchronization
import Testing

@Suite struct LatenessTests {
    @Test func `quantiles lie within a quarter of an octave`() {
        var histogram = LatenessHistogram()
        for microseconds in 1...1000 { histogram.add(.microseconds(microseconds)) }
        #expect(histogram.maximum == .milliseconds(1))
        for share in [0.1, 0.5, 0.9, 0.99] {
            let found = histogram.quantile(share).milliseconds * 1000
            #expect(found >= share * 1000 && found <= share * 1000 * 1.26)
        }
        #expect(LatenessHistogram().quantile(0.99) == .zero)
        histogram.add(.seconds(100))
        #expect(histogram.quantile(1) == .seconds(100))
    }

    @Test(arguments: [(0, 0), (1, 0), (4, 0), (5, 1), (1000, 996)])
    func `after a stall a few ticks run and the rest is skipped`(
        behind: Int,
        skipped: Int
    ) {
        #expect(LatenessPolicy(maximumCatchUp: 4).skippedTicks(behind: behind) == skipped)
    }
}

/// Ticks by the wall clock.
@Suite(.tags(.realtime), .serialized) struct TimerDriverTests {
    private final class Target: TickTarget, @unchecked Sendable {
        let times = Mutex<[(due: MediaTime, late: Duration)]>([])
        let stallAtTick: Int?

        init(stallAtTick: Int? = nil) {
            self.stallAtTick = stallAtTick
        }

        func tick(at now: MediaTime, lateness: Duration) {
            let count = times.withLock { times in
                times.append((now, lateness))
                return times.count
            }
            if count == stallAtTick { usleep(100_000) }
        }
    }

    @Test func `ticks are due exactly one tick apart`() async throws {
        let target = Target()
        let driver = TimerDriver(target, tickDuration: .milliseconds(2))
        try driver.start()
        try await Task.sleep(for: .milliseconds(200))
        driver.stop()
        let times = target.times.withLock { $0.map(\.due) }
        #expect(times.count > 20)
        #expect(driver.statistics.count == times.count)
        let steps = zip(times, times.dropFirst()).map { ($1 - $0).nanoseconds }
        #expect(steps.allSatisfy { $0 % 2_000_000 == 0 })
        let count = times.count
        try await Task.sleep(for: .milliseconds(20))
        #expect(target.times.withLock { $0.count } == count)
    }

    @Test func `after a stall the driver skips, counts and goes on`() async throws {
        let target = Target(stallAtTick: 5)
        let driver = TimerDriver(target, tickDuration: .milliseconds(5), policy: LatenessPolicy(maximumCatchUp: 2))
        try driver.start()
        try await Task.sleep(for: .milliseconds(300))
        driver.stop()
        #expect(driver.statistics.skippedCount >= 15)
        #expect(driver.statistics.lateCount >= 1)
        #expect(driver.statistics.lateness.maximum >= .milliseconds(10))
    }

    @Test func `the scheduling that was granted is told`() async throws {
        let driver = TimerDriver(Target(), priority: 10)
        try driver.start()
        try await Task.sleep(for: .milliseconds(50))
        driver.stop()
        let scheduling = try #require(driver.scheduling)
        switch scheduling {
        case .realTime(let priority): #expect(priority == 10)
        case .refused: #expect(scheduling.description.contains("ulimit -r"))
        case .normal: Issue.record("real time was asked for")
        }
    }
}
