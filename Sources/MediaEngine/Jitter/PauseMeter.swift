import CallBasics

/// Tells silence that the sender left out (DTX, silence suppression, hold) from a sender that stood still, and from one that
/// set its clock: in a pause time stamps move as far as the clock.
///
/// Some clocks stand in a pause. Then the marker of the packet behind it tells that it was one (RFC 3551, section 4.1), or
/// that nothing was to come meanwhile: a hold that was signalled, a goodbye.
///
/// Units: durations and places in units of the time line's rate.
/// Thread: media.
struct PauseMeter {
    /// By so many nanoseconds more than the time that passed a pause may be told: the packet before it may have come late.
    private static var tolerance: Int64 { 200_000_000 }

    private var end: Int64 = 0
    private var arrival = MediaTime.zero
    /// Until when nothing was to come, the last time that it was so.
    private var meantUntil = MediaTime.zero
    /// Whether the sender leaves out silence: one that has paused may do so again.
    private(set) var hasPaused = false

    /// A packet that came at `arrival` was played or thrown away; it ends at `end`.
    mutating func passed(until end: Int64, _ arrival: MediaTime) {
        (self.end, self.arrival) = (end, arrival)
    }

    /// Nothing is to come at `now`.
    mutating func noteMeant(at now: MediaTime) { meantUntil = now }

    /// Whether something was to come ever since the packet passed last.
    var isExpecting: Bool { meantUntil <= arrival }

    /// How long nothing has come at `now`, since the packet passed last or since something was to come again.
    func openSilence(at now: MediaTime, packetDuration: Int64, _ clock: StreamClock) -> Int64 {
        let start = max(arrival.nanoseconds &+ clock.nanoseconds(packetDuration), meantUntil.nanoseconds)
        return clock.units(now.nanoseconds &- start)
    }

    /// How long the sender paused between the packet passed last and `next`; packets of `missing` units in all never came.
    mutating func notePause(
        before next: PacketStore.Entry,
        missing: Int64,
        packetDuration: Int64,
        _ clock: StreamClock
    ) -> Int {
        let paused = pause(before: next, missing: missing, packetDuration: packetDuration, clock)
        // Less may be a clock that was set, or packets of another length.
        if paused >= clock.units(Self.tolerance), isExpecting { hasPaused = true }
        return paused
    }

    private func pause(
        before next: PacketStore.Entry,
        missing: Int64,
        packetDuration: Int64,
        _ clock: StreamClock
    ) -> Int {
        let told = next.timestamp &- end &- missing
        let elapsed = silence(before: next, packetDuration, clock) &- missing
        let tolerance = clock.units(Self.tolerance)
        var paused = told &- elapsed > tolerance ? elapsed : told
        let meant = isExpecting ? 0 : min(clock.units(meantUntil.nanoseconds(since: arrival)), elapsed)
        let known = next.header.isMarked ? elapsed : meant
        if known &- paused > tolerance { paused = known }
        // Half a packet is what time stamps are rounded by.
        return paused > packetDuration / 2 ? Int(paused) : 0
    }

    /// How long nothing came before `next` though the sender did not pause: packets that never came, and a stall.
    func stall(before next: PacketStore.Entry, missing: Int64, packetDuration: Int64, _ clock: StreamClock) -> Int {
        let paused = pause(before: next, missing: missing, packetDuration: packetDuration, clock)
        let silent = max(silence(before: next, packetDuration, clock) &- Int64(paused), 0)
        let lost = min(missing, silent)
        let stalled = silent &- lost
        return Int(stalled > clock.units(Self.tolerance) ? silent : lost)
    }

    /// The time in which nothing came.
    private func silence(before next: PacketStore.Entry, _ packetDuration: Int64, _ clock: StreamClock) -> Int64 {
        clock.units(next.header.arrival.nanoseconds(since: arrival)) &- packetDuration
    }
}
