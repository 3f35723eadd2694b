import ArgumentParser
import MediaEngine

/// Where a call's report goes as OpenMetrics text.
struct MetricsOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("Write the report as OpenMetrics text (Prometheus) at the end.", valueName: "file"),
        completion: .file(extensions: ["prom"])
    )
    var metrics: String?

    /// Writes the file, if one was asked for.
    ///
    /// - Throws: `ToolFailure` when it cannot be written.
    func write(_ report: CallReport) throws {
        if let metrics { try TextFile.write(report.openMetrics, to: metrics) }
    }
}
