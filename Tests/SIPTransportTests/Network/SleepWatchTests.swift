import CallBasics
import SIPTransport
import Testing

/// Two clocks, read by hand.
@Suite struct SleepWatchTests {
    /// What the clocks say, in ms.
    private static func reading(_ monotonic: Int, _ boot: Int) -> ClockReading {
        ClockReading(monotonic: .zero + .milliseconds(monotonic), boot: .zero + .milliseconds(boot))
    }

    /// The clocks start 5 s apart, from an earlier sleep.
    @Test(
        arguments: [
            // monotonic, boot, planned for, absence
            (6000, 11_000, nil, nil),
            (6000, 12_000, nil, nil),
            (6000, 12_001, nil, 1001),
            (5001, 100_000, nil, 89_999),
            // Awake for long is not asleep.
            (900_000, 905_000, nil, nil),
            // Late to a deadline.
            (7000, 12_000, 6000, nil),
            (7001, 12_001, 6000, 1001),
            (6000, 11_000, 9000, nil),
            // Asleep for 2 s, then stopped for 3.
            (9500, 16_500, 6500, 5000),
            // A deadline before the last look was late then already.
            (5900, 10_900, 1000, nil),
            // Clocks that go back are nobody's sleep.
            (4000, 9000, nil, nil),
            (6000, 9000, nil, nil),
        ] as [(Int, Int, Int?, Int?)]
    )
    func `an absence of more than a second is told`(monotonic: Int, boot: Int, due: Int?, absence: Int?) {
        var watch = SleepWatch(from: Self.reading(5000, 10_000))
        let told = watch.absence(
            at: Self.reading(monotonic, boot),
            due: due.map { .zero + .milliseconds($0) }
        )
        #expect(told == absence.map { .milliseconds($0) })
    }

    @Test func `each look begins anew`() {
        var watch = SleepWatch(from: Self.reading(0, 0))
        #expect(watch.absence(at: Self.reading(10, 3010)) == .seconds(3))
        #expect(watch.absence(at: Self.reading(20, 3020)) == nil)
        #expect(watch.absence(at: Self.reading(30, 3830)) == nil)
        #expect(watch.absence(at: Self.reading(40, 4640)) == nil)
    }
}
