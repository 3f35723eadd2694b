package import CallBasics

/// What a playout did.
package struct PlayoutStatistics: Sendable, BitwiseCopyable, Equatable {
    /// The jitter buffer's own counters.
    package internal(set) var buffer = JitterBufferStatistics()
    /// Packets that were taken, whatever became of them.
    package internal(set) var insertedCount = 0
    /// Packets rebuilt from the copy in their successor.
    package internal(set) var recoveredCount = 0
    /// Frames made by the decoder without a packet: what replaces loss, and comfort noise.
    package internal(set) var inventedFrameCount = 0
    /// Those of them that are comfort noise, where the sender left out sound.
    package internal(set) var comfortFrameCount = 0
    /// Packets whose payload the decoder refused.
    package internal(set) var corruptCount = 0
    /// Frames invented in place of packets that were lost, late or corrupt.
    package internal(set) var concealedFrameCount = 0
    /// Frames left out, because too much waited.
    package internal(set) var shortenedFrameCount = 0
    /// Frames added, to wait for longer.
    package internal(set) var lengthenedFrameCount = 0
    /// Frames played in all, silence before the first packet not among them.
    package internal(set) var playedFrameCount = 0
    /// Packets of comfort noise (RFC 3389) that were played.
    package internal(set) var comfortNoiseCount = 0
    /// Times that the sender changed to another codec.
    package internal(set) var codecChangeCount = 0
    /// Times that the sender set its clock: time stamps that leapt while numbers went on.
    package internal(set) var leapCount = 0
    /// The sum of the waits of all packets played, from arrival to sound.
    package internal(set) var totalWaitNanoseconds: Int64 = 0
    /// When the packet that was played last began to sound.
    package internal(set) var lastPlayTime = MediaTime.zero
    /// When the packet that was played last has sounded to its end.
    package internal(set) var lastPlayEnd = MediaTime.zero
    /// The timestamp of the packet that was played last.
    package internal(set) var lastPlayTimestamp: UInt32 = 0
    /// The sequence number of the packet that was played last.
    package internal(set) var lastPlaySequenceNumber: UInt16 = 0
    /// Packets played with the RTP marker: the first ones after a silence.
    package internal(set) var markedCount = 0
    /// Whether any packet has been played.
    package var hasPlayed: Bool { buffer.playedCount > 0 }

    /// Nothing yet.
    package init() {}

    /// Counts frames of another sample rate from now on.
    mutating func rescale(from former: Int, to rate: Int) {
        func scaled(_ count: Int) -> Int { count &* rate / former }
        inventedFrameCount = scaled(inventedFrameCount)
        comfortFrameCount = scaled(comfortFrameCount)
        concealedFrameCount = scaled(concealedFrameCount)
        shortenedFrameCount = scaled(shortenedFrameCount)
        lengthenedFrameCount = scaled(lengthenedFrameCount)
        playedFrameCount = scaled(playedFrameCount)
    }

    /// The mean wait of the packets played, from arrival to sound; zero before the first.
    package var meanWait: Duration {
        buffer.playedCount == 0 ? .zero : .nanoseconds(totalWaitNanoseconds / Int64(buffer.playedCount))
    }
}
