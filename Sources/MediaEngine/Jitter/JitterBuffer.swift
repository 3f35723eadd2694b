/// What a jitter buffer wants played next.
public enum PlayoutDecision: Sendable, BitwiseCopyable, Equatable {
    /// Decode the buffer's first packet, then `removeFirst`.
    case play
    /// The packet before the buffer's first one is lost: decode the copy that the first one may carry, of `duration`
    /// clock-rate units. The first packet stays.
    case recover(duration: Int)
    /// Nothing arrived for `duration` clock-rate units: invent what might have been there.
    case conceal(duration: Int)
    /// The sender left out `duration` clock-rate units of silence (DTX), or sends telephone events in place of sound: let
    /// the decoder make its comfort noise.
    case comfort(duration: Int)
    /// Nothing is due: silence, until the next tick.
    case idle
}

/// What became of a packet that was inserted.
public enum InsertionResult: Sendable, BitwiseCopyable, Equatable {
    /// It waits for its time.
    case accepted
    /// Its time is over: what stood in for it has been played.
    case late
    /// It is in the buffer already.
    case duplicate
    /// It does not fit: the buffer is full, or the payload too large.
    case refused
    /// It was accepted, and the buffer started anew with it: the stream jumped, or every packet came too late.
    case restarted
}

/// Decides when each packet is played: holds packets back so that those that come late still come in time.
///
/// Pure: packets and times go in, decisions come out. A `Playout` carries the decisions out with a decoder.
/// Units: durations and timestamps in clock-rate units of the codec.
/// Thread: media; nothing allocates after `init`.
public protocol JitterBuffer: AnyObject, Sendable {
    /// Packets that wait.
    var count: Int { get }
    /// What the buffer did so far.
    var statistics: JitterBufferStatistics { get }

    /// Takes a packet that arrived at `header.arrival` and lasts `duration`, or one of a number only, which lasts 0.
    func insert(_ header: PacketHeader, payload: Span<UInt8>, duration: Int) -> InsertionResult

    /// What to play at `now`; the answer counts as played, so ask once for each piece of sound.
    func decide(at now: MediaTime) -> PlayoutDecision

    /// Hands the first packet to `body`. Call it only after a decision that names the first packet.
    func withFirst<Result>(_ body: (PacketHeader, Span<UInt8>) -> Result) -> Result

    /// Drops the first packet, which has been played.
    func removeFirst()

    /// By how many clock-rate units the sound that waits should grow (above 0) or shrink (below 0), when `pending`
    /// units of it are decoded.
    func wishedStretch(at now: MediaTime, pending: Int) -> Int

    /// Whether such a stretch is worth more than its sound.
    func isUrgent(_ stretch: Int) -> Bool

    /// Hears that the sound that waits has grown by `units`, or shrunk when below 0.
    func stretched(by units: Int)

    /// Decides to play the packet that follows what is decoded ahead of its time; `idle` when it is not there.
    func playAhead() -> PlayoutDecision

    /// Hears that the packet named in a `recover` decision carried no copy, so that its time was concealed.
    func recoveryFailed(duration: Int)

    /// Forgets everything but the statistics: another source begins.
    func reset()
}

extension JitterBuffer {
    /// No stretch.
    public func wishedStretch(at now: MediaTime, pending: Int) -> Int { 0 }
    /// No stretch is urgent.
    public func isUrgent(_ stretch: Int) -> Bool { false }
    /// Takes no note of stretches.
    public func stretched(by units: Int) {}
    /// Nothing is decoded ahead.
    public func playAhead() -> PlayoutDecision { .idle }
}

/// What a jitter buffer did.
public struct JitterBufferStatistics: Sendable, BitwiseCopyable, Equatable {
    /// Packets played.
    public internal(set) var playedCount = 0
    /// Packets that came after their time and were thrown away.
    public internal(set) var lateCount = 0
    /// Packets whose time came and that were not there.
    public internal(set) var missingCount = 0
    /// Packets thrown away because the buffer held too much.
    public internal(set) var discardedCount = 0
    /// Times the buffer started anew because the stream jumped or everything came late.
    public internal(set) var restartCount = 0
    /// Clock-rate units that were invented because a packet was lost or late.
    public internal(set) var concealedDuration = 0
    /// Clock-rate units that the sender left out as silence.
    public internal(set) var comfortDuration = 0
    /// Clock-rate units by which sound was shortened.
    public internal(set) var acceleratedDuration = 0
    /// Clock-rate units by which sound was lengthened.
    public internal(set) var expandedDuration = 0
    /// How long the fastest packet is meant to wait; 0 with a fixed delay.
    public internal(set) var targetDelayNanoseconds: Int64 = 0
    /// How long the fastest packet waits; 0 with a fixed delay.
    public internal(set) var playoutDelayNanoseconds: Int64 = 0
    /// How much later than the fastest packet the newest one came; 0 with a fixed delay.
    public internal(set) var arrivalDelayNanoseconds: Int64 = 0

    /// Nothing yet.
    public init() {}
}
