import CallBasics

/// How much the sound that waits is to be lengthened or shortened, and what became of that.
extension JitterBuffer {
    /// By how many units the sound that waits is to grow (above 0) or shrink (below 0).
    func wishedStretch(at now: MediaTime, pending: Int) -> Int {
        guard state == .playing, fixed == nil else { return 0 }
        let current = delay(at: now) &+ clock.nanoseconds(Int64(pending))
        counters.playoutDelayNanoseconds = current
        guard !isConcealing else { return 0 }
        // Where nothing waits, the sound is not to end before as late a packet as the last one could have come.
        let needed = store.count > 0 ? target.delay : max(target.delay, playedLateness)
        return Int(clock.units(demand.wish(surplus: current &- needed)))
    }

    /// Whether so much waits too long that sound may be shortened less carefully.
    func isUrgent(_ stretch: Int) -> Bool { abs(clock.nanoseconds(Int64(stretch))) > 60_000_000 }

    /// Hears that the sound that waits has grown by `units`, or shrunk when below 0.
    func stretched(by units: Int) {
        if units > 0 {
            counters.expandedDuration &+= units
            demand.lengthened(by: clock.nanoseconds(Int64(units)))
        } else {
            counters.acceleratedDuration &-= units
        }
    }
}
