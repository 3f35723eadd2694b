import MediaEngine

/// The trace of a playout as a JSON file: a header, a row for each 20 ms, and what happened beside them.
///
///     {"format": "media-engine trace", "version": 4, "codec": "opus", "clockRate": 48000, "ptimeMs": 20, "rowMs": 20,
///      "columns": ["timeMs", "operation", …], "rows": [[0, "play", …], …],
///      "droppedRows": 0, "events": [{"timeMs": 1240, "kind": "lost", "amount": 2}], "figures": [{"name": …, "value": …}],
///      "stream": {"startUnixMs": 1700000000000, "source": "192.0.2.1:5004", "destination": "192.0.2.2:5004", "ssrc": 1}}
///
/// A row is an array with one value for each of `columns`: `timeMs` after the first row began; `operation` by its name;
/// `arrivalDelayMs` or null; `targetDelayMs`, `playoutDelayMs`; counts of packets `arrived`, `missing`, `late`,
/// `discarded`, `recovered`; `concealedMs`, `stretchedMs`; `levelDBov`; `pausedMs` of silence that turned out to be the
/// sender's, which version 1 does not have; `sequence`, the RTP sequence number of the packet played last, or null, which
/// with `stream` versions 1 and 2 do not have; `undecodable`, packets without a decoder, which is new in version 4. What is not known of `stream` is left out.
struct TraceFile: Sendable, Hashable {
    /// One line of the report of the whole call.
    struct Figure: Sendable, Hashable, Decodable {
        /// What it says: "lost".
        var name: String
        /// The value as people read it: "12".
        var value: String

        /// A figure.
        init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Which stream the rows are of, as far as it is known.
    struct Stream: Sendable, Hashable, Decodable {
        /// When the first row began, in ms since 1970.
        var startUnixMs: Int64?
        /// The address that the stream comes from.
        var source: String?
        /// The address that it goes to.
        var destination: String?
        /// The SSRC that was heard first.
        var ssrc: UInt32?
    }

    /// What the file says that it is.
    static let formatName = "media-engine trace"
    /// The version of the format that is written; versions 1 to 3 are read, too.
    static let version = 4
    /// Larger files are refused: a day of rows takes 350 MB.
    static let maximumByteCount = 1 << 29
    /// Events beyond these are left out.
    static let maximumEventCount = 65_536

    /// What the rows' values are called, in their order.
    static let columns = [
        "timeMs", "operation", "arrivalDelayMs", "targetDelayMs", "playoutDelayMs", "arrived", "missing", "late",
        "discarded", "recovered", "concealedMs", "stretchedMs", "levelDBov", "pausedMs", "sequence",
        "undecodable",
    ]

    /// How many of the columns each version has, from version 1 on.
    static let columnCounts = [13, 14, 15, 16]

    /// The codec's name.
    var codec: String
    /// RTP timestamp units per second.
    var clockRate: Int
    /// Audio per packet, in ms.
    var ptimeMs: Double
    /// The length of a row, in ms.
    var rowMs: Double = 20
    /// The rows; the first one's time is zero.
    var rows: [PlayoutTraceRow] = []
    /// Rows that were lost because nobody took them in time.
    var droppedRows = 0
    /// What happened beside the rows.
    var events: [TraceEvent] = []
    /// The report of the whole call.
    var figures: [Figure] = []
    /// Which stream it is.
    var stream = Stream()

    /// A trace without rows.
    init(codec: String, clockRate: Int, ptimeMs: Double) {
        self.codec = codec
        self.clockRate = clockRate
        self.ptimeMs = ptimeMs
    }

    /// Whether anything was played.
    var isPlayed: Bool { rows.contains { $0.operation != .idle } }

    /// How long the trace is.
    var duration: Duration {
        guard let first = rows.first, let last = rows.last else { return .zero }
        return last.time - first.time + .nanoseconds(Int64(rowMs * 1e6))
    }
}

extension PlayoutOperation {
    /// The name in a trace file: "play".
    var traceName: String { "\(self)" }

    /// The operation of that name.
    init?(traceName: String) {
        guard let operation = Self.allCases.first(where: { $0.traceName == traceName }) else { return nil }
        self = operation
    }
}
