/// The trace of a playout as a JSON file: a header, a row for each 20 ms, and what happened beside them.
///
///     {"format": "media-engine trace", "version": 1, "codec": "opus", "clockRate": 48000, "ptimeMs": 20, "rowMs": 20,
///      "columns": ["timeMs", "operation", …], "rows": [[0, "play", …], …],
///      "droppedRows": 0, "events": [{"timeMs": 1240, "kind": "lost", "amount": 2}], "figures": [{"name": …, "value": …}]}
///
/// A row is an array with one value for each of `columns`: `timeMs` after the first row began; `operation` by its name;
/// `arrivalDelayMs` or null; `targetDelayMs`, `playoutDelayMs`; counts of packets `arrived`, `missing`, `late`,
/// `discarded`, `recovered`; `concealedMs`, `stretchedMs`; `levelDBov`.
public struct TraceFile: Sendable, Hashable {
    /// One line of the report of the whole call.
    public struct Figure: Sendable, Hashable, Codable {
        /// What it says: "lost".
        public var name: String
        /// The value as people read it: "12".
        public var value: String

        /// A figure.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What the file says that it is.
    public static let formatName = "media-engine trace"
    /// The version of the format that is written, and the only one that is read.
    public static let version = 1
    /// Larger files are refused: a day of rows takes 350 MB.
    public static let maximumByteCount = 1 << 29
    /// Events beyond these are left out.
    public static let maximumEventCount = 65_536

    /// What the rows' values are called, in their order.
    public static let columns = [
        "timeMs", "operation", "arrivalDelayMs", "targetDelayMs", "playoutDelayMs", "arrived", "missing", "late",
        "discarded", "recovered", "concealedMs", "stretchedMs", "levelDBov",
    ]

    /// The codec's name.
    public var codec: String
    /// RTP timestamp units per second.
    public var clockRate: Int
    /// Audio per packet, in ms.
    public var ptimeMs: Double
    /// The length of a row, in ms.
    public var rowMs: Double = 20
    /// The rows; the first one's time is zero.
    public var rows: [PlayoutTraceRow] = []
    /// Rows that were lost because nobody took them in time.
    public var droppedRows = 0
    /// What happened beside the rows.
    public var events: [TraceEvent] = []
    /// The report of the whole call.
    public var figures: [Figure] = []

    /// A trace without rows.
    public init(codec: String, clockRate: Int, ptimeMs: Double) {
        self.codec = codec
        self.clockRate = clockRate
        self.ptimeMs = ptimeMs
    }

    /// How long the trace is.
    public var duration: Duration {
        guard let first = rows.first, let last = rows.last else { return .zero }
        return last.time - first.time + .nanoseconds(Int64(rowMs * 1e6))
    }

    /// Reads the trace in `bytes`.
    ///
    /// - Throws: `TraceFileError` when the bytes are no trace, are of another version, or end too early.
    public init(parsing bytes: [UInt8]) throws(TraceFileError) {
        self.init(codec: "", clockRate: 0, ptimeMs: 0)
        guard bytes.count <= Self.maximumByteCount else {
            throw TraceFileError(.tooLarge, "it has \(bytes.count) bytes, more than \(Self.maximumByteCount)")
        }
        var scanner = JSONScanner(bytes)
        var seen: Set<String> = []
        do throws(JSONScanner.Failure) {
            try scanner.object { key, scanner throws(JSONScanner.Failure) in
                seen.insert(key)
                try read(key, &scanner)
            }
            try scanner.end()
        } catch {
            let isTrace = seen.contains("format")
            let isCut = isTrace && error.position >= bytes.count
            throw TraceFileError(
                isCut ? .truncated : isTrace ? .damaged : .notATrace,
                "at byte \(error.position): \(error.message)"
            )
        }
        for key in ["format", "version", "codec", "clockRate", "ptimeMs", "columns", "rows"] where !seen.contains(key) {
            throw TraceFileError(.notATrace, "it has no \"\(key)\"")
        }
    }

