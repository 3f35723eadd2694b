internal import CallBasics
import MediaEngine

/// Takes the rows of a call's playout, into a file or into memory, and notes what happened beside them.
final class TraceRecorder {
    private let call: Call
    private let trace: PlayoutTrace
    private let writer: TraceFileWriter?
    private var kept: TraceFile
    private var origin: MediaTime?
    private let unixNanosecondsAtZero: Int64?
    private var stream = TraceFile.Stream()
    private var lost = 0
    private var sourceChanges: UInt64 = 0
    private var restarts: UInt64 = 0
    private var markers = 0
    private var xruns = 0
    private var framesLost = 0
    private var lastFlush = MediaTime.zero

    /// What is kept in memory ends after a day.
    private static let maximumKeptRows = 24 * 3600 * 50
    /// A sender may mark every packet; beyond so many, markers are not noted.
    private static let maximumMarkers = 4096

    /// Takes the rows of `call`, whose stream must have been told to trace.
    ///
    /// - Parameters:
    ///   - call: The call.
    ///   - codec: Its codec.
    ///   - ptime: Audio per packet.
    ///   - unixNanosecondsAtZero: The time of day at the zero of the engine's time; nil where that is no time of day.
    ///   - cutEnds: When packets behind pauses of the sender arrive that a replay has cut short; in their order.
    ///   - path: The file; nil keeps the rows in memory alone.
    ///   - keepsRows: Whether the rows are also kept in memory.
    /// - Throws: `TraceFileError` when the file cannot be written.
    init(
        _ call: Call,
        codec: CodecDescription,
        ptime: Duration,
        unixNanosecondsAtZero: Int64?,
        cutEnds: [MediaTime] = [],
        path: String?,
        keepsRows: Bool = false
    ) throws {
        guard let trace = call.playoutTrace else {
            throw ToolFailure("\(call.name) traces no playout. Report this: the tool should have asked for it.")
        }
        self.call = call
        self.trace = trace
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
        let header = TraceFile(codec: codec.name, clockRate: codec.clockRate, ptimeMs: ptime.milliseconds)
        kept = header
        writer = try path.map { try TraceFileWriter(path: $0, header: header) }
        isKeeping = keepsRows
        self.cutEnds = cutEnds[...]
    }

    private let isKeeping: Bool
    /// When packets behind pauses that were cut short arrive, the next one first.
    private var cutEnds: ArraySlice<MediaTime>

    /// Takes what waits; to be called every second or more often.
    ///
    /// - Throws: `TraceFileError` when the file cannot be written.
    func poll(at now: MediaTime) throws {
        var failure: TraceFileError?
        trace.drain { taken in
            let row = behindCut(taken)
            origin = origin ?? row.time
            if isKeeping, kept.rows.count < Self.maximumKeptRows {
                var own = row
                own.time = MediaTime.zero + (row.time - (origin ?? row.time))
                kept.rows.append(own)
            }
            noteEvents(of: row)
            guard failure == nil else { return }
            do throws(TraceFileError) { try writer?.append(row) } catch { failure = error }
        }
        if let failure { throw failure }
        noteEvents(at: now)
        guard now - lastFlush >= .milliseconds(500) else { return }
        lastFlush = now
        try writer?.flush()
    }

    /// Writes the end of the file, with the figures of `report` and those that the stream's receiver has told; answers the trace
    /// if it was kept.
    ///
    /// - Throws: `TraceFileError` when the file cannot be written.
    @discardableResult
    func finish(_ report: LegReport, receiverReports: JSONValue? = nil, at now: MediaTime) throws -> TraceFile {
        try poll(at: now)
        kept.droppedRows = trace.droppedCount
        kept.figures = report.json.figures() + (receiverReports?.figures("receiver reports") ?? [])
        kept.stream = stream
        try writer?.finish(droppedRows: kept.droppedRows, figures: kept.figures, stream: stream)
        return kept
    }

