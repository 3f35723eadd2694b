@testable import MediaEngine
import Testing

@Suite struct GraphRunnerTests {
    @Test func `editing while running loses no block and keeps state`() throws {
        let runner = GraphRunner()
        let (source, sink) = (CountingSource(), CollectingSink())
        var graph = Graph()
        try graph.connect(source, to: sink)
        runner.install(try GraphPlan(graph))
        for round in 0..<500 {
            runner.tick(at: .zero)
            var edited = Graph()
            var last: Filter = source
            for _ in 0..<(round % 5) {
                let pass = PassThrough()
                try edited.connect(last, to: pass)
                last = pass
            }
            try edited.connect(last, to: sink)
            runner.install(try GraphPlan(edited))
        }
        #expect(sink.count == 500 * 80)
        #expect(sink.breakCount == 0)
    }

    @Test func `a command takes effect at the next tick`() throws {
        let runner = GraphRunner()
        let (source, pass, sink) = (CountingSource(), PassThrough(), CollectingSink())
        var graph = Graph()
        try graph.connect(source, to: pass)
        try graph.connect(pass, to: sink)
        runner.install(try GraphPlan(graph))
        runner.tick(at: .zero)
        runner.send(.add(5), to: pass)
        runner.tick(at: .zero)
        #expect(sink.collected[79] == 79)
        #expect(sink.collected[80] == 85)
    }

    @Test func `a full ring of orders refuses, and who asked is told`() {
        let runner = GraphRunner(orderCapacity: 4)
        let pass = PassThrough()
        let accepted = (0..<10).map { _ in runner.send(.add(1), to: pass) }
        #expect(accepted == Array(repeating: true, count: 4) + Array(repeating: false, count: 6))
        #expect(runner.obeyedCount == 0)
        runner.tick(at: .zero)
        #expect(runner.obeyedCount == 4 && runner.send(.add(1), to: pass))
    }

    @Test func `a command keeps its filter until it is obeyed`() throws {
        let runner = GraphRunner()
        weak var filter: PassThrough?
        do {
            let pass = PassThrough()
            filter = pass
            runner.send(.add(1), to: pass)
        }
        #expect(filter != nil)
        runner.tick(at: .zero)
        runner.reclaim()
        #expect(filter == nil)
    }

    @Test func `orders that are given together take effect together`() throws {
        let runner = GraphRunner()
        let format = AudioFormat(sampleRate: 8000)
        var plans: [GraphPlan] = []
        var sinks: [CollectingSink] = []
        for _ in 0..<40 {
            var graph = Graph()
            let sink = CollectingSink(format: format, capacity: 800)
            try graph.connect(ConstantSource(format: format, value: 7), to: sink)
            plans.append(try GraphPlan(graph))
            sinks.append(sink)
        }
        // More than the list has room for at first.
        #expect(runner.give(plans.enumerated().map { .insert($1, stage: $0 % 3) }) != nil)
        #expect(runner.isIdle == false)
        runner.tick(at: .zero)
        #expect(sinks.allSatisfy { $0.count == 80 })
        #expect(runner.give(plans[..<20].map { .remove($0) }) != nil)
        runner.tick(at: .zero)
        #expect(sinks[..<20].allSatisfy { $0.count == 80 } && sinks[20...].allSatisfy { $0.count == 160 })
        #expect(runner.give(plans[20...].map { .remove($0) }) != nil)
        runner.tick(at: .zero)
        #expect(runner.isIdle)
    }

    @Test func `plans of earlier stages run before those of later ones, whatever came or went`() throws {
        let runner = GraphRunner()
        var generator = SeededGenerator(seed: 4)
        let order = RunOrder()
        var running: [(plan: GraphPlan, stage: Int)] = []
        for _ in 0..<500 {
            if generator.next() % 3 == 0, let index = running.indices.randomElement(using: &generator) {
                #expect(runner.give([.remove(running.remove(at: index).plan)]) != nil)
            } else {
                let stage = Int(generator.next() % 4)
                var graph = Graph()
                try graph.add(StageProbe(stage, order))
                let plan = try GraphPlan(graph)
                running.append((plan, stage))
                #expect(runner.give([.insert(plan, stage: stage)]) != nil)
            }
            order.stages = []
            runner.tick(at: .zero)
            #expect(order.stages == running.map(\.stage).sorted())
        }
    }

    @Test func `events arrive with their time, and unread ones are counted when the ring is full`() throws {
        let runner = GraphRunner(eventCapacity: 2)
        var graph = Graph()
        let passes = (0..<4).map { _ in PassThrough() }
        let source = CountingSource()
        for pass in passes {
            try graph.connect(source, to: pass)
            try graph.connect(pass, to: CollectingSink())
        }
        runner.install(try GraphPlan(graph))
        for tick in 0..<5 { runner.tick(at: MediaTime(nanoseconds: Int64(tick))) }
        var seen: [GraphEvent] = []
        runner.drainEvents { seen.append($0) }
        #expect(seen.count == 2)
        #expect(
            seen.allSatisfy { $0.time.nanoseconds == 2 && $0.message.load(as: PassThrough.Event.self) == .third(3) }
        )
        #expect(Set(seen.map(\.filter)).isSubset(of: passes.map(\.id)))
        #expect(runner.droppedEventCount == 2)
    }

    @Test func `a plan that was replaced is freed on the control side`() throws {
        let runner = GraphRunner()
        weak var first: PassThrough?
        do {
            let (source, pass, sink) = (CountingSource(), PassThrough(), CollectingSink())
            first = pass
            var graph = Graph()
            try graph.connect(source, to: pass)
            try graph.connect(pass, to: sink)
            runner.install(try GraphPlan(graph))
        }
        runner.tick(at: .zero)
        #expect(first != nil)
        runner.install(try GraphPlan(Graph()))
        runner.tick(at: .zero)
        runner.drainEvents { _ in }
        #expect(first == nil)
    }

    @Test func `a filter's calls and time are measured`() throws {
        let runner = GraphRunner()
        let (source, sink) = (CountingSource(), CollectingSink())
        var graph = Graph()
        try graph.connect(source, to: sink)
        runner.install(try GraphPlan(graph))
        for _ in 0..<(10 * GraphRunner.profilingInterval) { runner.tick(at: .zero) }
        let profile = runner.profile(of: source)
        #expect(profile.tickCount == 10 * GraphRunner.profilingInterval)
        #expect(profile.sampleCount == 10)
        #expect(profile.meanNanoseconds > 0)
    }
}

/// The stages of the plans that ran in a tick, in the order in which they did.
private final class RunOrder: @unchecked Sendable {
    var stages: [Int] = []
}

private final class StageProbe: Filter, @unchecked Sendable {
    private let stage: Int
    private let order: RunOrder

    init(_ stage: Int, _ order: RunOrder) {
        self.stage = stage
        self.order = order
        super.init(FilterDescription(name: "probe", purpose: "notes when it runs"))
    }

    override func process(_ io: borrowing FilterIO) { order.stages.append(stage) }
}
