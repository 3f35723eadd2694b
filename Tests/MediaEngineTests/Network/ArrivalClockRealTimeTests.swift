@testable import MediaEngine
import TestSupport
import Testing

/// Stamps of the kernel are in wall time, which may be set at any moment.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct ArrivalClockRealTimeTests {
    private static let hour: Int64 = 3_600_000_000_000

    @Test func `a stamp becomes the instant at which it was made`() {
        let clock = ArrivalClock()
        let before = MonotonicClock.current
        let stamp = MonotonicClock.wallNow
        let after = MonotonicClock.current
        let arrival = clock.arrival(stamp, in: before, after: before - .seconds(1))
        #expect(arrival >= before - .milliseconds(1) && arrival <= after + .milliseconds(1))
    }

    @Test func `a wall clock that was set between stamp and look moves no arrival`() {
        let now = MonotonicClock.current
        let lastEmpty = now - .milliseconds(10)
        for step in [-Self.hour, -1_000_000_000, 1_000_000_000, Self.hour] {
            let arrival = ArrivalClock().arrival(MonotonicClock.wallNow - step, in: now, after: lastEmpty)
            #expect(arrival >= lastEmpty, "after a step of \(step) ns")
            #expect(arrival <= MonotonicClock.current + .milliseconds(20), "after a step of \(step) ns")
        }
    }

    @Test func `the clocks are compared anew in each tick, and once for all sockets`() {
        let clock = ArrivalClock()
        let now = MonotonicClock.current
        let stamp = MonotonicClock.wallNow
        let first = clock.arrival(stamp, in: now, after: .zero)
        for _ in 0..<100 { #expect(clock.arrival(stamp, in: now, after: .zero) == first) }
        let next = clock.arrival(stamp, in: now + .milliseconds(10), after: .zero)
        #expect(abs((next - first).nanoseconds) < 1_000_000)
    }
}
