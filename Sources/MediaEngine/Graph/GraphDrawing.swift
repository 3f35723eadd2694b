import CallBasics

extension Graph {
    /// The graph as text: one line for each filter in the order in which they run, with what it takes from whom.
    ///
    /// - Parameter profile: Gives calls and time of a filter; leave it out for a graph that does not run.
    /// - Returns: The lines.
    /// - Throws: `GraphError` when the graph cannot be planned.
    package func text(profile: ((Filter) -> FilterProfile)? = nil) throws(GraphError) -> String {
        let plan = try GraphPlan(self)
        var lines = [
            "\(plan.filters.count) filters, \(links.count) links, tick \(tickDuration.milliseconds) ms, "
                + "\(plan.blockByteCount) bytes of blocks"
        ]
        for filter in plan.filters {
            let description = filter.description
            var line = label(filter) + (converters.contains(filter.id) ? " (inserted)" : "") + ": "
            line += description.purpose
            let sources = links.filter { $0.target == filter.id }.compactMap(sourceText)
            if !sources.isEmpty { line += " ← " + sources.joined(separator: ", ") }
            if description.latency > .zero { line += " · adds \(description.latency.milliseconds) ms" }
            if let profile = profile?(filter) {
                line += " · \(profile.tickCount) ticks, \(Int(profile.meanNanoseconds)) ns mean, "
                line += "\(profile.maximumNanoseconds) ns max"
            }
            lines.append(line)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The graph in Graphviz's DOT language, one box for each filter, one arrow for each link with its format.
    ///
    /// Chains run down, beside each other, and boxes are narrow: a call fits on a screen.
    package func dot() -> String {
        var lines = [
            "digraph media {", "    ranksep=0.3;", "    nodesep=0.2;",
            "    node [shape=box, fontname=\"sans-serif\", fontsize=10, margin=\"0.1,0.05\"];",
            "    edge [fontname=\"sans-serif\", fontsize=9];",
        ]
        for filter in filters {
            let style = converters.contains(filter.id) ? ", style=dashed" : ""
            let text = ([filter.description.name] + Self.wrapped(filter.description.purpose)).map(Self.escape)
            lines.append("    f\(filter.id.number) [label=\"\(text.joined(separator: "\\n"))\"\(style)];")
        }
        for link in links {
            guard let source = filter(link.source) else { continue }
            let kind = source.description.outputs[link.output].kind
            lines.append("    f\(link.source.number) -> f\(link.target.number) [label=\"\(kind)\"];")
        }
        return lines.joined(separator: "\n") + "\n}\n"
    }

    private func sourceText(_ link: Link) -> String? {
        guard let source = filter(link.source) else { return nil }
        let port = source.description.outputs[link.output]
        return "\(label(source)).\(port.name) [\(port.kind)]"
    }

    /// The words of `text` in lines of at most 26 characters, as far as words allow.
    private static func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= 26 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    private static func escape(_ text: String) -> String {
        text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
    }
}
