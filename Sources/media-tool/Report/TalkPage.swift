/// A recorded call with an agent as one HTML page: what was said, cut and interrupted, on one time line.
struct TalkPage {
    /// What the page is about: a file's name.
    let title: String
    let record: TalkRecord
    /// How loud both sides were; nil where no sound lies beside the record.
    let levels: TalkLevels?

    /// More rows are counted only, and no more of each kind is drawn.
    private static let rowLimit = 1000

    /// In seconds.
    var duration: Double { max(levels?.duration ?? 0, record.events.map(\.time).max() ?? 0, 0.1) }

    var html: String {
        let plots = "<section>\n\(agentPlot.html)\(otherPlot.html)\(legend)\n</section>\n"
        return HTMLPage(
            title: "\(title): a call with an agent",
            body: heading + plots + table,
            script: ReportStyle.script
        )
        .html
    }

    /// What it came to, in words.
    var summary: [String] {
        var parts = ["\(HTMLText.time(duration)) with an agent"]
        if let answers = record.answers {
            let (median, longest) = (HTMLText.number(answers.median * 1000), HTMLText.number(answers.longest * 1000))
            let count = English.count(answers.count, "answer")
            parts.append("\(count), after \(median) ms (median), \(longest) ms at most")
        }
        let (pauses, resumptions) = (record.count("agentPaused"), record.count("agentResumed"))
        if pauses > 0 { parts.append("\(English.count(pauses, "interruption")), \(resumptions) of them for nothing") }
        return parts
    }

    private var heading: String {
        var text = "<h1 class=\"verdict\">\(HTMLText.escaped(summary.joined(separator: "; ")))</h1>"
        text += "<p class=\"file\">\(HTMLText.escaped(title)), Call-ID <code>\(HTMLText.escaped(record.callID))</code>"
        for (name, value) in record.parameters { text += ", \(HTMLText.escaped(name)) \(HTMLText.escaped(value))" }
        return text + "</p>"
            + (levels == nil ? "<p class=\"notes\">No sound lies beside the record: levels are not shown.</p>" : "")
    }

    // MARK: The time line

    private var agentPlot: Plot {
        let pauses = record.pauses(until: duration).prefix(Self.rowLimit).map {
            band($0, "late", "paused")
        }
        let marks = record.events.filter { $0.name == "marked" }.prefix(Self.rowLimit).map {
            moment($0, $0.isTrue("played") ? "recovered" : "discarded")
        }
        let clears = record.events.filter { $0.name == "cleared" }.prefix(Self.rowLimit).map { moment($0, "lost") }
        return plot("The agent", levels?.agent, pauses + marks + clears)
    }

    private var otherPlot: Plot {
        plot(
            "The other side",
            levels?.other,
            record.speech(until: duration).prefix(Self.rowLimit).map { band($0, "added", "speech") }
        )
    }

    private func plot(_ name: String, _ points: [PlotSeries.Point]?, _ bands: [Plot.Band]) -> Plot {
        // A plot without any point would not be drawn.
        let floor = [PlotSeries.Point(time: 0, value: TalkLevels.floor)]
        let series = PlotSeries(name: "level", color: "level", style: .line, points: points ?? floor)
        var plot = Plot(title: name, unit: "dB of full scale", series: [series], duration: duration)
        plot.range = TalkLevels.floor...0
        plot.bands = bands
        return plot
    }

    private func band(_ stretch: TalkRecord.Stretch, _ color: String, _ name: String) -> Plot.Band {
        let length = HTMLText.number(((stretch.end - stretch.start) * 1000).rounded())
        let title = "\(name), \(length) ms from \(HTMLText.time(stretch.start)) on"
        return Plot.Band(start: stretch.start, duration: stretch.end - stretch.start, color: color, title: title)
    }

    private func moment(_ event: TalkRecord.Event, _ color: String) -> Plot.Band {
        let title = "\(Self.text(of: event)) (\(HTMLText.time(event.time)))"
        return Plot.Band(start: event.time, duration: 0, color: color, title: title)
    }

    private var legend: String {
        let keys = [
            ("late", "paused by speech"), ("lost", "cleared"), ("recovered", "mark played"),
            ("discarded", "mark dropped"),
            ("added", "speech"),
        ]
        let html = keys.map { "<span><i style=\"background:var(--\($0.0))\"></i>\($0.1)</span> " }
        return "<p class=\"soft\">\(html.joined())</p>"
    }

    // MARK: The events

    private var table: String {
        let rows = record.events.prefix(Self.rowLimit).map { event in
            "<tr><td class=\"n\">\(HTMLText.time(event.time))</td><td>\(HTMLText.escaped(Self.text(of: event)))</td></tr>\n"
        }
        let more = record.events.count - rows.count
        return "<h3>What happened</h3>\n<table>\n\(rows.joined())</table>\n"
            + (more > 0 ? "<p class=\"soft\">\(English.count(more, "later event")) not shown.</p>" : "")
    }

    /// An event in words.
    private static func text(of event: TalkRecord.Event) -> String {
        let seconds = HTMLText.time(event.number("seconds") ?? event.time)
        switch event.name {
        case "speaks": return "The agent speaks"
        case "silent": return "The agent is silent"
        case "speechStarted": return "Speech from \(seconds) on"
        case "speechStopped": return "No speech from \(seconds) on"
        case "agentPaused": return "The agent pauses"
        case "agentResumed": return "The agent goes on"
        case "cleared": return "The agent clears: \(HTMLText.time(event.number("unheardSeconds") ?? 0)) are not heard"
        case "marked":
            let fate = event.isTrue("played") ? "played" : "dropped"
            return "Mark \(event.text("name") ?? ""): \(fate), at \(seconds) of what the agent said"
        case "hangUp": return "The agent hangs up"
        default:
            let told = event.members.map { "\($0.0) \($0.1.string ?? $0.1.text)" }.joined(separator: ", ")
            return told.isEmpty ? event.name : "\(event.name): \(told)"
        }
    }
}
