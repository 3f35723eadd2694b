import MediaEngine

/// The gaps and events of the whole length on one lane: gap by gap, or, of many, how dense they are.
struct GapLane {
    /// The gaps.
    let gaps: [AudibleGap]
    /// The events, those of lost packets left out.
    let events: [TraceEvent]
    /// The length of the time axis in seconds.
    let duration: Double

    /// Beyond so many, gaps are drawn as a strip of density.
    static let longestBandList = 50
    private static let stretchCount = 300
    private static let gapHeight = 26.0
    private static let eventHeight = 16.0
    private static let height = gapHeight + eventHeight
    /// Events nearer than that are one mark, in units of the plot's width.
    private static let markWidth = 3.0

    /// The gaps one by one; none where they are too many.
    var bands: [Plot.Band] {
        guard gaps.count <= Self.longestBandList else { return [] }
        return gaps.map { gap in
            let start = gap.start.milliseconds / 1000
            let length = HTMLText.number(gap.duration.milliseconds.rounded())
            return Plot.Band(
                start: start,
                duration: gap.duration.milliseconds / 1000,
                color: gap.cause.rawValue,
                title: "\(gap.cause.title), \(length) ms at \(HTMLText.time(start))"
            )
        }
    }

    /// The lane as a `figure` element; nothing where nothing happened but markers.
    var html: String {
        // Markers alone are told in a sentence.
        guard !gaps.isEmpty || events.contains(where: { $0.kind != .marker }) else { return "" }
        let isDense = gaps.count > Self.longestBandList
        var svg =
            "<svg viewBox=\"0 0 \(Int(Plot.width)) \(Int(Plot.top + Self.height + 24))\" role=\"img\""
            + " aria-label=\"Gaps and events\" data-d=\"\(HTMLText.number(duration))\">"
        svg += Plot.field(height: Self.height) + Plot.timeGrid(duration, height: Self.height)
        svg += isDense ? strip : bands.map { rectangle($0, opacity: 0.9) }.joined()
        svg += marks + Plot.pointer(height: Self.height) + "</svg>"
        let kinds = TraceEvent.Kind.allCases.filter { kind in events.contains { $0.kind == kind } }
        let causes = AudibleGap.Cause.allCases.filter { cause in gaps.contains { $0.cause == cause } }
        let legend =
            causes.map { Self.key($0.rawValue, $0.title) } + kinds.map { Self.key("e-\($0.rawValue)", $0.title) }
        return Plot.figure(
            "Gaps and events",
            isDense
                ? "above: the stronger the colour, the more sound was missing; below: events"
                : "above: gaps; below: events",
            legend: legend.joined(),
            svg
        )
    }

    private static func key(_ color: String, _ name: String) -> String {
        "<span><i style=\"background:var(--\(color))\"></i>\(HTMLText.escaped(name))</span>"
    }

    private func rectangle(_ band: Plot.Band, opacity: Double) -> String {
        let start = Plot.horizontal(band.start, duration)
        let width = max(Plot.horizontal(band.start + band.duration, duration) - start, 1.5)
        return "<rect style=\"fill:var(--\(band.color))\" opacity=\"\(HTMLText.number(opacity))\""
            + " x=\"\(HTMLText.number(start))\" y=\"\(HTMLText.number(Plot.top))\" width=\"\(HTMLText.number(width))\""
            + " height=\"\(HTMLText.number(Self.gapHeight))\"><title>\(HTMLText.escaped(band.title))</title></rect>"
    }

    // MARK: Density

    private struct Stretch {
        var missing = 0.0
        var causes: [AudibleGap.Cause: Double] = [:]
    }

    /// What is missing in each stretch of the whole length.
    private var stretches: [Stretch] {
        let length = max(duration, 1e-3) / Double(Self.stretchCount)
        var stretches = [Stretch](repeating: Stretch(), count: Self.stretchCount)
        for gap in gaps {
            let start = min(max(gap.start.milliseconds / 1000, 0), duration)
            let end = min(start + gap.duration.milliseconds / 1000, duration)
            let first = min(Int(start / length), Self.stretchCount - 1)
            let last = min(max(Int(end / length), first), Self.stretchCount - 1)
            for index in first...last {
                let part = min(end, Double(index + 1) * length) - max(start, Double(index) * length)
                stretches[index].missing += max(part, 0)
                stretches[index].causes[gap.cause, default: 0] += max(part, 0)
            }
        }
        return stretches
    }

    private var strip: String {
        let length = duration / Double(Self.stretchCount)
        return stretches.enumerated().map { index, stretch in
            let causes = AudibleGap.Cause.allCases
            guard stretch.missing > 0,
                let worst = causes.max(by: { stretch.causes[$0, default: 0] < stretch.causes[$1, default: 0] })
            else { return "" }
            let start = Double(index) * length
            let share = min(stretch.missing / max(length, 1e-9), 1)
            let missing = HTMLText.number((stretch.missing * 1000).rounded())
            let from = HTMLText.time(start)
            let until = HTMLText.time(start + length)
            let band = Plot.Band(
                start: start,
                duration: length,
                color: worst.rawValue,
                title: "\(from) to \(until): \(missing) ms missing, mostly \(worst.title)"
            )
            // A quarter of the sound missing is as bad as all of it; a single short gap is still seen.
            return rectangle(band, opacity: 0.2 + 0.8 * (min(share * 4, 1)).squareRoot())
        }.joined()
    }

    // MARK: Events

    private var marks: String {
        var taken: Set<[Int]> = []
        var svg = ""
        let kinds = TraceEvent.Kind.allCases
        for event in events {
            let x = Plot.horizontal(event.timeMs / 1000, duration)
            let kind = kinds.firstIndex(of: event.kind) ?? 0
            guard taken.insert([Int(x / Self.markWidth), kind]).inserted else { continue }
            svg += "<rect style=\"fill:var(--e-\(event.kind.rawValue))\" x=\"\(HTMLText.number(x - 1))\""
            svg += " y=\"\(HTMLText.number(Plot.top + Self.gapHeight + 2))\" width=\"2\""
            svg += " height=\"\(HTMLText.number(Self.eventHeight - 4))\">"
            svg += "<title>\(event.kind.title) at \(HTMLText.time(event.timeMs / 1000))</title></rect>"
        }
        return svg
    }
}

extension TraceEvent.Kind {
    /// What happened, in a few words.
    var title: String {
        switch self {
        case .xrun: "card ran empty"
        case .lost: "packets lost"
        case .sourceChange: "another source"
        case .restart: "new sequence"
        case .jump: "time stamps jumped"
        case .codecChange: "another codec"
        case .marker: "marker"
        }
    }
}
