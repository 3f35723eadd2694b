import CallBasics
import Glibc
import SIPTransport
import TestSupport
import Testing

/// The clocks of this machine.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SleepWatchRealTimeTests {
    @Test func `both clocks go on together, and nobody is asleep`() {
        let first = ClockReading.now
        var watch = SleepWatch(from: first)
        pass(.milliseconds(20))
        let second = ClockReading.now
        #expect(second.monotonic - first.monotonic >= .milliseconds(20))
        let difference = (second.boot - first.boot) - (second.monotonic - first.monotonic)
        #expect(difference > .milliseconds(-2) && difference < .milliseconds(2))
        #expect(watch.absence(at: second, due: first.monotonic + .milliseconds(20)) == nil)
    }

    @Test func `timers have the clock that does not count sleep`() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let monotonic = MediaTime.zero + .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        let reading = ClockReading.now
        #expect(reading.monotonic >= monotonic && reading.boot - reading.monotonic > .milliseconds(-1))
    }
}
