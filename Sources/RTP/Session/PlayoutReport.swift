/// What the playout did since it was asked last, for RTCP: the one value that goes back from there to the session.
///
/// Thread: media.
package struct PlayoutReport: Sendable, BitwiseCopyable {
    /// Sequence numbers: as many as one tick can have, after which they are taken.
    package struct Numbers: Sendable, BitwiseCopyable {
        /// All that a jitter buffer can throw away at once, and all that can come in a tick.
        private static var capacity: Int { 288 }

        private var numbers = InlineArray<288, UInt16>(repeating: 0)
        /// Numbers in the list.
        package private(set) var count = 0

        /// An empty list.
        package init() {}

        /// Number `index`, less than `count`; mutating, so that it is read in place.
        package mutating func number(_ index: Int) -> UInt16 { numbers[index] }

        /// Adds a number; a full list leaves it out.
        package mutating func append(_ number: UInt16) {
            guard count < Self.capacity else { return }
            numbers[count] = number
            count &+= 1
        }

        /// Empties the list.
        package mutating func removeAll() { count = 0 }
    }

    /// Delay, levels and kind of the jitter buffer.
    package var quality = PlayoutQuality()
    /// Packets that came too late, or did not fit.
    package var discarded = Numbers()
    /// Packets that did not come and were rebuilt, from in-band FEC or redundant audio.
    package var rebuilt = Numbers()

    /// Nothing done yet.
    package init() {}
}
