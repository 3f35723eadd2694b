import MediaEngine

/// The estimated quality of a trace over time: the E-model, window by window.
///
/// The delay is that of packet and playout; that of the network's fastest packet is not in a trace.
enum QualityWindows {
    /// The length of a window and the step from one to the next, in seconds.
    static let length = 4.0
    static let step = 1.0

    /// The mean opinion score in the middle of each window in which packets came; nothing for a codec of which the
    /// E-model knows nothing.
    static func points(_ trace: TraceFile) -> [PlotSeries.Point] {
        // The name L16 leaves open how wide the sound is.
        let impairment = CodecImpairment(codecName: trace.codec, sampleRate: trace.clockRate)
        guard let impairment, trace.rows.count > 0 else { return [] }
        let rowsPerWindow = max(Int(length * 1000 / trace.rowMs), 1)
        let rowsPerStep = max(Int(step * 1000 / trace.rowMs), 1)
        let last = max(trace.rows.count - rowsPerWindow, 0)
        return stride(from: 0, through: last, by: rowsPerStep).map { first in
            let window = trace.rows[first..<min(first + rowsPerWindow, trace.rows.count)]
            let time = (Double(first) + Double(window.count) / 2) * trace.rowMs / 1000
            return PlotSeries.Point(time: time, value: score(window, impairment, ptimeMs: trace.ptimeMs))
        }
    }

    private static func score(
        _ rows: ArraySlice<PlayoutTraceRow>,
        _ impairment: CodecImpairment,
        ptimeMs: Double
    ) -> Double {
        func sum(_ value: (PlayoutTraceRow) -> UInt16) -> Double { rows.reduce(0) { $0 + Double(value($1)) } }
        let (arrived, missing) = (sum { $0.arrivedCount }, sum { $0.missingCount })
        guard arrived + missing > 0 else { return .nan }
        // What came late was missing when it was due; what was rebuilt is there.
        let lost = max(missing - sum { $0.recoveredCount }, 0) + sum { $0.discardedCount }
        let delay = rows.reduce(0) { $0 + Double($1.playoutDelay) } / Double(rows.count) + ptimeMs
        let model = EModel(
            impairment,
            oneWayDelay: .nanoseconds(Int64(min(max(delay, 0), 60_000) * 1e6)),
            lossPercent: min(lost / (arrived + missing) * 100, 100)
        )
        return model.score
    }
}
