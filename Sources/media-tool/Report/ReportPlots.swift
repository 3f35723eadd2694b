import MediaEngine

/// What happened over time in a direction: those plots in which there is something to see.
struct ReportPlots {
    private let leg: ReportLeg
    private let seconds: Double
    private let barWidth: Double

    private var trace: TraceFile { leg.trace }
    private static let longestDelay = 2000.0

    /// The plots of `leg`.
    init(_ leg: ReportLeg) {
        self.leg = leg
        seconds = leg.seconds
        barWidth = max(0.1, (leg.seconds / 200 * 10).rounded(.up) / 10)
    }

    /// The section; nothing where there is nothing to see.
    var html: String {
        let bands = ReportGaps(leg).lane.bands
        let plots = [delay, packets, concealment, stretching, level, quality].map { plot in
            var plot = plot
            plot.barWidth = barWidth
            plot.bands = bands
            return plot.html
        }.joined()
        return plots.isEmpty ? "" : "<h3>Over time</h3>\n\(plots)"
    }

    private var delay: Plot {
        let series = [
            line("arrival delay", "arrival", .dots) { $0.arrivalDelay },
            line("wait of the fastest packet", "delay", .line) { $0.operation == .idle ? nil : $0.playoutDelay },
            line("its target", "target", .line) { $0.operation == .idle ? nil : $0.targetDelay },
        ]
        let isCut = series.contains { $0.points.contains { $0.value > Self.longestDelay } }
        let unit = "ms beyond the fastest packet" + (isCut ? "; cut off at \(HTMLText.number(Self.longestDelay))" : "")
        return Plot(title: "Delay", unit: unit, series: series, duration: seconds, limits: 0...Self.longestDelay)
    }

    private var packets: Plot {
        let lost = trace.events.filter { $0.kind == .lost && 0...1e12 ~= $0.timeMs }.map { event in
            PlotSeries.Point(time: event.timeMs / 1000, value: Double(event.amount))
        }
        return Plot(
            title: "Packets",
            unit: "in \(HTMLText.number(barWidth)) s",
            series: [
                PlotSeries(
                    name: "lost",
                    color: "lost",
                    style: .bars,
                    points: PlotSeries.sums(lost, width: barWidth).filter { $0.value > 0 }
                ),
                bars("late", "late") { Double($0.lateCount) },
                bars("discarded", "discarded") { Double($0.discardedCount) },
                bars("recovered", "recovered") { Double($0.recoveredCount) },
            ],
            duration: seconds
        )
    }

    private var concealment: Plot {
        let isPause = GapAnalysis.pauses(in: trace.rows)
        let points = trace.rows.indices.map { index in
            let row = trace.rows[index]
            let isSilence = isPause[index] || row.operation == .comfort
            return PlotSeries.Point(time: time(row), value: isSilence ? 0 : Double(row.concealed))
        }
        return Plot(
            title: "Concealed sound",
            unit: "ms in \(HTMLText.number(barWidth)) s",
            series: [
                PlotSeries(
                    name: "concealed",
                    color: "concealed",
                    style: .bars,
                    points: PlotSeries.sums(points, width: barWidth)
                )
            ],
            duration: seconds
        )
    }

    private var stretching: Plot {
        Plot(
            title: "Stretched sound",
            unit: "ms in \(HTMLText.number(barWidth)) s; above 0 added, below 0 taken away",
            series: [
                bars("added", "added") { Double(max($0.stretched, 0)) },
                bars("taken away", "taken") { Double(min($0.stretched, 0)) },
            ],
            duration: seconds
        )
    }

    private var level: Plot {
        Plot(
            title: "Level of what was heard",
            unit: "dBov",
            series: [
                line("level", "level", .peaks) { $0.operation == .idle ? nil : min(max($0.level, -100), 0) }
            ],
            duration: seconds,
            range: -100...0,
            limits: -100...0
        )
    }

    private var quality: Plot {
        Plot(
            title: "Estimated quality",
            unit: "MOS of \(HTMLText.number(QualityWindows.length)) s each; the network's own delay is not counted",
            series: [PlotSeries(name: "MOS", color: "mos", style: .line, points: QualityWindows.points(trace))],
            duration: seconds,
            range: 1...4.5,
            limits: 1...5
        )
    }

    /// A value of each row; where there is none, a line is broken.
    private func line(
        _ name: String,
        _ color: String,
        _ style: PlotSeries.Style,
        _ value: (PlayoutTraceRow) -> Float?
    ) -> PlotSeries {
        let points = trace.rows.map { row in
            PlotSeries.Point(time: time(row), value: value(row).map(Double.init) ?? .nan)
        }
        return PlotSeries(name: name, color: color, style: style, points: points)
    }

    private func bars(_ name: String, _ color: String, _ value: (PlayoutTraceRow) -> Double) -> PlotSeries {
        let points = trace.rows.map { PlotSeries.Point(time: time($0), value: value($0)) }
        return PlotSeries(name: name, color: color, style: .bars, points: PlotSeries.sums(points, width: barWidth))
    }

    private func time(_ row: PlayoutTraceRow) -> Double {
        (row.time - (trace.rows.first?.time ?? .zero)).milliseconds / 1000
    }
}
