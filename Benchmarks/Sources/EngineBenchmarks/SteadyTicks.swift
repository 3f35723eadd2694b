import CAllocationCounter
import CMeasure
import Glibc

@testable import MediaEngine

/// What the ticks of a two-leg call allocate and lock, on a lossy network, for each codec.
///
/// The test `SteadyTickRealTimeTests` of the engine asks the same of every shape of graph; this is the figure for the table.
enum SteadyTicks {
    private static let warmUp = 300
    private static let ticks = 2000

    static func measure(_ options: Options) throws -> [Figure] {
        var total = allocation_counts()
        for codec in ["opus", "PCMU", "PCMA", "G722", "L16"] {
            let counts = try count(codec)
            total.allocations += counts.allocations
            total.locks += counts.locks
        }
        let number = Double(ticks * 5)
        let note = "\(ticks) ticks each of opus, PCMU, PCMA, G722, L16 under loss"
        return [
            Figure("allocations per steady tick", Double(total.allocations) / number, "", .count(0), note: note),
            Figure("locks per steady tick", Double(total.locks) / number, "", .count(0), note: note),
        ]
    }

    private static func count(_ name: String) throws -> allocation_counts {
        let codec = try PluginRegistry.standard().codec(named: name)
        var impairment = Impairment()
        impairment.lossPercent = 5
        impairment.jitter = .milliseconds(30)
        impairment.reorderPercent = 2
        impairment.duplicatePercent = 2
        let (left, right) = MemoryLink.pair()
        var graph = Graph()
        let speech = SharedSamples(TestSignal.samples(2, codec.description.format))
        for (own, other) in [(left, right), (right, left)] {
            try BareLeg.add(
                name,
                AudioStreamConfiguration(),
                over: ImpairedLink(own, impairment, seed: 7),
                addresses: (own.localAddress, other.localAddress),
                seed: 1,
                to: &graph,
                source: LoopingSource(speech, format: codec.description.format, offset: 0)
            )
        }
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        var now = MediaTime.zero
        func tick(_ count: Int) {
            for _ in 0..<count {
                runner.tick(at: now)
                now += .milliseconds(10)
            }
        }
        tick(warmUp)
        allocation_counter_begin()
        tick(ticks)
        return allocation_counter_end()
    }
}
