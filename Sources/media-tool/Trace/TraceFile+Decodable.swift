internal import CallBasics
import FoundationEssentials
import MediaEngine

extension TraceFile {
    /// Reads the trace in `bytes`.
    ///
    /// - Throws: `TraceFileError` when the bytes are no trace, are of another version, or end too early.
    init(parsing bytes: [UInt8]) throws(TraceFileError) {
        guard bytes.count <= Self.maximumByteCount else {
            throw TraceFileError(.tooLarge, detail: "it has \(bytes.count) bytes, more than \(Self.maximumByteCount)")
        }
        do {
            self = try JSONDecoder().decode(TraceFile.self, from: Data(bytes))
        } catch let error as TraceFileError {
            throw error
        } catch {
            let isTrace = Self.hasFormat(bytes)
            throw TraceFileError(
                !isTrace ? .notATrace : Self.isCutOff(bytes) ? .truncated : .damaged,
                detail: Self.detail(error)
            )
        }
    }

    /// Whether the file says early what it is.
    private static func hasFormat(_ bytes: [UInt8]) -> Bool {
        let key = Array("\"format\"".utf8)
        let start = bytes.prefix(4096)
        return start.indices.contains { start[$0] == key[0] && start[$0...].starts(with: key) }
    }

    /// Whether a string, an array or an object is still open at the end.
    private static func isCutOff(_ bytes: [UInt8]) -> Bool {
        var (depth, isInString, isEscaped) = (0, false, false)
        for byte in bytes {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
        }
        return isInString || depth > 0
    }

    private static func detail(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        let context: DecodingError.Context
        switch error {
        case .keyNotFound(let key, _): return "it has no \"\(key.stringValue)\""
        case .dataCorrupted(let found), .typeMismatch(_, let found), .valueNotFound(_, let found): context = found
        @unknown default: return "\(error)"
        }
        let path = context.codingPath.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }.joined(separator: ".")
        var reason = context.debugDescription
        if reason.hasSuffix(".") { reason.removeLast() }
        return path.isEmpty ? reason : "\(path): \(reason)"
    }
}

extension TraceFile: Decodable {
    private enum Key: String, CodingKey {
        case format, version, codec, clockRate, ptimeMs, rowMs, columns, rows, droppedRows, events, figures
        case stream
    }

    /// Reads a trace as the file has it.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func check(_ isGood: Bool, _ key: Key, _ reason: @autoclosure () -> String) throws {
            guard !isGood else { return }
            throw DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: reason())
        }
        let format = try container.decode(String.self, forKey: .format)
        try check(format == Self.formatName, .format, "the value is not \"\(Self.formatName)\"")
        let version = try container.decode(Int.self, forKey: .version)
        guard version <= Self.version else {
            throw TraceFileError(
                .newer,
                detail: "it has version \(version), and the newest known here is \(Self.version)"
            )
        }
        try check(version >= 1, .version, "there is no version \(version)")
        let columns = try container.decode([String].self, forKey: .columns)
        let count = Self.columnCounts[version - 1]
        let known = Self.columns.prefix(count)
        try check(columns[...] == known, .columns, "the columns are not those of version \(version)")
        self.init(
            codec: try container.decode(String.self, forKey: .codec),
            clockRate: try container.decode(Int.self, forKey: .clockRate),
            ptimeMs: try container.decode(Double.self, forKey: .ptimeMs)
        )
        try check(1...1_000_000 ~= clockRate, .clockRate, "it must be 1 to 1000000")
        try check(1...1000 ~= ptimeMs, .ptimeMs, "it must be 1 to 1000")
        rowMs = try container.decodeIfPresent(Double.self, forKey: .rowMs) ?? rowMs
        try check(1...1000 ~= rowMs, .rowMs, "it must be 1 to 1000")
        let coded = try container.decode([CodedRow].self, forKey: .rows)
        try check(coded.allSatisfy { $0.valueCount == count }, .rows, "a row has other values than the columns")
        rows = coded.map(\.row)
        droppedRows = try container.decodeIfPresent(Int.self, forKey: .droppedRows) ?? 0
        try check(0...(1 << 40) ~= droppedRows, .droppedRows, "no trace drops so many")
        let events = try container.decodeIfPresent([CodedEvent].self, forKey: .events) ?? []
        self.events = events.prefix(Self.maximumEventCount).compactMap(\.event)
        let figures = try container.decodeIfPresent([Figure].self, forKey: .figures) ?? []
        self.figures = Array(figures.prefix(Self.maximumFigureCount))
        stream = try container.decodeIfPresent(Stream.self, forKey: .stream) ?? Stream()
        try check(Self.unixMilliseconds ~= stream.startUnixMs ?? 0, .stream, "startUnixMs is no time of this age")
    }

    private static let maximumFigureCount = 1000
    /// From 1970 to the year 9999.
    static let unixMilliseconds: Range<Int64> = 0..<253_402_300_800_000
}

/// A row: an array of values in the order of the columns.
private struct CodedRow: Decodable {
    var row = PlayoutTraceRow()
    /// How many values it has.
    let valueCount: Int

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        func check(_ isGood: Bool, _ reason: String) throws {
            guard !isGood else { return }
            throw DecodingError.dataCorruptedError(in: container, debugDescription: reason)
        }
        /// Beyond any delay, and far from where sums of such values would be infinite, nothing is taken.
        func value() throws -> Float {
            let value = try container.decode(Float.self)
            try check(abs(value) <= 1e9, "a row's value is out of range")
            return value
        }
        let milliseconds = try container.decode(Double.self)
        try check(0...1e10 ~= milliseconds, "a row's time is out of range")
        row.time = MediaTime(nanoseconds: Int64((milliseconds * 1e6).rounded()))
        let name = try container.decode(String.self)
        guard let operation = PlayoutOperation(traceName: name) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "there is no such operation")
        }
        row.operation = operation
        row.arrivalDelay = try container.decodeNil() ? nil : try value()
        row.targetDelay = try value()
        row.playoutDelay = try value()
        row.arrivedCount = try container.decode(UInt16.self)
        row.missingCount = try container.decode(UInt16.self)
        row.lateCount = try container.decode(UInt16.self)
        row.discardedCount = try container.decode(UInt16.self)
        row.recoveredCount = try container.decode(UInt16.self)
        row.concealed = try value()
        row.stretched = try value()
        row.level = try value()
        if !container.isAtEnd { row.paused = try value() }
        if !container.isAtEnd { row.sequenceNumber = try container.decodeNil() ? nil : container.decode(UInt16.self) }
        if !container.isAtEnd { row.undecodableCount = try container.decode(UInt16.self) }
        valueCount = container.currentIndex
        try check(container.isAtEnd, "a row has more values than there are columns")
    }
}

/// An event; those of kinds that are not known are left out.
private struct CodedEvent: Decodable {
    let timeMs: Double
    let kind: String
    let amount: Int

    var event: TraceEvent? {
        TraceEvent.Kind(rawValue: kind).map { TraceEvent(timeMs: timeMs, kind: $0, amount: amount) }
    }
}
