import CMeasure
import Glibc
@testable import MediaEngine

/// Passes by: it looks at its two blocks and writes one sample.
final class TrivialFilter: Filter, @unchecked Sendable {
    init(format: AudioFormat) {
        super.init(
            FilterDescription(
                name: "trivial",
                purpose: "does next to nothing",
                inputs: [.audio(format)],
                outputs: [.audio(format)]
            )
        )
    }

    override func process(_ io: borrowing FilterIO) {
        let (source, target) = (io.input(), io.output())
        let samples = source.samples
        var result = target.mutableSamples
        result[0] = samples[0]
    }
}

/// What one step of the graph costs, and what a gain costs in it.
enum FilterSteps {
    private static let format = AudioFormat(sampleRate: 48000)
    private static let chainLength = 10

    static func measureStep(_ options: Options) throws -> [Figure] {
        var (trivial, passing) = (Double.infinity, Double.infinity)
        for _ in 0..<options.repetitions {
            trivial = min(trivial, try nanosecondsPerFilter(200_000) { TrivialFilter(format: format) })
            passing = min(passing, try nanosecondsPerFilter(100_000) { GainFilter(format: format) })
        }
        return [
            Figure("filter-step: a trivial filter", trivial, "ns", .atMost(10), note: "chain of \(chainLength)"),
            Figure("filter-step: a gain of 0 dB, in place", passing, "ns"),
        ]
    }

    static func measureGain(_ options: Options) throws -> [Figure] {
        let gain = Decibels(-6)
        let (factor, shift) = (Int32((pow(10, gain.value / 20) * 16384).rounded()), Int32(14))
        var (ours, clang, gcc) = (Double.infinity, Double.infinity, Double.infinity)
        let library = try compiledByGCC()
        for _ in 0..<options.repetitions * 2 {
            ours = min(ours, try nanosecondsPerFilter(40_000) { GainFilter(format: format, gain: gain) })
            clang = min(clang, nanosecondsInC(measure_gain, factor, shift))
            if let library { gcc = min(gcc, nanosecondsInC(library, factor, shift)) }
        }
        var figures = [
            Figure(
                "gain: filter / the same loop in C, clang -O3",
                ours / clang,
                "",
                .atMost(1.2),
                note: "\(Report.number(ours)) / \(Report.number(clang)) ns for 480 samples"
            )
        ]
        if library != nil {
            figures.append(
                Figure(
                    "gain: filter / the same loop in C, gcc -O3",
                    ours / gcc,
                    "",
                    .atMost(1.2),
                    note: "\(Report.number(ours)) / \(Report.number(gcc)) ns for 480 samples"
                )
            )
        }
        return figures
    }

    /// CPU time of one filter in one tick, of a chain of `chainLength`, less the chain without them.
    private static func nanosecondsPerFilter(_ ticks: Int, _ make: () -> Filter) throws -> Double {
        let with = try nanosecondsPerTick(ticks, (0..<chainLength).map { _ in make() })
        let without = try nanosecondsPerTick(ticks, [])
        return (with - without) / Double(chainLength)
    }

    private static func nanosecondsPerTick(_ ticks: Int, _ filters: [Filter]) throws -> Double {
        var graph = Graph()
        var last: Filter = LoopingSource(SharedSamples(TestSignal.samples(1, format)), format: format, offset: 0)
        try graph.add(last)
        for filter in filters {
            try graph.connect(last, to: filter)
            last = filter
        }
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        for _ in 0..<100 { runner.tick(at: .zero) }
        let start = measure_thread_cpu()
        for _ in 0..<ticks { runner.tick(at: .zero) }
        return Double(measure_thread_cpu() - start) / Double(ticks)
    }

    /// The loop alone, over the blocks that a plan of such a chain would use: two, in turn.
    private static func nanosecondsInC(
        _ gain: (UnsafePointer<Int16>?, UnsafeMutablePointer<Int16>?, Int32, Int32, Int32) -> Void,
        _ factor: Int32,
        _ shift: Int32
    ) -> Double {
        let speech = TestSignal.samples(1, format)
        let first = UnsafeMutablePointer<Int16>.allocate(capacity: 480)
        let second = UnsafeMutablePointer<Int16>.allocate(capacity: 480)
        defer {
            first.deallocate()
            second.deallocate()
        }
        second.initialize(repeating: 0, count: 480)
        for index in 0..<480 { (first + index).initialize(to: speech[index]) }
        let rounds = 40_000
        let start = measure_thread_cpu()
        for _ in 0..<rounds {
            for _ in 0..<chainLength / 2 {
                gain(first, second, 480, factor, shift)
                gain(second, first, 480, factor, shift)
            }
        }
        return Double(measure_thread_cpu() - start) / Double(rounds * chainLength)
    }

    /// The C loop as gcc compiles it; nil where there is no gcc.
    private static func compiledByGCC() throws -> measure_gain_function? {
        let source = #filePath.replacing("benchmarks/FilterSteps.swift", with: "CMeasure/gain.c")
        let include = #filePath.replacing("benchmarks/FilterSteps.swift", with: "CMeasure/include")
        let library = "/tmp/measure-gain-\(getpid()).so"
        defer { unlink(library) }
        let status = system("gcc -O3 -shared -fPIC -I'\(include)' -o '\(library)' '\(source)' -ldl 2>/dev/null")
        return status == 0 ? measure_gain_of(library) : nil
    }
}
