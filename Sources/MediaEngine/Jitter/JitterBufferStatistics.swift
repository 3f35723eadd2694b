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
    /// Times the buffer started anew because the stream jumped or everything came late.
    package internal(set) var restartCount = 0
    /// Clock-rate units that were invented because a packet was lost or late.
    package internal(set) var concealedDuration = 0
    /// Clock-rate units that the sender left out as silence.
    package internal(set) var comfortDuration = 0
    /// Clock-rate units that turned out to be a pause of the sender: its time stamps went on, its numbers did not.
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
}
