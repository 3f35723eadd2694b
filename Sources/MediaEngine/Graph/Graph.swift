import CallBasics

/// One link: what leaves `output` of `source` enters `input` of `target`.
package struct Link: Hashable, Sendable {
    /// The filter that gives.
    package let source: FilterID
    /// The index of its output port.
    package let output: Int
    /// The filter that takes.
    package let target: FilterID
    /// The index of its input port.
    package let input: Int
}

/// Filters and the links between them: what people edit.
///
/// A `GraphPlan` made from it is what runs.
///
/// A graph is a value: edit a copy, plan it, and install the plan; when planning fails, the running one is untouched.
/// Filters are shared by reference, so those that stay from plan to plan keep their state.
/// Thread: control.
package struct Graph: Sendable {
    /// Makes a filter that turns one audio format into another, for links that ask for it.
    package typealias ConverterFactory = @Sendable (AudioFormat, AudioFormat, Duration) throws(GraphError) -> Filter

    /// The length of one tick: 10 ms for calls, 5 ms for tone streams.
    package let tickDuration: Duration
    /// The filters, in the order they were added.
    package private(set) var filters: [Filter] = []
    /// The links, in the order they were made.
    package private(set) var links: [Link] = []
    /// Converters that `connect` put between two ports.
    package private(set) var converters: Set<FilterID> = []
    /// Makes the converters for `connect`; nil refuses every mismatch.
    package var converterFactory: ConverterFactory?

    /// An empty graph with ticks of `tickDuration`.
    package init(tickDuration: Duration = .milliseconds(10)) {
        self.tickDuration = tickDuration
    }

    /// Adds `filter`, without links, and answers it.
    ///
    /// - Throws: `GraphError` when it is in the graph already.
    @discardableResult
    package mutating func add<Added: Filter>(_ filter: Added) throws(GraphError) -> Added {
        guard !filters.contains(where: { $0 === filter }) else {
            throw GraphError(.membership, "Filter \(label(filter)) is in the graph already. Add each filter once.")
        }
        filters.append(filter)
        return filter
    }

    /// Removes `filter`, its links, and the converters that only served them.
    package mutating func remove(_ filter: Filter) {
        for link in links where link.source == filter.id && converters.contains(link.target) {
            removeConverter(link.target)
        }
        for link in links where link.target == filter.id && converters.contains(link.source) {
            removeConverter(link.source)
        }
        links.removeAll { $0.source == filter.id || $0.target == filter.id }
        filters.removeAll { $0 === filter }
    }

    /// Links an output of `source` to an input of `target`.
    ///
    /// Filters that are not in the graph yet are added.
    ///
    /// An output may feed many inputs; an input takes one link.
    /// - Throws: `GraphError` when a port does not exist, the input is taken, or the ports differ in format and
    ///   `converting` is false or no converter exists. The message names both ports.
    package mutating func connect(
        _ source: Filter,
        output: Int = 0,
        to target: Filter,
        input: Int = 0,
        converting: Bool = false
    ) throws(GraphError) {
        let from = try port(output, of: source.description.outputs, source, "output")
        let to = try port(input, of: target.description.inputs, target, "input")
        guard !links.contains(where: { $0.target == target.id && $0.input == input }) else {
            throw GraphError(
                .inputTaken,
                "\(label(target)) input \"\(to.name)\" has a link already. Sum several sources with a mixer."
            )
        }
        for filter in [source, target] where !filters.contains(where: { $0 === filter }) { filters.append(filter) }
        guard from.kind != to.kind else {
            links.append(Link(source: source.id, output: output, target: target.id, input: input))
            return
        }
        guard case (.audio(let have), .audio(let want)) = (from.kind, to.kind), converting, let converterFactory else {
            throw GraphError(
                .formatMismatch,
                "\(label(source)) output \"\(from.name)\" gives \(from.kind), but \(label(target)) input "
                    + "\"\(to.name)\" takes \(to.kind). Give both one format, or connect with converting: true."
            )
        }
        let converter = try converterFactory(have, want, tickDuration)
        filters.append(converter)
        converters.insert(converter.id)
        links.append(Link(source: source.id, output: output, target: converter.id, input: 0))
        links.append(Link(source: converter.id, output: 0, target: target.id, input: input))
    }

    /// Makes `source` the one that feeds an input of `target`; a link that is there already stays, with its converter.
    ///
    /// - Throws: `GraphError` as `connect`.
    mutating func link(
        _ source: Filter,
        to target: Filter,
        input: Int = 0,
        converting: Bool = false
    ) throws(GraphError) {
        if let link = links.first(where: { $0.target == target.id && $0.input == input }) {
            let isFed =
                link.source == source.id
                || converters.contains(link.source)
                    && links.contains { $0.target == link.source && $0.source == source.id }
            guard !isFed else { return }
            disconnect(target, input: input)
        }
        try connect(source, to: target, input: input, converting: converting)
    }

    /// Puts `filter`, of one input and one output of the same format, in front of what `target` takes.
    ///
    /// The link that is there, with its converter, leads into it then. Without a link nothing is done.
    mutating func insert(_ filter: Filter, before target: Filter) {
        guard let place = links.firstIndex(where: { $0.target == target.id && $0.input == 0 }) else { return }
        let former = links[place]
        links[place] = Link(source: former.source, output: former.output, target: filter.id, input: 0)
        links.append(Link(source: filter.id, output: 0, target: target.id, input: 0))
        filters.append(filter)
    }

    /// Takes out what `insert` has put in; the link leads on as before.
    mutating func bypass(_ filter: Filter) {
        guard let place = links.firstIndex(where: { $0.target == filter.id }),
            let next = links.first(where: { $0.source == filter.id })
        else { return }
        let former = links[place]
        links[place] = Link(source: former.source, output: former.output, target: next.target, input: next.input)
        links.removeAll { $0 == next }
        filters.removeAll { $0 === filter }
    }

    /// Removes the link into an input of `target`, and the converter in it.
    package mutating func disconnect(_ target: Filter, input: Int = 0) {
        guard let link = links.first(where: { $0.target == target.id && $0.input == input }) else { return }
        links.removeAll { $0 == link }
        if converters.contains(link.source) { removeConverter(link.source) }
    }

    /// Adds what is in `other`, which has no filter of this graph.
    mutating func merge(_ other: Graph) {
        filters += other.filters
        links += other.links
        converters.formUnion(other.converters)
    }

    /// Whether `filter` is in the graph.
    package func contains(_ filter: Filter) -> Bool { filters.contains { $0 === filter } }

    /// The filter of that identity.
    package func filter(_ id: FilterID) -> Filter? { filters.first { $0.id == id } }

    func label(_ filter: Filter) -> String { "\(filter.description.name)#\(filter.id.number)" }

    private mutating func removeConverter(_ id: FilterID) {
        converters.remove(id)
        links.removeAll { $0.source == id || $0.target == id }
        filters.removeAll { $0.id == id }
    }

    private func port(
        _ index: Int,
        of ports: [Port],
        _ filter: Filter,
        _ direction: String
    ) throws(GraphError) -> Port {
        guard ports.indices.contains(index) else {
            throw GraphError(
                .noSuchPort,
                "\(label(filter)) has no \(direction) \(index). It has \(ports.count): "
                    + ports.map { "\"\($0.name)\"" }.joined(separator: ", ")
            )
        }
        return ports[index]
    }
}
