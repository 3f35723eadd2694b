package import CallBasics

/// Tells while a flood of foreign datagrams lasts, which the socket is to drop.
///
/// A few are read, judged and counted by reason. Many cost a system call each, and the room in the socket's buffer that
/// the stream needs. What the socket drops nobody sees, so after `pause` it takes everybody's again. A flood that goes on is
/// noticed by the first look at the socket that finds more than `limit`: most often a tick later, up to 20 ms where a calm
/// stream has spared looks (`ReceptionPacing`). One of fewer in a tick is none, and is read and judged.
/// Pure: counts and times in, answers out.
package struct FloodDetector: Sendable, BitwiseCopyable {
    /// Foreign datagrams of one look that are no flood yet.
    package static var limit: Int { 64 }
    /// How long after the last look with more of them the flood is taken to last.
    package static var pause: Duration { .seconds(5) }

    private var end: MediaTime?

    /// A detector that has seen none.
    package init() {}

    /// Takes the number of foreign datagrams that were read by the look at `now`; answers whether there is a flood.
    package mutating func isFlood(_ foreignCount: Int, at now: MediaTime) -> Bool {
        if foreignCount > Self.limit { end = now + Self.pause }
        guard let end else { return false }
        return now < end
    }
}
