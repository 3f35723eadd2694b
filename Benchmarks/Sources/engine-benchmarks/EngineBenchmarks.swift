import EngineBenchmarks

/// Measures what the engine promises; it needs no more than that to be built.
@main enum EngineAlone {
    static func main() async { await Benchmark.main("engine-benchmarks", Benchmark.ofEngine) }
}
