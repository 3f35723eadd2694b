/// A piece of sound that somebody missed, and why.
struct AudibleGap: Sendable, Hashable {
    /// Why the sound was not there.
    enum Cause: String, Sendable, Hashable, CaseIterable {
        /// Packets never came.
        case lost
        /// Packets came after their time.
        case late
        /// The sender paused: nothing came for a while, and nothing of it was missing afterwards.
        case senderStalled
        /// The buffer ran dry slowly: the sender's clock is slower than the card's.
        case drift
        /// The playback card ran empty.
        case xrun
        /// Sound was thrown away, because too much waited.
        case discarded
        /// Packets came that nothing here decodes.
        case noDecoder
        /// The trace does not show why.
        case unknown

        /// A word or two for a table.
        var title: String {
            switch self {
            case .lost: "lost"
            case .late: "late"
            case .senderStalled: "sender stalled"
            case .drift: "drift"
            case .xrun: "xrun"
            case .discarded: "discarded"
            case .noDecoder: "no decoder"
            case .unknown: "unknown"
            }
        }

        /// What happened, and what helps, in a sentence or two.
        var explanation: String {
            switch self {
            case .lost: "The network lost packets. Send with FEC or redundancy, or use a better path."
            case .late:
                "Packets came after their time: the network, or the sender, held them back longer than the buffer waited."
            case .senderStalled:
                "The sender paused and then went on. Look at the other side's load, or at its microphone."
            case .drift: "The sender's clock is slower than the card's, and the buffer ran dry. Let the buffer adapt."
            case .xrun:
                "The playback card ran empty. Allow real-time scheduling (media-tool doctor), or take a larger buffer."
            case .discarded: "Too much waited, and sound was thrown away. Bursts of packets do that."
            case .noDecoder:
                "Packets came whose payload type nothing here decodes. Let the other side send what was agreed."
            case .unknown: "The trace does not show why."
            }
        }
    }

    /// When it began, after the trace's first row.
    var start: Duration
    /// How much sound was invented, silent or cut out.
    var duration: Duration
    /// Why.
    var cause: Cause
    /// The RTP sequence number of the packet that was heard last before it, where the trace has one.
    var lastHeard: UInt16?
    /// The RTP sequence number of the packet that was heard first after it.
    var nextHeard: UInt16?

    /// A gap.
    init(start: Duration, duration: Duration, cause: Cause, lastHeard: UInt16? = nil, nextHeard: UInt16? = nil) {
        self.start = start
        self.duration = duration
        self.cause = cause
        self.lastHeard = lastHeard
        self.nextHeard = nextHeard
    }
}
