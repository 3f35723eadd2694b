internal import CallBasics
internal import Glibc
import MediaEngine

/// Writes a trace file row by row, so that the trace of a long call takes no memory.
///
/// The file is whole JSON once `finish` has returned; what is buffered until then is at most 64 KB.
/// Thread: one at a time, never the media thread, which hands its rows to a `PlayoutTrace`.
final class TraceFileWriter {
    /// The file's path.
    let path: String
    /// Rows written.
    private(set) var rowCount = 0
    /// The time of the first row; nil before it.
    private(set) var origin: MediaTime?

    private var descriptor: Int32
    private var buffer: [UInt8] = []
    private var events: [TraceEvent] = []

    private static let bufferByteCount = 1 << 16

    /// Creates or empties the file at `path`, and writes the header of `trace`, whose rows are not written.
    ///
    /// - Throws: `TraceFileError` when the file cannot be written.
    init(path: String, header trace: TraceFile) throws(TraceFileError) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Self.systemError("opened for writing", path) }
        buffer.reserveCapacity(Self.bufferByteCount + 1024)
        append("{\"format\":\"\(TraceFile.formatName)\",\"version\":\(TraceFile.version),\"codec\":")
        append(quoted: trace.codec)
        append(",\"clockRate\":\(trace.clockRate),\"ptimeMs\":")
        append(trace.ptimeMs)
        append(",\"rowMs\":")
        append(trace.rowMs)
        append(",\"columns\":[\(TraceFile.columns.map { "\"\($0)\"" }.joined(separator: ","))],\"rows\":[")
        try flush()
    }

    deinit {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Adds a row.
    ///
    /// - Throws: `TraceFileError` when the disk is full or the file gone.
    func append(_ row: PlayoutTraceRow) throws(TraceFileError) {
        let start = origin ?? row.time
        origin = start
        append(rowCount == 0 ? "\n[" : ",\n[")
        append((row.time - start).milliseconds)
        append(",\"\(row.operation.traceName)\",")
        if let delay = row.arrivalDelay { append(Double(delay)) } else { append("null") }
        for value in [row.targetDelay, row.playoutDelay] {
            append(",")
            append(Double(value))
        }
        append(",\(row.arrivedCount),\(row.missingCount),\(row.lateCount)")
        append(",\(row.discardedCount),\(row.recoveredCount)")
        for value in [row.concealed, row.stretched, row.level, row.paused] {
            append(",")
            append(Double(value))
        }
        append(row.sequenceNumber.map { ",\($0)" } ?? ",null")
        append(",\(row.undecodableCount)]")
        rowCount += 1
        if buffer.count >= Self.bufferByteCount { try flush() }
    }

    /// Notes an event, to be written at the end; of very many, the first.
    func note(_ event: TraceEvent) {
        guard events.count < TraceFile.maximumEventCount else { return }
        events.append(event)
    }

    /// Brings what is buffered to the file.
    ///
    /// - Throws: `TraceFileError` when the disk is full or the file gone.
    func flush() throws(TraceFileError) {
        var start = 0
        while start < buffer.count, descriptor >= 0 {
            let count = buffer.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.map { $0 + start }, buffer.count - start)
            }
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw Self.systemError("written", path)
            }
            start += count
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes the end of the file and closes it; a second call does nothing.
    ///
    /// - Throws: `TraceFileError` when the disk is full or the file gone.
    func finish(
        droppedRows: Int,
        figures: [TraceFile.Figure] = [],
        stream: TraceFile.Stream = TraceFile.Stream()
    ) throws(TraceFileError) {
        guard descriptor >= 0 else { return }
        append("\n],\"droppedRows\":\(max(droppedRows, 0)),\"events\":[")
        for (index, event) in events.enumerated() {
            append(index == 0 ? "\n{\"timeMs\":" : ",\n{\"timeMs\":")
            append(event.timeMs)
            append(",\"kind\":\"\(event.kind.rawValue)\",\"amount\":\(event.amount)}")
            if buffer.count >= Self.bufferByteCount { try flush() }
        }
        append("],\"figures\":[")
        for (index, figure) in figures.enumerated() {
            append(index == 0 ? "\n{\"name\":" : ",\n{\"name\":")
            append(quoted: figure.name)
            append(",\"value\":")
            append(quoted: figure.value)
            append("}")
        }
        append("],\"stream\":{")
        append(stream)
        append("}}\n")
        defer { descriptor = -1 }
        try flush()
        guard Glibc.close(descriptor) == 0 else { throw Self.systemError("closed", path) }
    }

    // MARK: JSON

    private func append(_ text: String) { buffer.append(contentsOf: text.utf8) }

    /// The number with at most two decimals.
    private func append(_ value: Double) {
        let isUsable = value.isFinite && abs(value) < 1e13
        let hundredths = isUsable ? Int((value * 100).rounded()) : 0
        if hundredths < 0 { append("-") }
        let (whole, rest) = abs(hundredths).quotientAndRemainder(dividingBy: 100)
        append("\(whole)")
        guard rest > 0 else { return }
        append(rest % 10 == 0 ? ".\(rest / 10)" : rest < 10 ? ".0\(rest)" : ".\(rest)")
    }

    private func append(_ stream: TraceFile.Stream) {
        var separator = ""
        func member(_ name: String, _ value: () -> Void) {
            append("\(separator)\"\(name)\":")
            value()
            separator = ","
        }
        if let start = stream.startUnixMs { member("startUnixMs") { append("\(start)") } }
        if let source = stream.source { member("source") { append(quoted: source) } }
        if let destination = stream.destination { member("destination") { append(quoted: destination) } }
        if let ssrc = stream.ssrc { member("ssrc") { append("\(ssrc)") } }
    }

    private func append(quoted text: String) {
        append("\"")
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": append("\\\(scalar)")
            case _ where scalar.value < 0x20:
                append("\\u00\(scalar.value < 16 ? "0" : "")\(String(scalar.value, radix: 16))")
            default: append(String(scalar))
            }
        }
        append("\"")
    }

    private static func systemError(_ action: String, _ path: String) -> TraceFileError {
        TraceFileError(
            .system,
            "\(path) could not be \(action): \(String(cString: strerror(errno))). "
                + "Choose a place that can be written and has room."
        )
    }
}
