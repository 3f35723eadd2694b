package import RTP

/// What a jitter buffer did.
package struct JitterBufferStatistics: Sendable, BitwiseCopyable, Equatable {
    /// Packets played.
    package internal(set) var playedCount = 0
    /// Packets that came after their time and were thrown away.
    package internal(set) var lateCount = 0
    /// Packets whose time came and that were not there.
    package internal(set) var missingCount = 0
    /// Packets thrown away because the buffer held too much.
    package internal(set) var discardedCount = 0
    /// Packets that came and that nothing here decodes, when their time came.
    package internal(set) var undecodableCount = 0
    /// Times the buffer started anew because the stream jumped or everything came late.
    package internal(set) var restartCount = 0
    /// Clock-rate units that were invented because a packet was lost or late.
    package internal(set) var concealedDuration = 0
    /// Clock-rate units in which nothing came for longer than sound is invented, though the sender did not pause; what was
    /// lost meanwhile is among it.
    package internal(set) var stalledDuration = 0
    /// Clock-rate units of the present source that were invented, or stalled.
    package internal(set) var interruptedDuration = 0
    /// Times that it was so.
    package internal(set) var interruptionCount = 0
    /// Clock-rate units for which nothing has come, of an outage that has not ended.
    package internal(set) var openDuration = 0
    /// Clock-rate units that the sender left out as silence.
    package internal(set) var comfortDuration = 0
    /// Clock-rate units that turned out to be a pause of the sender: its time stamps went on with the clock, by more
    /// than what packets that are missing beside it held, or it was told otherwise (marker, hold).
    package internal(set) var pausedDuration = 0
    /// Clock-rate units by which sound was shortened.
    package internal(set) var acceleratedDuration = 0
    /// Clock-rate units by which sound was lengthened.
    package internal(set) var expandedDuration = 0
    /// How long the fastest packet is meant to wait; 0 with a fixed delay.
    package internal(set) var targetDelayNanoseconds: Int64 = 0
    /// How long the fastest packet waits; 0 with a fixed delay.
    package internal(set) var playoutDelayNanoseconds: Int64 = 0
    /// How much later than the fastest packet the newest one came; 0 with a fixed delay.
    package internal(set) var arrivalDelayNanoseconds: Int64 = 0

    /// Nothing yet.
    package init() {}

    /// When sound of the present source had to be invented; an outage that has not ended is among it.
    package var interruptions: PlayoutInterruptions {
        let duration = interruptedDuration &+ openDuration
        return PlayoutInterruptions(
            nanoseconds: StreamClock(rate: Playout.timelineRate).nanoseconds(Int64(duration)),
            count: interruptionCount &+ (openDuration > 0 ? 1 : 0)
        )
    }

    /// Another source begins: nothing of it was missing.
    mutating func beginSource() {
        (interruptedDuration, interruptionCount, openDuration) = (0, 0, 0)
    }

    /// Notes that `duration` units were invented in place of sound, or in the middle of what is being invented.
    mutating func noteConcealed(_ duration: Int, begins: Bool) {
        concealedDuration &+= duration
        interruptedDuration &+= duration
        if begins { interruptionCount &+= 1 }
    }

    /// Notes a stall.
    mutating func noteStalled(_ duration: Int) {
        guard duration > 0 else { return }
        stalledDuration &+= duration
        interruptedDuration &+= duration
        interruptionCount &+= 1
    }
}
