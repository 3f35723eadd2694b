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
    package func dot() -> String {
        var lines = ["digraph media {", "    rankdir=LR;", "    node [shape=box, fontname=\"sans-serif\"];"]
        for filter in filters {
            let style = converters.contains(filter.id) ? ", style=dashed" : ""
            let text = "\(filter.description.name)\\n\(filter.description.purpose)"
            lines.append("    f\(filter.id.number) [label=\"\(Self.escape(text))\"\(style)];")
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

    private static func escape(_ text: String) -> String {
        text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
    }
}
