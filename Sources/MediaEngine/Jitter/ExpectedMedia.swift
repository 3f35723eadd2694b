import Synchronization

/// What the other side is to send, as far as is known: it says what its silence means.
package enum ExpectedMedia: UInt8, AtomicRepresentable, Sendable, BitwiseCopyable {
    /// Nothing: signalling says so (hold), or the source has said goodbye.
    case nothing
    /// Sound or nothing: it alone may send, as one that has put this side on hold, with music or without.
    case maybe
    /// Sound.
    case sound
}
