@testable import MediaEngine
import Testing

@Suite struct GraphTests {
    let narrow = AudioFormat(sampleRate: 8000)
    let wide = AudioFormat(sampleRate: 48000)

    @Test func `links of different formats are refused by the names of both ports`() throws {
        var graph = Graph()
        let error = #expect(throws: GraphError.self) {
            try graph.connect(CountingSource(format: narrow), to: CollectingSink(format: wide))
        }
        #expect(error?.code == .formatMismatch)
        #expect(error?.message.contains("8000 Hz mono") == true)
        #expect(error?.message.contains("48000 Hz mono") == true)
    }

    @Test func `an input takes one link`() throws {
        var graph = Graph()
        let sink = CollectingSink()
        try graph.connect(CountingSource(), to: sink)
        #expect(throws: GraphError.self) { try graph.connect(CountingSource(), to: sink) }
    }

    @Test func `a required input without a link is refused`() throws {
        var graph = Graph()
        try graph.add(CollectingSink())
        let error = #expect(throws: GraphError.self) { try GraphPlan(graph) }
        #expect(error?.code == .unlinkedInput)
    }

    @Test func `a circle is refused by the names of its filters`() throws {
        var graph = Graph()
        let (first, second) = (PassThrough(), PassThrough())
        try graph.connect(first, to: second)
        try graph.connect(second, to: first)
        let error = #expect(throws: GraphError.self) { try GraphPlan(graph) }
        #expect(error?.code == .cycle)
        #expect(error?.message.contains("pass#") == true)
    }

    @Test func `a rate that does not divide into ticks is refused`() throws {
        var graph = Graph(tickDuration: .milliseconds(5))
        let odd = AudioFormat(sampleRate: 44100)
        try graph.connect(CountingSource(format: odd), to: CollectingSink(format: odd))
        let error = #expect(throws: GraphError.self) { try GraphPlan(graph) }
        #expect(error?.code == .indivisibleTick)
    }

    @Test func `sources run before those they feed, whatever the order of adding`() throws {
        var graph = Graph()
        let (source, middle, sink) = (CountingSource(), PassThrough(), CollectingSink())
        try graph.add(sink)
        try graph.add(middle)
        try graph.connect(middle, to: sink)
        try graph.connect(source, to: middle)
        #expect(try GraphPlan(graph).filters.map(\.id) == [source.id, middle.id, sink.id])
    }

    @Test func `a long chain shares two blocks`() throws {
        var graph = Graph()
        var last: Filter = CountingSource()
        for _ in 0..<20 {
            let next = PassThrough()
            try graph.connect(last, to: next)
            last = next
        }
        try graph.connect(last, to: CollectingSink())
        #expect(try GraphPlan(graph).blockByteCount == 2 * 192)
    }

    @Test func `a block that two filters read is not overwritten in between`() throws {
        var graph = Graph()
        let source = CountingSource()
        let (left, right) = (PassThrough(), PassThrough())
        let (leftSink, rightSink) = (CollectingSink(), CollectingSink())
        try graph.connect(source, to: left)
        try graph.connect(left, to: leftSink)
        try graph.connect(source, to: right)
        try graph.connect(right, to: rightSink)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        runner.send(.add(1000), to: left)
        for _ in 0..<10 { runner.tick(at: .zero) }
        #expect(rightSink.collected == (0..<800).map(Int16.init))
        let raised = (0..<800).map { Int16($0 + 1000) }
        #expect(leftSink.collected == raised)
    }

    @Test func `a filter that works in place shares its block, unless another still reads it`() throws {
        var graph = Graph()
        let (source, gain, sink) = (CountingSource(), GainFilter(format: narrow), CollectingSink())
        try graph.connect(source, to: gain)
        try graph.connect(gain, to: sink)
        #expect(try GraphPlan(graph).blockByteCount == 192)
        let (louder, other) = (GainFilter(format: narrow, gain: Decibels(20)), CollectingSink())
        try graph.connect(source, to: louder)
        try graph.connect(louder, to: other)
        #expect(try GraphPlan(graph).blockByteCount == 2 * 192)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        runner.tick(at: .zero)
        #expect(sink.collected == (0..<80).map(Int16.init))
        let tenfold = (0..<80).map { Int16($0 * 10) }
        #expect(other.collected == tenfold)
    }

    @Test func `a graph draws itself as text and DOT`() throws {
        var graph = Graph()
        let (source, sink) = (CountingSource(), CollectingSink())
        try graph.connect(source, to: sink)
        let text = try graph.text()
        #expect(text.contains("counter#\(number(source))"))
        #expect(text.contains("[8000 Hz mono]"))
        let dot = graph.dot()
        #expect(dot.hasPrefix("digraph media {") && dot.hasSuffix("}\n"))
        #expect(dot.contains("f\(number(source)) -> f\(number(sink)) [label=\"8000 Hz mono\"];"))
    }

    private func number(_ filter: Filter) -> String {
        "\(filter.id)".filter(\.isNumber)
    }
}
