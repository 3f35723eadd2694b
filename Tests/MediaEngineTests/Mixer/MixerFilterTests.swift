@testable import MediaEngine
import Testing

@Suite struct MixerFilterTests {
    private static let format = AudioFormat(sampleRate: 8000)

    /// A mixer that is heard in a sink, fed by plans of their own that run before it.
    private final class Rig {
        let mixer = MixerFilter(format: MixerFilterTests.format, tickDuration: .milliseconds(10))
        let sink = CollectingSink(format: MixerFilterTests.format)
        let runner = GraphRunner()

        init() throws {
            var graph = Graph()
            try graph.connect(mixer, to: sink)
            #expect(runner.give([.insert(try GraphPlan(graph), stage: 2)]) != nil)
        }

        /// Adds a source of one value; answers its plan and place.
        func add(_ value: Int16) throws -> (plan: GraphPlan, place: Int) {
            let input = try #require(mixer.makeInput())
            var graph = Graph()
            let source = ConstantSource(format: MixerFilterTests.format, value: value)
            try graph.connect(source, to: SharedBlockWriter(input.block, purpose: "test"))
            let plan = try GraphPlan(graph)
            #expect(runner.give([.insert(plan, stage: 1), .command(.open(input.number), to: mixer)]) != nil)
            return (plan, input.number)
        }

        func remove(_ source: (plan: GraphPlan, place: Int)) {
            #expect(runner.give([.remove(source.plan), .command(.close(source.place), to: mixer)]) != nil)
        }

        /// What is heard in the next tick, as its one value.
        func tick() throws -> Int16 {
            let before = sink.count
            runner.tick(at: .zero)
            let heard = sink.collected[before...]
            let value = try #require(heard.first)
            #expect(heard.count == 80 && heard.allSatisfy { $0 == value })
            return value
        }
    }

    @Test func `sources add up and the sum is clipped once`() throws {
        let rig = try Rig()
        #expect(try rig.tick() == 0)
        for value in [30000, 20000, -25000] as [Int16] { _ = try rig.add(value) }
        #expect(try rig.tick() == 25000)
        _ = try rig.add(30000)
        #expect(try rig.tick() == 32767)
    }

    @Test func `who joins or leaves is not heard by the others`() throws {
        let rig = try Rig()
        _ = try rig.add(1000)
        var others: [(plan: GraphPlan, place: Int)] = []
        // The others are silent: what is heard is the one that stays, whoever comes and goes.
        for round in 0..<200 {
            if round % 3 == 2 { rig.remove(others.removeFirst()) } else { others.append(try rig.add(0)) }
            #expect(try rig.tick() == 1000)
        }
    }

    @Test func `a place that was left begins with silence, and there are 256`() throws {
        let rig = try Rig()
        let first = try rig.add(5000)
        #expect(try rig.tick() == 5000)
        rig.remove(first)
        #expect(try rig.tick() == 0)
        rig.mixer.removeInput(first.place)
        let again = try #require(rig.mixer.makeInput())
        #expect(again.number == first.place)
        #expect(rig.runner.give([.command(.open(again.number), to: rig.mixer)]) != nil)
        #expect(try rig.tick() == 0)
        for _ in 1..<MixerFilter.capacity { #expect(rig.mixer.makeInput() != nil) }
        #expect(rig.mixer.makeInput() == nil)
    }
}
