package import CallBasics

/// Measures by how much a clock that counts frames runs fast or slow, from looks at it that come when they come.
///
/// Every look gives a time and how many frames the other clock has counted; the estimate is the slope of a line through
/// all looks, those of long ago counting less. A look that lies far from the line is pulled towards it, so that single
/// late wake-ups do not move the slope.
/// Pure: the present time is an argument. Units: parts per million; positive is fast.
package struct RateEstimator: Sendable, BitwiseCopyable {
    private let nominalRate: Double
    private let memory: Double
    private var isBased = false
    private var mustRebase = false
    private var origin = MediaTime.zero
    private var originFrames: Int64 = 0
    private var offset = 0.0
    private var age = 0.0
    private var lastTime = 0.0
    // A weighted line: means and moments of time (s) and of the deviation (frames) from the nominal rate.
    private var weight = 0.0
    private var meanTime = 0.0
    private var meanDeviation = 0.0
    private var timeMoment = 0.0
    private var crossMoment = 0.0
    private var scatter = 0.0

    /// An estimator that has seen nothing.
    ///
    /// - Parameters:
    ///   - nominalRate: Frames per second that the clock should count.
    ///   - memory: After how long a look counts only a third.
    package init(nominalRate: Int, memory: Duration = .seconds(60)) {
        self.nominalRate = Double(nominalRate)
        self.memory = Double(memory.nanoseconds) / 1e9
    }

    /// The deviation from the nominal rate; nil before three seconds were seen.
    package var ppm: Double? {
        guard age >= Self.shortestAge else { return nil }
        return slope / nominalRate * 1e6
    }

    /// Takes a look: at `time` the clock had counted `frames` since some beginning.
    package mutating func observe(frames: Int64, at time: MediaTime) {
        guard isBased else { return begin(frames, time) }
        let now = Double(time.nanoseconds &- origin.nanoseconds) / 1e9
        let elapsed = now - lastTime
        var deviation = Double(frames &- originFrames) - nominalRate * now - offset
        let predicted = meanDeviation + slope * (now - meanTime)
        if mustRebase {
            mustRebase = false
            offset += deviation - predicted
            lastTime = now
            return
        }
        guard elapsed > 0 else { return }
        guard elapsed < memory else {
            // Nothing that was seen counts any more.
            self = RateEstimator(copyingSetupOf: self)
            return begin(frames, time)
        }
        lastTime = now
        age += elapsed
        let residual = deviation - predicted
        if age > Self.shortestAge {
            let bound = max(Self.clipFactor * scatter, 1)
            deviation = predicted + min(max(residual, -bound), bound)
        }
        let share = min(1, max(elapsed, 0.02))
        scatter += (min(abs(residual), 8 * scatter + 1) - scatter) * share

        let kept = 1 - elapsed / memory
        weight = weight * kept + 1
        let timeStep = now - meanTime
        meanTime += timeStep / weight
        meanDeviation += (deviation - meanDeviation) / weight
        timeMoment = timeMoment * kept + timeStep * (now - meanTime)
        crossMoment = crossMoment * kept + timeStep * (deviation - meanDeviation)
    }

    /// Says that the count of the next look does not continue that of the last: frames were lost or invented.
    ///
    /// The rate that was measured so far remains.
    package mutating func rebase() {
        if age < Self.shortestAge { self = RateEstimator(copyingSetupOf: self) } else { mustRebase = true }
    }

    private var slope: Double { timeMoment > 0 ? crossMoment / timeMoment : 0 }

    private init(copyingSetupOf other: RateEstimator) {
        nominalRate = other.nominalRate
        memory = other.memory
    }

    private mutating func begin(_ frames: Int64, _ time: MediaTime) {
        isBased = true
        origin = time
        originFrames = frames
        weight = 1
    }

    private static var shortestAge: Double { 3 }
    private static var clipFactor: Double { 4 }
}
