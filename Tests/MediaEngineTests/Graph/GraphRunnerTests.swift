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
        runner.send(pass.add(5))
        runner.tick(at: .zero)
        #expect(sink.collected[79] == 79)
        #expect(sink.collected[80] == 85)
    }

    @Test func `a full command ring refuses and counts`() {
        let runner = GraphRunner(commandCapacity: 4)
        let pass = PassThrough()
        let accepted = (0..<10).map { _ in runner.send(pass.add(1)) }
        #expect(accepted.filter { $0 }.count == 4)
        #expect(runner.droppedCommandCount == 6)
    }

    @Test func `a command to a filter outside the plan is counted`() throws {
        let runner = GraphRunner()
        runner.install(try GraphPlan(Graph()))
        runner.send(PassThrough().add(1))
        runner.tick(at: .zero)
        #expect(runner.undeliveredCommandCount == 1)
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
        #expect(seen.allSatisfy { $0.name == "third" && $0.time.nanoseconds == 2 && $0.value == 3 })
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
