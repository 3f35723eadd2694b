/// What a jitter buffer wants played next.
package enum PlayoutDecision: Sendable, BitwiseCopyable, Equatable {
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
package enum InsertionResult: Sendable, BitwiseCopyable, Equatable {
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
