/// A story as one HTML page: its outcome, and a ladder of who sent what to whom, and when; below it how the call sounded.
struct LadderPage {
    /// What the page is about: a file's name.
    let title: String
    let story: Story
    /// The directions of the same call, where they are known.
    var legs: [ReportLeg] = []

    private static let (width, left, top, row) = (1000.0, 96.0, 34.0, 24.0)
    /// More addresses than these share the last column.
    private static let columnLimit = 6

    /// Whom messages went to and came from, in their order.
    private var remotes: [String] {
        var found: [String] = []
        for remote in story.steps.compactMap(\.remote) where !found.contains(remote) { found.append(remote) }
        return found
    }

    var html: String {
        HTMLPage(
            title: "\(title): \(story.kind) story",
            style: """

                line.arrow { stroke: var(--delay); stroke-width: 1.4; } line.back { stroke: var(--added); }
                line.refusal { stroke: var(--bad); } path.head { fill: var(--soft); }
                """,
            body: "\(heading)\n\(ladder)\n" + legs.map(section).joined(),
            script: legs.isEmpty ? nil : ReportStyle.script
        ).html
    }

    private func section(of leg: ReportLeg) -> String {
        guard let start = leg.trace.stream.startUnixMs, let zero = story.startUnixMs else {
            return leg.html(heading: "h2", file: nil)
        }
        return leg.html(heading: "h2", file: nil, facts: ["from \(start - zero) ms of the ladder on"])
    }

    private var heading: String {
        let outcome = story.outcome
        let isGood = outcome?.status == "ok"
        let code = outcome?.code.map { " (\($0))" } ?? ""
        let status = HTMLText.escaped((outcome?.status ?? "unfinished") + code)
        var text = "<h1 class=\"verdict\"><b class=\"\(isGood ? "good" : "bad")\">\(status)</b> "
        text += HTMLText.escaped(story.parties.joined(separator: " – ")) + "</h1>"
        if let because = outcome?.because { text += "<p class=\"notes\">\(HTMLText.escaped(because))</p>" }
        text += "<p class=\"file\">\(HTMLText.escaped(title))"
        if let callID = story.callID { text += ", Call-ID <code>\(HTMLText.escaped(callID))</code>" }
        text += "</p>"
        guard story.leftOutCount > 0 else { return text }
        return text + "<p class=\"soft\">\(English.count(story.leftOutCount, "later step")) found no room.</p>"
    }

    private var ladder: String {
        let columns = Array(remotes.prefix(Self.columnLimit))
        let height = Self.top + Double(story.steps.count + 1) * Self.row
        var svg =
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(HTMLText.number(height))\" role=\"img\" aria-label=\"ladder\">"
        for (index, name) in (["here"] + columns).enumerated() {
            let x = HTMLText.number(place(index, of: columns.count))
            svg += "<line class=\"zero\" x1=\"\(x)\" x2=\"\(x)\" y1=\"20\" y2=\"\(HTMLText.number(height))\"/>"
            svg += "<text x=\"\(x)\" y=\"14\" text-anchor=\"middle\">\(HTMLText.escaped(name))</text>"
        }
        for (index, step) in story.steps.enumerated() {
            svg += draw(step, at: Self.top + (Double(index) + 0.6) * Self.row, columns)
        }
        return svg + "</svg>"
    }

    private func place(_ column: Int, of count: Int) -> Double {
        let space = (Self.width - Self.left - 110) / Double(max(count, 1))
        return Self.left + 20 + Double(column) * space
    }

    private func draw(_ step: Story.Step, at y: Double, _ columns: [String]) -> String {
        let (line, under) = (HTMLText.number(y), HTMLText.number(y - 5))
        var svg = "<text x=\"4\" y=\"\(line)\">\(HTMLText.number(step.time)) ms</text>"
        let here = place(0, of: columns.count)
        guard let remote = step.remote, let isSent = step.isSent else {
            let detail = step.detail.map { "\($0.0) \(Self.plain($0.1))" }.joined(separator: ", ")
            let text = "\(step.layer.rawValue): \(step.what)" + (detail.isEmpty ? "" : " (\(detail))")
            return svg + "<text x=\"\(HTMLText.number(here + 8))\" y=\"\(line)\">\(HTMLText.escaped(text))</text>"
        }
        let column = (columns.firstIndex(of: remote) ?? columns.count - 1) + 1
        let there = place(column, of: columns.count)
        let (from, to) = isSent ? (here, there) : (there, here)
        let tip = isSent ? -7.0 : 7.0
        let isRefusal = step.what.hasPrefix("SIP/2.0 ") && "456".contains(step.what.dropFirst(8).first ?? " ")
        svg +=
            "<line class=\"arrow\(isSent ? "" : " back")\(isRefusal ? " refusal" : "")\" x1=\"\(HTMLText.number(from))\""
        svg += " x2=\"\(HTMLText.number(to))\" y1=\"\(line)\" y2=\"\(line)\"/>"
        let head = "M\(HTMLText.number(to)) \(line)l\(HTMLText.number(tip)) -4v8z"
        svg += "<path class=\"head\" d=\"\(head)\"/>"
        let middle = HTMLText.number((here + there) / 2)
        let detail = step.detail.map { "\($0.0): \(Self.plain($0.1))" }.joined(separator: "\n")
        return svg
            + "<text x=\"\(middle)\" y=\"\(under)\" text-anchor=\"middle\"><title>\(HTMLText.escaped(detail))</title>"
            + HTMLText.escaped(step.what) + "</text>"
    }

    private static func plain(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .array(let values): values.map(plain).joined(separator: ", ")
        default: value.text
        }
    }
}