    private mutating func read(_ key: String, _ scanner: inout JSONScanner) throws(JSONScanner.Failure) {
        switch key {
        case "format":
            guard try scanner.string() == Self.formatName else {
                throw scanner.failure("\"format\" is not \"\(Self.formatName)\"")
            }
        case "version": _ = try scanner.integer(in: Self.version...Self.version)
        case "codec": codec = try scanner.string()
        case "clockRate": clockRate = try scanner.integer(in: 1...1_000_000)
        case "ptimeMs":
            ptimeMs = try scanner.number()
            guard 1...1000 ~= ptimeMs else { throw scanner.failure("\"ptimeMs\" must be 1 to 1000") }
        case "rowMs":
            rowMs = try scanner.number()
            guard 1...1000 ~= rowMs else { throw scanner.failure("\"rowMs\" must be 1 to 1000") }
        case "columns":
            var count = 0
            try scanner.array { index, scanner throws(JSONScanner.Failure) in
                count += 1
                guard index < Self.columns.count, try scanner.string() == Self.columns[index] else {
                    throw scanner.failure("column \(index) is another one than in version \(Self.version)")
                }
            }
            guard count == Self.columns.count else { throw scanner.failure("columns are missing") }
        case "rows":
            try scanner.array { _, scanner throws(JSONScanner.Failure) in rows.append(try Self.row(&scanner)) }
        case "droppedRows": droppedRows = try scanner.integer(in: 0...(1 << 40))
        case "events": try readEvents(&scanner)
        case "figures": try readFigures(&scanner)
        default: try scanner.skip()
        }
    }

    private static func row(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) -> PlayoutTraceRow {
        var row = PlayoutTraceRow()
        var count = 0
        func packets(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) -> UInt16 {
            UInt16(try scanner.integer(in: 0...65_535))
        }
        func value(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) -> Float {
            let number = try scanner.number()
            // Beyond any delay, and far from where sums of such values would be infinite.
            guard abs(number) <= 1e9 else { throw scanner.failure("a row's value is out of range") }
            return Float(number)
        }
        try scanner.array { index, scanner throws(JSONScanner.Failure) in
            count += 1
            switch index {
            case 0:
                let milliseconds = try scanner.number()
                guard 0...1e10 ~= milliseconds else { throw scanner.failure("a row's time is out of range") }
                row.time = MediaTime(nanoseconds: Int64((milliseconds * 1e6).rounded()))
            case 1:
                let name = try scanner.string()
                guard let operation = PlayoutOperation(traceName: name) else {
                    throw scanner.failure("there is no operation of that name")
                }
                row.operation = operation
            case 2: row.arrivalDelay = try scanner.takesNull() ? nil : try value(&scanner)
            case 3: row.targetDelay = try value(&scanner)
            case 4: row.playoutDelay = try value(&scanner)
            case 5: row.arrivedCount = try packets(&scanner)
            case 6: row.missingCount = try packets(&scanner)
            case 7: row.lateCount = try packets(&scanner)
            case 8: row.discardedCount = try packets(&scanner)
            case 9: row.recoveredCount = try packets(&scanner)
            case 10: row.concealed = try value(&scanner)
            case 11: row.stretched = try value(&scanner)
            case 12: row.level = try value(&scanner)
            default: throw scanner.failure("a row has more values than there are columns")
            }
        }
        guard count == columns.count else { throw scanner.failure("a row has fewer values than there are columns") }
        return row
    }

    private mutating func readEvents(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) {
        try scanner.array { index, scanner throws(JSONScanner.Failure) in
            var event = TraceEvent(timeMs: 0, kind: .lost, amount: 0)
            var isKnown = false
            try scanner.object { key, scanner throws(JSONScanner.Failure) in
                switch key {
                case "timeMs": event.timeMs = try scanner.number()
                case "kind":
                    guard let kind = TraceEvent.Kind(rawValue: try scanner.string()) else { return }
                    event.kind = kind
                    isKnown = true
                case "amount": event.amount = try scanner.integer(in: -(1 << 32)...(1 << 32))
                default: try scanner.skip()
                }
            }
            if isKnown, index < Self.maximumEventCount { events.append(event) }
        }
    }

    private mutating func readFigures(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) {
        try scanner.array { index, scanner throws(JSONScanner.Failure) in
            var figure = Figure(name: "", value: "")
            try scanner.object { key, scanner throws(JSONScanner.Failure) in
                switch key {
                case "name": figure.name = try scanner.string()
                case "value": figure.value = try scanner.string()
                default: try scanner.skip()
                }
            }
            if index < 1000 { figures.append(figure) }
        }
    }
}

extension PlayoutOperation {
    /// The name in a trace file: "play".
    public var traceName: String { "\(self)" }

    /// The operation of that name.
    public init?(traceName: String) {
        guard let operation = Self.allCases.first(where: { $0.traceName == traceName }) else { return nil }
        self = operation
    }
}
