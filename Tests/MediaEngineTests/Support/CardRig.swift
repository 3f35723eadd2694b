@testable import MediaEngine

/// A graph of pairs, source to sink, run by hand.
struct CardRig {
    let runner = GraphRunner()
    let driver: ManualDriver

    init(_ pairs: [(Filter, Filter)], start: MediaTime = .zero) throws {
        driver = ManualDriver(runner, clock: ManualClock(at: start))
        var graph = Graph()
        for (source, sink) in pairs { try graph.connect(source, to: sink) }
        runner.install(try GraphPlan(graph))
    }

    /// The events since the last call.
    func events() -> [GraphEvent] {
        var events: [GraphEvent] = []
        runner.drainEvents { events.append($0) }
        return events
    }
}
