package import CallBasics

/// What the playout mostly did in one row of a trace.
package enum PlayoutOperation: UInt8, Sendable, BitwiseCopyable, CaseIterable {
    /// Nothing was due: silence before the first packet, or after the last.
    case idle
    /// Packets were played as they were sent.
    case play
    /// A lost packet was rebuilt from the copy in its successor.
    case recover
    /// Sound was invented, because a packet was lost or late.
    case conceal
    /// The sender left out silence, which was filled with comfort noise.
    case comfort
    /// Sound was shortened, because too much waited.
    case accelerate
    /// Sound was lengthened, to wait for longer.
    case expand
}

/// What a playout did in 20 ms: a row of a trace.
///
/// Units: delays and lengths in ms; counts since the row before.
package struct PlayoutTraceRow: Sendable, BitwiseCopyable, Hashable {
    /// When the 20 ms began to sound.
    package var time = MediaTime.zero
    /// What the playout mostly did.
    package var operation = PlayoutOperation.idle
    /// The longest delay of the packets that arrived, beyond the fastest packet of late; nil when none arrived.
    package var arrivalDelay: Float?
    /// How long the fastest packet is meant to wait.
    package var targetDelay: Float = 0
    /// How long the fastest packet waits.
    package var playoutDelay: Float = 0
    /// Packets that arrived.
    package var arrivedCount: UInt16 = 0
    /// Packets whose time came and that had not arrived.
    package var missingCount: UInt16 = 0
    /// Packets that arrived after their time.
    package var lateCount: UInt16 = 0
    /// Packets thrown away because too much waited.
    package var discardedCount: UInt16 = 0
    /// Packets rebuilt from the copy in their successor.
    package var recoveredCount: UInt16 = 0
    /// Packets that nothing here decodes, which had their turn.
    package var undecodableCount: UInt16 = 0
    /// Invented sound.
    package var concealed: Float = 0
    /// Sound added (above 0) or taken away (below 0) by stretching.
    package var stretched: Float = 0
    /// Silence that turned out to be the sender's, when it went on: in rows before it, sound stood in its place.
    package var paused: Float = 0
    /// The level of what was heard, in dBov of a sine; -127 for digital silence.
    package var level: Float = -127
    /// The RTP sequence number of the packet played last in the row; nil when none was.
    package var sequenceNumber: UInt16?
    /// Packets played with the RTP marker.
    package var markedCount: UInt16 = 0
    /// Times that the sender changed to another codec.
    package var codecChangeCount: UInt16 = 0
    /// Times that time stamps or numbers jumped, so that playout began a new line.
    package var jumpCount: UInt16 = 0

    /// A row in which nothing happened.
    package init() {}
}

/// The way of a trace's rows from the media thread to whoever writes them down.
///
/// Thread: rows come from the media thread; `drain` is for the control side, one caller at a time.
package final class PlayoutTrace: Sendable {
    /// The length of a row.
    package static let rowDuration = Duration.milliseconds(20)

    private let rows = RingBuffer<PlayoutTraceRow>(minimumCapacity: 4096)

    /// A trace without rows.
    package init() {}

    /// Rows lost because nobody drained them; there is room for 80 s.
    package var droppedCount: Int { rows.droppedCount }

    /// Hands every row that waits to `body`, oldest first.
    package func drain(_ body: (PlayoutTraceRow) -> Void) {
        while let row = rows.pop() { body(row) }
    }

    /// Adds a row.
    ///
    /// Thread: media.
    func append(_ row: PlayoutTraceRow) {
        rows.push(row)
    }
}
