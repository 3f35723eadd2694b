@testable import MediaEngine
import TestSupport
import Testing

/// A graph that is edited on one thread and ticks on another.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct GraphRunnerRealTimeTests {
    @Test func `editing from another thread loses no block`() throws {
        let runner = GraphRunner()
        let (source, sink) = (CountingSource(), CollectingSink())
        let driver = TimerDriver(runner, tickDuration: .microseconds(200), priority: nil)
        var graph = Graph()
        try graph.connect(source, to: sink)
        runner.install(try GraphPlan(graph))
        try driver.start()
        for round in 0..<2000 {
            var edited = Graph()
            let pass = PassThrough()
            try edited.connect(source, to: round % 2 == 0 ? pass : sink)
            if round % 2 == 0 { try edited.connect(pass, to: sink) }
            runner.install(try GraphPlan(edited))
        }
        driver.stop()
        #expect(sink.breakCount == 0)
        #expect(driver.statistics.count > 0)
    }
}