    /// The row; what is played first behind a pause that was cut short says that the sender was silent, and did not jump.
    private func behindCut(_ row: PlayoutTraceRow) -> PlayoutTraceRow {
        guard let end = cutEnds.first, row.time + PlayoutTrace.rowDuration > end else { return row }
        var row = row
        row.jumpCount = 0
        if row.isPlayed {
            row.paused = max(row.paused, Float(CapturedLink.cutPause.milliseconds))
            cutEnds.removeFirst()
        }
        return row
    }

    private func noteEvents(of row: PlayoutTraceRow) {
        let time = row.time - (origin ?? row.time)
        if row.jumpCount > 0 { note(.jump, Int(row.jumpCount), time) }
        if row.codecChangeCount > 0 { note(.codecChange, Int(row.codecChangeCount), time) }
        guard row.markedCount > 0, markers < Self.maximumMarkers else { return }
        markers += 1
        note(.marker, Int(row.markedCount), time)
    }

    /// What is known of the stream, and what changed in it.
    private func noteStream(_ rtp: RTPStatistics, _ origin: MediaTime, at now: MediaTime) {
        if let zero = unixNanosecondsAtZero, stream.startUnixMs == nil {
            stream.startUnixMs = max((zero &+ origin.nanoseconds) / 1_000_000, 0)
        }
        stream.source = rtp.remoteAddress.map { "\($0)" } ?? stream.source
        stream.destination = "\(call.localAddress)"
        guard let ssrc = rtp.remoteSSRC else { return }
        if stream.ssrc != nil, rtp.sourceChangeCount != sourceChanges { note(.sourceChange, Int(ssrc), now - origin) }
        stream.ssrc = stream.ssrc ?? ssrc
        sourceChanges = rtp.sourceChangeCount
        if rtp.restartCount != restarts { note(.restart, Int(rtp.restartCount &- restarts), now - origin) }
        restarts = rtp.restartCount
    }

    private func noteEvents(at now: MediaTime) {
        guard let origin else { return }
        let rtp = call.rtpStatistics
        noteStream(rtp, origin, at: now)
        let lostNow = Int(clamping: rtp.lostCount)
        if lostNow != lost { note(.lost, lostNow - lost, now - origin) }
        lost = lostNow
        guard let card = call.playbackStatistics else { return }
        if card.xruns != xruns {
            let length = CallEngine.cardFormat.duration(ofFrames: max(card.framesLost - framesLost, 0))
            note(.xrun, Int(length.milliseconds.rounded()), now - origin)
        }
        (xruns, framesLost) = (card.xruns, card.framesLost)
    }

    private func note(_ kind: TraceEvent.Kind, _ amount: Int, _ time: Duration) {
        let event = TraceEvent(timeMs: max(time.milliseconds, 0), kind: kind, amount: amount)
        writer?.note(event)
        if isKeeping, kept.events.count < TraceFile.maximumEventCount { kept.events.append(event) }
    }
}

extension JSONValue {
    /// Every value inside with the names that lead to it, as people read them: "received concealed ms".
    func figures(_ name: String = "") -> [TraceFile.Figure] {
        switch self {
        case .object(let members):
            members.flatMap { $0.1.figures(name.isEmpty ? Self.words($0.0) : "\(name) \(Self.words($0.0))") }
        case .array(let values):
            values.enumerated().flatMap { $0.element.figures("\(name) \($0.offset + 1)") }
        case .null: [TraceFile.Figure(name: name, value: "unknown")]
        case .string(let text): [TraceFile.Figure(name: name, value: text.isEmpty ? "none" : text)]
        case .bool, .integer, .number: [TraceFile.Figure(name: name, value: text)]
        }
    }

    /// "concealedMs" as "concealed ms".
    private static func words(_ key: String) -> String {
        key.map { $0.isUppercase ? " \($0.lowercased())" : String($0) }.joined()
    }
}
