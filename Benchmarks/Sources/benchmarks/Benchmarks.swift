import CMeasure
import EngineBenchmarks

/// Measures what the package promises and says whether it keeps it.
@main enum Benchmarks {
    static let usage = """
        usage: benchmarks [--only NAME,…] [--speech F.wav] [--tool PATH] [--repeat K=3] [--seconds S=4] [--legs N=20]
               [--rounds R=20] [--slack F=1] [--json] [--list]
          --only     run these alone; --list prints their names
          --speech   a WAV to send; without it a chirp with pauses
          --tool     the release build of media-tool, for "tool", "storm", "texts" and "wake"; for "storm" with the trait FaultPoints
          --repeat   how often each is measured; the least disturbed counts
          --seconds  how long each run over the network lasts
          --legs     legs of the unpaced benchmarks
          --rounds   rounds of "storm"
          --slack    how many times a limit a figure may have, for machines that are busy
        Exit 0 when every limit is kept, 1 when one is missed or could not be measured, 64 on wrong usage.
        """

    static let others = [
        Benchmark("tool", ToolStart.measure),
        Benchmark("sip-messages", SIPMessages.measure),
        Benchmark("sip-calls", SIPCalls.measure),
        Benchmark("sip-memory", SIPMemory.measure),
        Benchmark("messaging", Messaging.measure),
        Benchmark("cores", Cores.measure),
        Benchmark("storm", CoreStorm.measure),
        Benchmark("texts", PushedTexts.measure),
        Benchmark("pushes", PushedCalls.measure),
        Benchmark("wake", Wakes.measure),
    ]

    static func main() async {
        if let directory = MessagingPeer.directory {
            measure_end_with_parent()
            await MessagingPeer.run(in: directory)
        }
        if let (role, directory) = CorePeer.assignment {
            measure_end_with_parent()
            await CorePeer.run(as: role, in: directory)
        }
        await Benchmark.main(Benchmark.ofEngine + others, usage: usage)
    }
}
