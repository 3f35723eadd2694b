import EngineBenchmarks

/// Measures what the engine promises; it needs no more than that to be built.
@main enum EngineAlone {
    static let usage = """
        usage: engine-benchmarks [--only NAME,…] [--speech F.wav] [--repeat K=3] [--seconds S=4] [--legs N=20] [--slack F=1]
               [--json] [--list]
          --only     run these alone; --list prints their names
          --speech   a WAV to send; without it a chirp with pauses
          --repeat   how often each is measured; the least disturbed counts
          --seconds  how long each run over the network lasts
          --legs     legs of the unpaced benchmarks
          --slack    how many times a limit a figure may have, for machines that are busy
        Exit 0 when every limit is kept, 1 when one is missed or could not be measured, 64 on wrong usage.
        """

    static func main() async { await Benchmark.main(Benchmark.ofEngine, usage: usage) }
}
