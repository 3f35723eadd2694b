/// Times in which a playout had to invent sound, because packets that the sender did send were not there in time: lost, late,
/// or held up by a stall.
///
/// What the sender left out (DTX, hold) is none.
package struct PlayoutInterruptions: Hashable, Sendable, BitwiseCopyable {
    /// How long they lasted in all.
    package var nanoseconds: Int64
    /// How many there were.
    package var count: Int

    /// Interruptions of `nanoseconds` in all; none unless told.
    package init(nanoseconds: Int64 = 0, count: Int = 0) {
        self.nanoseconds = nanoseconds
        self.count = count
    }
}
