import ArgumentParser
import MediaEngine

/// Where a call's report goes as text for Prometheus.
struct MetricsOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write the report in Prometheus' text format at the end, as node_exporter reads it.",
            valueName: "file"
        ),
        completion: .file(extensions: ["prom"])
    )
    var metrics: String?

    /// Writes the file, if one was asked for.
    ///
    /// - Throws: `ToolFailure` when it cannot be written.
    func write(_ report: CallReport) throws {
        if let metrics { try TextFile.write(report.prometheusText, to: metrics) }
    }
}
