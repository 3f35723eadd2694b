/// The clock that a stream's time stamps count, against nanoseconds: seconds apart, so that nothing overflows however long
/// a stream lasts.
struct StreamClock: BitwiseCopyable {
    /// Units per second.
    let rate: Int64

    init(rate: Int) {
        self.rate = Int64(rate)
    }

    func nanoseconds(_ units: Int64) -> Int64 {
        // Up to two days at 48 kHz one division does.
        if units.magnitude < 1 << 33 { return units &* 1_000_000_000 / rate }
        return units / rate &* 1_000_000_000 &+ units % rate &* 1_000_000_000 / rate
    }

    func units(_ nanoseconds: Int64) -> Int64 {
        nanoseconds / 1_000_000_000 &* rate &+ nanoseconds % 1_000_000_000 &* rate / 1_000_000_000
    }
}
