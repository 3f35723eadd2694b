@testable import MediaEngine
import Testing

@Suite struct TickStatisticsTests {
    @Test func `by hand, ticks run in virtual time and none is late`() {
        final class Target: TickTarget, @unchecked Sendable {
            var times: [MediaTime] = []
            var isIdle: Bool { false }
            func tick(at now: MediaTime, lateness: Duration) { times.append(now) }
            func obey() {}
        }
        let target = Target()
        let driver = ManualDriver(target)
        driver.advance(by: .seconds(1))
        #expect(target.times.count == 100)
        #expect(target.times.last == MediaTime(nanoseconds: 990_000_000))
        #expect(driver.statistics.count == 100 && driver.statistics.lateCount == 0)
    }
}
