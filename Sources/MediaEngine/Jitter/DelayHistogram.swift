/// How often packets came how late, with older ones forgotten little by little.
///
/// At first all count the same. When there are enough, each packet counts a little more than the one before, instead of
/// shrinking every bucket, so that an update touches one bucket and the quantiles' neighbours.
/// Shape: 256 buckets of `bucketWidth`; what is later goes into the last.
/// Units: nanoseconds.
/// Thread: one at a time; nothing allocates after `init`.
struct DelayHistogram: ~Copyable {
    /// A share of the packets, and the bucket up to which they are.
    private struct Quantile: BitwiseCopyable {
        let rest: Double
        var position = 0
        /// The weight of the buckets above `position`.
        var above = 0.0

        init(share: Double) {
            rest = 1 - share
        }

        /// Moves to where the rest of `total` lies above.
        mutating func settle(_ buckets: UnsafeMutablePointer<Float>, total: Double) {
            let limit = rest * total
            while above > limit, position < DelayHistogram.bucketCount &- 1 {
                position &+= 1
                above -= Double(buckets[position])
            }
            while position > 0, above + Double(buckets[position]) <= limit {
                above += Double(buckets[position])
                position &-= 1
            }
        }
    }

    /// The width of a bucket.
    static var bucketWidth: Int64 { 2_500_000 }
    static var bucketCount: Int { 256 }
    /// The weight at which everything is scaled down, far from the end of a `Float`.
    private static var largestWeight: Double { 1e12 }

    private let buckets: UnsafeMutablePointer<Float>
    private let memory: Double
    private var weight = 1.0
    private var total = 0.0
    private var high: Quantile
    private var common: Quantile

    /// A histogram that forgets over about `memory` packets, and that expects `prior` before it has seen any.
    ///
    /// - Parameters:
    ///   - memory: Packets after which one counts e times less.
    ///   - prior: The delay that is expected at first.
    ///   - high: The share of the packets for `highDelay`.
    ///   - common: The share of the packets for `commonDelay`.
    init(memory: Int, prior: Int64, high: Double, common: Double) {
        self.memory = Double(memory)
        self.high = Quantile(share: high)
        self.common = Quantile(share: common)
        buckets = .allocate(capacity: Self.bucketCount)
        buckets.initialize(repeating: 0, count: Self.bucketCount)
        add(prior, weight: 0.1)
    }

    deinit {
        buckets.deallocate()
    }

    /// The delay that a large share of the packets does not exceed.
    var highDelay: Int64 { Self.delay(high.position) }

    /// The delay that a common share of the packets does not exceed.
    var commonDelay: Int64 { Self.delay(common.position) }

    /// Counts a packet that came `delay` after the fastest one.
    mutating func add(_ delay: Int64) {
        weight = max(weight, total / (memory - 1))
        add(delay, weight: weight)
        if weight > Self.largestWeight { scaleDown() }
    }

    private mutating func add(_ delay: Int64, weight: Double) {
        let bucket = Int(min(max(0, delay) / Self.bucketWidth, Int64(Self.bucketCount &- 1)))
        buckets[bucket] += Float(weight)
        total += weight
        if bucket > high.position { high.above += weight }
        if bucket > common.position { common.above += weight }
        high.settle(buckets, total: total)
        common.settle(buckets, total: total)
    }

    /// Moves everything down by `delay`: the fastest packet has become slower by that.
    mutating func shiftDown(_ delay: Int64) {
        let shift = Int(min(delay / Self.bucketWidth, Int64(Self.bucketCount &- 1)))
        guard shift > 0 else { return }
        for index in 1...shift { buckets[0] += buckets[index] }
        for index in 1..<Self.bucketCount {
            buckets[index] = index &+ shift < Self.bucketCount ? buckets[index &+ shift] : 0
        }
        recount()
    }

    private mutating func scaleDown() {
        let scale = Float(1 / weight)
        for index in 0..<Self.bucketCount { buckets[index] *= scale }
        weight = 1
        recount()
    }

    private mutating func recount() {
        total = 0
        for index in 0..<Self.bucketCount { total += Double(buckets[index]) }
        high.position = 0
        high.above = total - Double(buckets[0])
        common.position = 0
        common.above = high.above
        high.settle(buckets, total: total)
        common.settle(buckets, total: total)
    }

    /// The upper edge of a bucket; the first one stands for no delay.
    private static func delay(_ bucket: Int) -> Int64 { bucket == 0 ? 0 : Int64(bucket &+ 1) &* bucketWidth }
}
