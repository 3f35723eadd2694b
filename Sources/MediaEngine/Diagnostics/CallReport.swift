/// What a call, or a test call of two legs, did: one value for the table people read, for JSON, and for tests.
public struct CallReport: Sendable, Hashable {
    /// What the packets came by.
    public enum Mode: String, Sendable, Hashable {
        /// UDP sockets.
        case udp
        /// A simulated network, in virtual time.
        case virtual
        /// A capture, in virtual time: nothing was sent.
        case replay
    }

    /// How punctual the ticks were.
    public struct Ticks: Sendable, Hashable {
        /// Ticks that ran.
        public var count: Int
        /// Ticks that started more than half a tick late.
        public var late: Int
        /// The lateness that 99 % of the ticks did not exceed.
        public var p99LatenessMs: Double
        /// Events of the media thread that found no room on their way, of all calls: keys, goodbyes and stalls that nobody
        /// has heard of may be among them.
        public var lostEvents: Int

        /// The figures of `statistics`, and so many events that were lost.
        package init(_ statistics: TickStatistics, lostEvents: Int = 0) {
            self.lostEvents = lostEvents
            count = statistics.count
            late = statistics.lateCount
            p99LatenessMs = (statistics.lateness.quantile(0.99).milliseconds * 1000).rounded() / 1000
        }
    }

    /// The codec's name.
    public var codec: String
    /// What the packets came by.
    public var mode: Mode
    /// How long the call lasted.
    public var seconds: Double
    /// One report for each leg in this process.
    public var legs: [LegReport]
    /// How punctual the ticks were.
    public var ticks: Ticks
    /// The cards that the calls use.
    public var cards: [CardReport] = []
    /// The changes of card that the calls went through.
    public var routeChanges: [RouteChange] = []

    /// A report of `legs`.
    public init(codec: String, mode: Mode, seconds: Double, legs: [LegReport], ticks: Ticks) {
        self.codec = codec
        self.mode = mode
        self.seconds = seconds
        self.legs = legs
        self.ticks = ticks
    }
}
