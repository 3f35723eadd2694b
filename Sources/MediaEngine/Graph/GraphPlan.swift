import CProcessor
import CallBasics

/// A graph made ready to run: its filters in order, with every block of memory already there.
///
/// The order is topological; filters between which no path exists keep the order in which they were added. Two ports
/// share memory when no filter between them still reads it, so a long chain touches a few blocks and stays in cache.
/// Several plans run in one runner, each whole before the next: one for each call, so that a call that is made or ends
/// costs no other anything.
/// Thread: made on the control side, run by the media thread, freed on the control side again.
package final class GraphPlan: @unchecked Sendable {
    struct Step {
        let filter: Unmanaged<Filter>
        let id: FilterID
        let slots: UnsafePointer<PortSlot>
        let inputCount: Int
        let outputCount: Int
        let hasPacketOutputs: Bool
    }

    /// The length of one tick.
    package let tickDuration: Duration
    /// The filters in the order in which they run.
    package let filters: [Filter]
    /// Bytes of all blocks together.
    package let blockByteCount: Int

    // Side by side, for what a tick asks of a plan lies in few cache lines.
    let steps: UnsafeMutableBufferPointer<Step>
    private let slots: UnsafeMutableBufferPointer<PortSlot>
    /// The plan's place among those of its runner, and the stage that it runs in; -1 while it is in none.
    ///
    /// Thread: media.
    var position = -1
    var stage = 0
    private let arena: BlockArena?
    /// Memory of the plan's own, where it shares none.
    private let memory: UnsafeMutableRawPointer?

    /// Plans `graph`, to run alone.
    ///
    /// - Throws: `GraphError` when a required input has no link, links form a circle, or a port's sample rate does
    ///   not divide into ticks.
    package convenience init(_ graph: Graph) throws(GraphError) {
        try self.init(graph, arena: nil)
    }

    /// Plans `graph`, with blocks in `arena`, which other plans of the same runner use, too.
    ///
    /// - Throws: As `init(_:)`.
    init(_ graph: Graph, arena: BlockArena?) throws(GraphError) {
        tickDuration = graph.tickDuration
        filters = try Self.order(graph)
        let layout = try BlockLayout(graph, order: filters)
        blockByteCount = layout.byteCount
        let base: UnsafeMutableRawPointer
        if let arena, layout.byteCount <= BlockArena.byteCount {
            self.arena = arena
            memory = nil
            base = arena.memory
        } else {
            self.arena = nil
            base = .allocate(byteCount: max(layout.byteCount, 64), alignment: 64)
            memory = base
        }
        slots = .allocate(capacity: layout.ports.count)
        for (index, port) in layout.ports.enumerated() {
            let start = port.offset.map { base + $0 } ?? BlockArena.silence
            slots.initializeElement(
                at: index,
                to: PortSlot(base: start, frameCount: port.frameCount, channelCount: port.channelCount)
            )
        }
        steps = .allocate(capacity: filters.count)
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
    }

    /// Asks for the memory of steps and slots.
    @inline(__always)
    func prefetchSteps() {
        prefetch_bytes(steps.baseAddress, steps.count &* MemoryLayout<Step>.stride)
        prefetch_bytes(slots.baseAddress, slots.count &* MemoryLayout<PortSlot>.stride)
    }

    deinit {
        steps.deallocate()
        slots.deallocate()
        memory?.deallocate()
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
