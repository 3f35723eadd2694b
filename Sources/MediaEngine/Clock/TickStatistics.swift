import CallBasics

/// How punctual the ticks were.
package struct TickStatistics: Sendable, BitwiseCopyable {
    /// Ticks that ran.
    package internal(set) var count = 0
    /// Ticks that started later than half a tick after their time.
    package internal(set) var lateCount = 0
    /// Ticks that never ran because the driver was too far behind.
    package internal(set) var skippedCount = 0
    /// How late each tick started.
    package internal(set) var lateness = LatenessHistogram()

    /// No ticks.
    package init() {}

    mutating func record(lateness duration: Duration, tickDuration: Duration) {
        count &+= 1
        if duration > tickDuration / 2 { lateCount &+= 1 }
        lateness.add(duration)
    }
}

/// Counts of latenesses in steps that grow by a quarter of an octave, from 1 µs to 33 s.
package struct LatenessHistogram: Sendable, BitwiseCopyable {
    private static var bucketsPerOctave: Int { 4 }
    private static var bucketCount: Int { 96 }

    private var counts = InlineArray<96, UInt32>(repeating: 0)
    private var total = 0
    private var longest: Int64 = 0

    /// An empty histogram.
    package init() {}

    /// The longest lateness seen.
    package var maximum: Duration { .nanoseconds(longest) }

    /// The lateness that `share` (0 to 1) of the ticks did not exceed, to a quarter of an octave; zero when empty.
    package func quantile(_ share: Double) -> Duration {
        guard total > 0 else { return .zero }
        let wanted = Int((Double(total) * share).rounded(.up))
        var seen = 0
        for bucket in 0..<Self.bucketCount {
            seen += Int(counts[bucket])
            if seen >= wanted, bucket < Self.bucketCount - 1 { return min(Self.upperEdge(of: bucket), maximum) }
        }
        return maximum
    }

    /// Counts one lateness.
    package mutating func add(_ lateness: Duration) {
        let nanoseconds = max(lateness.nanoseconds, 0)
        total &+= 1
        longest = max(longest, nanoseconds)
        counts[Self.bucket(of: nanoseconds)] &+= 1
    }

    private static func bucket(of nanoseconds: Int64) -> Int {
        let microseconds = UInt64(nanoseconds) / 1000
        guard microseconds >= 4 else { return Int(microseconds) }
        let octave = 63 &- microseconds.leadingZeroBitCount
        let quarter = Int(microseconds &>> UInt64(octave &- 2)) & 3
        return min((octave &- 1) &* bucketsPerOctave &+ quarter, bucketCount &- 1)
    }

    private static func upperEdge(of bucket: Int) -> Duration {
        guard bucket >= 4 else { return .microseconds(bucket + 1) }
        let octave = bucket / bucketsPerOctave + 1
        let quarter = bucket % bucketsPerOctave
        return .microseconds((5 + quarter) << (octave - 2))
    }
}
