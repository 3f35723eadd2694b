/// A graph made ready to run: its filters in order, with every block of memory already there.
///
/// The order is topological; filters between which no path exists keep the order in which they were added. Two ports
/// share memory when no filter between them still reads it, so a long chain touches a few blocks and stays in cache.
/// Thread: made on the control side, run by the media thread, freed on the control side again.
public final class GraphPlan: @unchecked Sendable {
    struct Step {
        let filter: Unmanaged<Filter>
        let id: FilterID
        let slots: UnsafePointer<PortSlot>
        let inputCount: Int
        let outputCount: Int
        let hasPacketOutputs: Bool
    }

    /// The length of one tick.
    public let tickDuration: Duration
    /// The filters in the order in which they run.
    public let filters: [Filter]
    /// Bytes of all blocks together.
    public let blockByteCount: Int

    let steps: UnsafeMutableBufferPointer<Step>
    /// Step indices sorted by filter identity, so that a command finds its filter.
    private let lookup: UnsafeMutableBufferPointer<(id: UInt64, step: Int32)>
    private let slots: UnsafeMutableBufferPointer<PortSlot>
    private let memory: UnsafeMutableRawPointer

    /// Plans `graph`.
    ///
    /// - Throws: `GraphError` when a required input has no link, links form a circle, or a port's sample rate does
    ///   not divide into ticks.
    public init(_ graph: Graph) throws(GraphError) {
        tickDuration = graph.tickDuration
        filters = try Self.order(graph)
        let layout = try BlockLayout(graph, order: filters)
        blockByteCount = layout.byteCount
        memory = .allocate(byteCount: max(layout.byteCount, 64), alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: max(layout.byteCount, 64))
        slots = .allocate(capacity: layout.ports.count)
        for (index, port) in layout.ports.enumerated() {
            slots.initializeElement(
                at: index,
                to: PortSlot(base: memory + port.offset, frameCount: port.frameCount, channelCount: port.channelCount)
            )
        }
        steps = .allocate(capacity: filters.count)
        lookup = .allocate(capacity: filters.count)
        var next = 0
        for (index, filter) in filters.enumerated() {
            let description = filter.description
            let first = slots.baseAddress.map { UnsafePointer($0 + next) } ?? UnsafePointer(bitPattern: 64)
            guard let first else { preconditionFailure("an address that is not zero") }
            steps.initializeElement(
                at: index,
                to: Step(
                    filter: .passUnretained(filter),
                    id: filter.id,
                    slots: first,
                    inputCount: description.inputs.count,
                    outputCount: description.outputs.count,
                    hasPacketOutputs: description.outputs.contains { $0.kind == .packets }
                )
            )
            next += description.inputs.count + description.outputs.count
        }
        let sorted = filters.enumerated().sorted { $0.element.id.number < $1.element.id.number }
        for (position, entry) in sorted.enumerated() {
            lookup.initializeElement(at: position, to: (entry.element.id.number, Int32(entry.offset)))
        }
    }

    deinit {
        steps.deallocate()
        lookup.deallocate()
        slots.deallocate()
        memory.deallocate()
    }

    /// The step of the filter with that identity, by binary search.
    func step(of id: FilterID) -> Int? {
        var low = 0
        var high = lookup.count
        while low < high {
            let middle = (low &+ high) / 2
            if lookup[middle].id < id.number { low = middle &+ 1 } else { high = middle }
        }
        guard low < lookup.count, lookup[low].id == id.number else { return nil }
        return Int(lookup[low].step)
    }

    /// The filters so that each comes after those it takes from.
    private static func order(_ graph: Graph) throws(GraphError) -> [Filter] {
        var waitingFor: [FilterID: Int] = [:]
        var targets: [FilterID: [FilterID]] = [:]
        for link in graph.links {
            waitingFor[link.target, default: 0] += 1
            targets[link.source, default: []].append(link.target)
        }
        let position = Dictionary(uniqueKeysWithValues: graph.filters.enumerated().map { ($1.id, $0) })
        // Depth first from each source: a chain's filters follow each other, so its blocks are still in cache.
        var ready = graph.filters.filter { waitingFor[$0.id, default: 0] == 0 }.reversed().map(\.id)
        var ordered: [Filter] = []
        ordered.reserveCapacity(graph.filters.count)
        while let id = ready.popLast() {
            guard let index = position[id] else { continue }
            ordered.append(graph.filters[index])
            for target in (targets[id] ?? []).reversed() {
                waitingFor[target, default: 0] -= 1
                if waitingFor[target] == 0 { ready.append(target) }
            }
        }
        guard ordered.count == graph.filters.count else {
            let planned = Set(ordered.map(\.id))
            let circle = graph.filters.filter { !planned.contains($0.id) }.map(graph.label).joined(separator: ", ")
            throw GraphError(.cycle, "These filters feed each other in a circle: \(circle). Break it with a delay.")
        }
        return ordered
    }
}
