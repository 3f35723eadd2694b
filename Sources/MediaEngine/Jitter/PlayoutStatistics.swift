/// What a playout did.
public struct PlayoutStatistics: Sendable, BitwiseCopyable, Equatable {
    /// The jitter buffer's own counters.
    public internal(set) var buffer = JitterBufferStatistics()
    /// Packets that were taken, whatever became of them.
    public internal(set) var insertedCount = 0
    /// Packets rebuilt from the copy in their successor.
    public internal(set) var recoveredCount = 0
    /// Frames made by the decoder without a packet: what replaces loss, and comfort noise.
    public internal(set) var inventedFrameCount = 0
    /// Those of them that are comfort noise, where the sender left out sound.
    public internal(set) var comfortFrameCount = 0
    /// Packets whose payload the decoder refused.
    public internal(set) var corruptCount = 0
    /// Frames invented in place of packets that were lost, late or corrupt.
    public internal(set) var concealedFrameCount = 0
    /// Frames left out, because too much waited.
    public internal(set) var shortenedFrameCount = 0
    /// Frames added, to wait for longer.
    public internal(set) var lengthenedFrameCount = 0
    /// Frames played in all, silence before the first packet not among them.
    public internal(set) var playedFrameCount = 0
    /// Packets of comfort noise (RFC 3389) that were played.
    public internal(set) var comfortNoiseCount = 0
    /// Times that the sender changed to another codec.
    public internal(set) var codecChangeCount = 0
    /// The sum of the waits of all packets played, from arrival to sound.
    public internal(set) var totalWaitNanoseconds: Int64 = 0
    /// When the packet that was played last began to sound.
    public internal(set) var lastPlayTime = MediaTime.zero
    /// When the packet that was played last has sounded to its end.
    public internal(set) var lastPlayEnd = MediaTime.zero
    /// The timestamp of the packet that was played last.
    public internal(set) var lastPlayTimestamp: UInt32 = 0
    /// Whether any packet has been played.
    public var hasPlayed: Bool { buffer.playedCount > 0 }

    /// Nothing yet.
    public init() {}

    /// The mean wait of the packets played, from arrival to sound; zero before the first.
    public var meanWait: Duration {
        buffer.playedCount == 0 ? .zero : .nanoseconds(totalWaitNanoseconds / Int64(buffer.playedCount))
    }
}
