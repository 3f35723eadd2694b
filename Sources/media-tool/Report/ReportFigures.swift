/// The figures of a call's report, as the trace has them: each has one definition, that of the report.
struct ReportFigures {
    private let values: [String: String]

    /// The figures of `trace`.
    init(_ trace: TraceFile) {
        values = Dictionary(trace.figures.map { ($0.name, $0.value) }) { first, _ in first }
    }

    /// The number of that name; nil where it is not known.
    func number(_ name: String) -> Double? {
        values[name].flatMap(Double.init).flatMap { $0.isFinite && abs($0) < 1e12 ? $0 : nil }
    }

    /// The share of the packets sent that never came, in percent.
    var lossPercent: Double? {
        guard let lost = number("received lost"), let received = number("received packets"), lost + received > 0
        else { return nil }
        return min(max(lost / (lost + received) * 100, 0), 100)
    }

    /// The mean opinion score: of conversing where the delay is known, else of listening.
    var score: (value: Double, isConversational: Bool)? {
        let scale = 1.0...5.0
        if let value = number("quality mos conversational"), scale ~= value { return (value, true) }
        return number("quality mos listening").flatMap { scale ~= $0 ? ($0, false) : nil }
    }
}
