import CallBasics

/// What of the time in which sound was invented was the sender's silence, and what was missing.
extension JitterBuffer {
    /// Packets that stop for longer, without a goodbye or a hold, are an outage even before they come again.
    ///
    /// Senders that leave out silence may stop for as long; of those it is not known before.
    private static var shortestOutage: Int64 { 3_000_000_000 }

    /// What packets hold that are missing before `next`, or that nothing here decodes.
    func missing(before next: PacketStore.Entry) -> Int64 {
        (timeline.missingCount(before: next.sequence) &+ timeline.undecodableCount) &* packetDuration
    }

    /// Counts what was invented as loss, or as silence that the sender left out; what is beyond a loss is silence, too.
    func settleInvented(isLoss: Bool, atMost longest: Int64 = .max) {
        let lost = isLoss ? min(invented, longest) : 0
        noteConcealed(lost)
        counters.comfortDuration &+= Int(invented &- lost)
        invented = 0
    }

    /// Counts what was invented in place of sound: one interruption, however many parts it has.
    func noteConcealed(_ duration: Int64) {
        guard duration > 0 else { return }
        counters.noteConcealed(Int(duration), begins: !isInterrupted)
        isInterrupted = true
    }

    /// Takes note that a lost packet was not in its successor after all.
    func recoveryFailed(duration: Int) { noteConcealed(Int64(duration)) }

    /// Counts what lies between the packet passed last and `next` as a pause of the sender, but for what missing packets
    /// held.
    ///
    /// - Returns: How long it was.
    @discardableResult
    func notePause(before next: PacketStore.Entry) -> Int {
        guard timeline.hasPlayed else { return 0 }
        let missing = missing(before: next)
        let paused = pauses.notePause(before: next, missing: missing, packetDuration: packetDuration, clock)
        counters.pausedDuration &+= paused
        return paused
    }

    /// Counts the time in which nothing came as a stall, after a silence that ended the stream, but for a pause of the sender.
    func noteStall(before next: PacketStore.Entry) {
        counters.openDuration = 0
        guard timeline.hasPlayed else { return }
        let missing = missing(before: next)
        counters.noteStalled(pauses.stall(before: next, missing: missing, packetDuration: packetDuration, clock))
    }

    /// Watches, once a tick, for silence of the sender: while it is meant it is a pause; otherwise, and when it goes on, an
    /// outage, which counts before it ends.
    ///
    /// - Parameters:
    ///   - now: The tick's start.
    ///   - expected: What is to come.
    /// - Returns: Whether the statistics have changed.
    func watchSilence(at now: MediaTime, expecting expected: ExpectedMedia) -> Bool {
        if expected == .nothing { pauses.noteMeant(at: now) }
        guard state == .waiting, timeline.hasPlayed, store.count == 0 else { return false }
        if expected == .nothing {
            // The outage so far ends here and counts; the rest is meant.
            let missed = counters.openDuration
            counters.openDuration = 0
            counters.noteStalled(missed)
            return missed > 0
        }
        guard expected == .sound, !timeline.isSoundPaused, !pauses.hasPaused else { return false }
        let open = Int(pauses.openSilence(at: now, packetDuration: packetDuration, clock))
        // Not in each tick: who reads it copies all.
        guard open >= clock.units(Self.shortestOutage), open &- counters.openDuration >= clock.rate / 10 else {
            return false
        }
        counters.openDuration = open
        return true
    }
}
