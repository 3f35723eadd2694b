/// What one filter has cost so far.
///
/// Time is measured on one tick in `GraphRunner.profilingInterval`, so that measuring stays far below what is measured.
package struct FilterProfile: Sendable, BitwiseCopyable, Equatable {
    /// Ticks in which the filter has run.
    package internal(set) var tickCount = 0
    /// Ticks in which its time was taken.
    package internal(set) var sampleCount = 0
    /// The sum of the times taken, in ns.
    package internal(set) var totalNanoseconds: Int64 = 0
    /// The longest of the times taken, in ns.
    package internal(set) var maximumNanoseconds: Int64 = 0

    /// Adds `tickCount` ticks, of which the last took `nanoseconds`.
    mutating func add(tickCount ticks: Int, nanoseconds: Int64) {
        tickCount &+= ticks
        sampleCount &+= 1
        totalNanoseconds &+= nanoseconds
        maximumNanoseconds = max(maximumNanoseconds, nanoseconds)
    }

    /// The mean of the times taken, in ns.
    package var meanNanoseconds: Double {
        sampleCount == 0 ? 0 : Double(totalNanoseconds) / Double(sampleCount)
    }
}
