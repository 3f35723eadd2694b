extension TraceFile: Codable {
    private enum Key: String, CodingKey {
        case format, version, codec, clockRate, ptimeMs, rowMs, columns, rows, droppedRows, events, figures
    }

    /// Writes the trace as the file has it.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(Self.formatName, forKey: .format)
        try container.encode(Self.version, forKey: .version)
        try container.encode(codec, forKey: .codec)
        try container.encode(clockRate, forKey: .clockRate)
        try container.encode(ptimeMs, forKey: .ptimeMs)
        try container.encode(rowMs, forKey: .rowMs)
        try container.encode(Self.columns, forKey: .columns)
        let origin = rows.first?.time ?? .zero
        try container.encode(rows.map { CodedRow(row: $0, origin: origin) }, forKey: .rows)
        try container.encode(droppedRows, forKey: .droppedRows)
        try container.encode(events, forKey: .events)
        try container.encode(figures, forKey: .figures)
    }

    /// Reads a trace as the file has it.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func refuse(_ key: Key, _ reason: String) -> DecodingError {
            .dataCorruptedError(forKey: key, in: container, debugDescription: reason)
        }
        guard try container.decode(String.self, forKey: .format) == Self.formatName else {
            throw refuse(.format, "The value is no trace of a playout.")
        }
        guard try container.decode(Int.self, forKey: .version) == Self.version else {
            throw refuse(.version, "The trace is of another version than \(Self.version).")
        }
        guard try container.decode([String].self, forKey: .columns) == Self.columns else {
            throw refuse(.columns, "The columns are not those of version \(Self.version).")
        }
        self.init(
            codec: try container.decode(String.self, forKey: .codec),
            clockRate: try container.decode(Int.self, forKey: .clockRate),
            ptimeMs: try container.decode(Double.self, forKey: .ptimeMs)
        )
        rowMs = try container.decodeIfPresent(Double.self, forKey: .rowMs) ?? rowMs
        rows = try container.decode([CodedRow].self, forKey: .rows).map(\.row)
        droppedRows = try container.decodeIfPresent(Int.self, forKey: .droppedRows) ?? 0
        events = try container.decodeIfPresent([TraceEvent].self, forKey: .events) ?? []
        figures = try container.decodeIfPresent([Figure].self, forKey: .figures) ?? []
    }
}

/// A row as an array of values in the order of the columns.
private struct CodedRow: Codable {
    var row = PlayoutTraceRow()
    var origin = MediaTime.zero

    init(row: PlayoutTraceRow, origin: MediaTime) {
        self.row = row
        self.origin = origin
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode((row.time - origin).milliseconds)
        try container.encode(row.operation.traceName)
        if let delay = row.arrivalDelay { try container.encode(delay) } else { try container.encodeNil() }
        for value in [row.targetDelay, row.playoutDelay] { try container.encode(value) }
        let counts = [row.arrivedCount, row.missingCount, row.lateCount, row.discardedCount, row.recoveredCount]
        for count in counts { try container.encode(count) }
        for value in [row.concealed, row.stretched, row.level] { try container.encode(value) }
    }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        let milliseconds = try container.decode(Double.self)
        let name = try container.decode(String.self)
        guard 0...1e10 ~= milliseconds, let operation = PlayoutOperation(traceName: name) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "A row cannot be right.")
        }
        row.time = MediaTime(nanoseconds: Int64((milliseconds * 1e6).rounded()))
        row.operation = operation
        row.arrivalDelay = try container.decodeNil() ? nil : try container.decode(Float.self)
        row.targetDelay = try container.decode(Float.self)
        row.playoutDelay = try container.decode(Float.self)
        row.arrivedCount = try container.decode(UInt16.self)
        row.missingCount = try container.decode(UInt16.self)
        row.lateCount = try container.decode(UInt16.self)
        row.discardedCount = try container.decode(UInt16.self)
        row.recoveredCount = try container.decode(UInt16.self)
        row.concealed = try container.decode(Float.self)
        row.stretched = try container.decode(Float.self)
        row.level = try container.decode(Float.self)
    }
}
