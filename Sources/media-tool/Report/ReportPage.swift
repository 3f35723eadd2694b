import MediaEngine

/// A trace as one HTML page that needs nothing else: plots, tables, and why it was choppy.
struct ReportPage {
    /// What the page is about: a file's name.
    let title: String
    /// The rows.
    let trace: TraceFile
    /// The gaps in them.
    let analysis: GapAnalysis
    /// Sentences about the source.
    let notes: [String]

    private static let longestGapTable = 500
    private static let longestBandList = 2000

    private var seconds: Double { max(trace.duration.milliseconds / 1000, 0.02) }
    private var barWidth: Double { max(0.1, (seconds / 200 * 10).rounded(.up) / 10) }

    /// The page.
    var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(HTMLText.escaped(title)): call report</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <h1>\(HTMLText.escaped(title))</h1>
        <p class="lead">\(lead)</p>
        \(noteList)\(gapSection)
        <h2>Over time</h2>
        \(plots.map(\.html).joined())\(figureSection)
        </body>
        </html>

        """
    }

    // MARK: Words

    private var lead: String {
        let codec = "\(HTMLText.escaped(trace.codec)), \(HTMLText.number(trace.ptimeMs)) ms per packet"
        let arrived = trace.rows.reduce(0) { $0 + Int($1.arrivedCount) }
        return "\(codec), \(HTMLText.time(seconds)), \(arrived) packets arrived."
    }

    private var noteList: String {
        var all = notes
        if trace.droppedRows > 0 {
            all.append("\(trace.droppedRows) rows of the trace were lost: the machine was too busy to write them.")
        }
        if trace.rows.isEmpty { all.append("The trace has no rows: nothing was played.") }
        guard !all.isEmpty else { return "" }
        return "<ul class=\"notes\">" + all.map { "<li>\(HTMLText.escaped($0))</li>" }.joined() + "</ul>\n"
    }

    private var gapSection: String {
        var text = "<h2>Why it was choppy</h2>\n"
        guard !analysis.gaps.isEmpty else {
            return text + "<p class=\"good\">It was not: there is no audible gap.</p>\n"
        }
        let total = analysis.totalDuration.milliseconds
        let share = total / (seconds * 10)
        let count = analysis.gaps.count
        text += "<p>\(count) audible gap\(count == 1 ? "" : "s"), \(HTMLText.number(total.rounded())) ms together, "
        text += "\(HTMLText.number(share)) % of the time.</p>\n<table><tr><th>Cause</th><th class=\"n\">Gaps</th>"
        text += "<th class=\"n\">ms</th><th>What it is</th></tr>\n"
        for entry in analysis.summary {
            text += "<tr><td>\(Self.mark(entry.cause))</td><td class=\"n\">\(entry.count)</td>"
            text += "<td class=\"n\">\(HTMLText.number(entry.duration.milliseconds.rounded()))</td>"
            text += "<td>\(HTMLText.escaped(entry.cause.explanation))</td></tr>\n"
        }
        text += "</table>\n<details\(count <= 20 ? " open" : "")><summary>Every gap</summary>\n<table>"
        text += "<tr><th class=\"n\">At</th><th class=\"n\">ms</th><th>Cause</th></tr>\n"
        for gap in analysis.gaps.prefix(Self.longestGapTable) {
            text += "<tr><td class=\"n\">\(HTMLText.time(gap.start.milliseconds / 1000))</td>"
            text += "<td class=\"n\">\(HTMLText.number(gap.duration.milliseconds.rounded()))</td>"
            text += "<td>\(Self.mark(gap.cause))</td></tr>\n"
        }
        text += "</table>"
        if count > Self.longestGapTable { text += "<p>and \(count - Self.longestGapTable) more</p>" }
        return text + "</details>\n"
    }

    private var figureSection: String {
        var text = "<h2>Figures</h2>\n<div class=\"tables\">\n" + table(ofRows) + table(ofTime)
        if !trace.figures.isEmpty { text += table("The call", trace.figures.map { ($0.name, $0.value) }) }
        return text + "</div>\n"
    }

    private var ofRows: (String, [(String, String)]) {
        func sum(_ value: (PlayoutTraceRow) -> UInt16) -> String { "\(trace.rows.reduce(0) { $0 + Int(value($1)) })" }
        return (
            "Packets",
            [
                ("arrived", sum { $0.arrivedCount }), ("missing when due", sum { $0.missingCount }),
                ("late", sum { $0.lateCount }), ("recovered", sum { $0.recoveredCount }),
                ("discarded", sum { $0.discardedCount }),
            ]
        )
    }

    private var ofTime: (String, [(String, String)]) {
        func milliseconds(_ values: some Sequence<Float>) -> String {
            HTMLText.number(values.reduce(0) { $0 + Double($1) }.rounded())
        }
        let delays = trace.rows.compactMap(\.arrivalDelay).sorted()
        func quantile(_ share: Double) -> String {
            guard !delays.isEmpty else { return "unknown" }
            return HTMLText.number(Double(delays[Int(Double(delays.count - 1) * share)]))
        }
        let played = trace.rows.filter { $0.operation != .idle }
        let mean = played.isEmpty ? 0 : played.reduce(0) { $0 + Double($1.playoutDelay) } / Double(played.count)
        return (
            "Delay and sound, ms",
            [
                ("arrival delay, median", quantile(0.5)), ("arrival delay, 95 %", quantile(0.95)),
                ("arrival delay, longest", quantile(1)), ("playout delay, mean", HTMLText.number(mean)),
                ("concealed", milliseconds(trace.rows.lazy.map(\.concealed))),
                ("added by stretching", milliseconds(trace.rows.lazy.map { max($0.stretched, 0) })),
                ("taken away by stretching", milliseconds(trace.rows.lazy.map { max(-$0.stretched, 0) })),
            ]
        )
    }

    private func table(_ content: (String, [(String, String)])) -> String { table(content.0, content.1) }

    private func table(_ title: String, _ rows: [(String, String)]) -> String {
        "<table><tr><th colspan=\"2\">\(HTMLText.escaped(title))</th></tr>\n"
            + rows.map { name, value in
                "<tr><td>\(HTMLText.escaped(name))</td><td class=\"n\">\(HTMLText.escaped(value))</td></tr>\n"
            }.joined() + "</table>\n"
    }

    // MARK: Plots

    private var plots: [Plot] {
        var plots = [
            Plot(
                title: "Delay",
                unit: "ms",
                series: [
                    PlotSeries(
                        name: "arrival delay",
                        color: "#8fb4d9",
                        style: .dots,
                        points: points { $0.arrivalDelay }
                    ),
                    PlotSeries(name: "target", color: "#d08a1d", style: .line, points: points { $0.targetDelay }),
                    PlotSeries(
                        name: "playout delay",
                        color: "#1f5fa8",
                        style: .line,
                        points: points { $0.playoutDelay }
                    ),
                ],
                duration: seconds,
                limits: 0...2000
            ),
            Plot(
                title: "Packets",
                unit: "in \(HTMLText.number(barWidth)) s",
                series: [
                    bars("missing when due", "#b5352b") { Double($0.missingCount) },
                    bars("late", "#e08a2e") { Double($0.lateCount) },
                    bars("recovered", "#3b8f4d") { Double($0.recoveredCount) },
                    bars("discarded", "#767f88") { Double($0.discardedCount) },
                ],
                duration: seconds
            ),
            Plot(
                title: "Invented sound",
                unit: "ms in \(HTMLText.number(barWidth)) s",
                series: [bars("concealed", "#7a4fa3") { Double($0.concealed) }],
                duration: seconds
            ),
            Plot(
                title: "Stretched sound",
                unit: "ms in \(HTMLText.number(barWidth)) s; above 0 added, below 0 taken away",
                series: [
                    bars("added", "#2f8f8a") { Double(max($0.stretched, 0)) },
                    bars("taken away", "#a8803a") { Double(min($0.stretched, 0)) },
                ],
                duration: seconds
            ),
            Plot(
                title: "Level of what was heard",
                unit: "dBov",
                series: [
                    PlotSeries(
                        name: "level",
                        color: "#33414f",
                        style: .line,
                        points: points { max($0.level, -100) }
                    )
                ],
                duration: seconds,
                range: -100...0,
                limits: -100...0
            ),
        ]
        let quality = QualityWindows.points(trace)
        if !quality.isEmpty {
            plots.append(
                Plot(
                    title: "Estimated quality",
                    unit: "MOS by the E-model, in windows of \(HTMLText.number(QualityWindows.length)) s; "
                        + "the delay of the network's fastest packet is not counted",
                    series: [PlotSeries(name: "MOS", color: "#23723a", style: .line, points: quality)],
                    duration: seconds,
                    range: 1...4.5,
                    limits: 1...5
                )
            )
        }
        let bands = bands
        for index in plots.indices {
            plots[index].barWidth = barWidth
            plots[index].bands = bands
        }
        return plots
    }

    private func points(_ value: (PlayoutTraceRow) -> Float?) -> [PlotSeries.Point] {
        trace.rows.compactMap { row in
            value(row).map { PlotSeries.Point(time: time(row), value: Double($0)) }
        }
    }

    private func bars(_ name: String, _ color: String, _ value: (PlayoutTraceRow) -> Double) -> PlotSeries {
        let points = trace.rows.map { PlotSeries.Point(time: time($0), value: value($0)) }
        return PlotSeries(name: name, color: color, style: .bars, points: PlotSeries.sums(points, width: barWidth))
    }

    private func time(_ row: PlayoutTraceRow) -> Double {
        (row.time - (trace.rows.first?.time ?? .zero)).milliseconds / 1000
    }

    private var bands: [Plot.Band] {
        analysis.gaps.prefix(Self.longestBandList).map { gap in
            let start = gap.start.milliseconds / 1000
            let length = HTMLText.number(gap.duration.milliseconds.rounded())
            return Plot.Band(
                start: start,
                duration: gap.duration.milliseconds / 1000,
                color: Self.color(gap.cause),
                title: "\(gap.cause.title), \(length) ms at \(HTMLText.time(start))"
            )
        }
    }

    // MARK: Looks

    private static func mark(_ cause: AudibleGap.Cause) -> String {
        "<span class=\"cause\"><i style=\"background:\(color(cause))\"></i>\(HTMLText.escaped(cause.title))</span>"
    }

    private static func color(_ cause: AudibleGap.Cause) -> String {
        switch cause {
        case .lost: "#c8372d"
        case .late: "#e8902f"
        case .senderStalled: "#8b4fb3"
        case .drift: "#1f9a86"
        case .xrun: "#2b4a78"
        case .discarded: "#7d868f"
        case .unknown: "#b3b9bf"
        }
    }

    private static let style = """
        body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #1d2730; background: #fff; \
        max-width: 1060px; margin: 1.5rem auto 3rem; padding: 0 1rem; }
        h1 { font-size: 1.5rem; margin: 0 0 .2rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; }
        .lead { color: #53616e; margin: 0; } .good { color: #23723a; }
        .notes { background: #fdf5df; border-left: 3px solid #d8a526; padding: .5rem .8rem .5rem 1.8rem; }
        table { border-collapse: collapse; margin: .4rem 0; } th { text-align: left; font-weight: 600; }
        td, th { padding: .18rem 1.2rem .18rem 0; border-bottom: 1px solid #e3e8ec; vertical-align: top; }
        .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
        .tables { display: flex; flex-wrap: wrap; gap: 0 3rem; align-items: flex-start; }
        .cause { white-space: nowrap; } i { display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; }
        figure { margin: 0 0 1rem; overflow-x: auto; } figcaption { font-size: .9rem; } figcaption span { margin-left: 1.1rem; color: #53616e; \
        white-space: nowrap; }
        svg { width: 100%; min-width: 640px; height: auto; display: block; } svg text { font-size: 11px; fill: #53616e; }
        .field { fill: #fafbfc; stroke: #d5dce2; } .grid { stroke: #e6ebef; } .zero { stroke: #aeb8c1; }
        summary { cursor: pointer; color: #1f5fa8; margin-top: .4rem; }
        """
}
