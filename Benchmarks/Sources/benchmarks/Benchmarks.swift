import CMeasure
import Glibc

/// Measures what the engine promises and says whether it keeps it.
@main enum Benchmarks {
    static let usage = """
        usage: benchmarks [--only NAME,…] [--speech F.wav] [--tool PATH] [--repeat K=3] [--seconds S=4] [--legs N=20]
               [--rounds R=20] [--slack F=1] [--json] [--list]
          --only     run these alone; --list prints their names
          --speech   a WAV to send; without it a chirp with pauses
          --tool     the release build of media-tool, for "tool", "storm" and "texts"; for "storm" with the trait FaultPoints
          --repeat   how often each is measured; the least disturbed counts
          --seconds  how long each run over the network lasts
          --legs     legs of the unpaced benchmarks
          --rounds   rounds of "storm"
          --slack    how many times a limit a figure may have, for machines that are busy
        Exit 0 when every limit is kept, 1 when one is missed or could not be measured, 64 on wrong usage.
        """

    static let all: [(name: String, run: @Sendable (Options) async throws -> [Figure])] = [
        ("opus-legs", OpusLegs.measure),
        ("g711-legs", G711Legs.measure),
        ("g711-unpaced", UnpacedLegs.measureG711),
        ("opus-unpaced", UnpacedLegs.measureOpus),
        ("allocations", SteadyTicks.measure),
        ("filter-step", FilterSteps.measureStep),
        ("gain", FilterSteps.measureGain),
        ("drift-resampler", DriftResampling.measure),
        ("dtmf", KeyToSample.measure),
        ("dtmf-detector", DetectorCost.measure),
        ("lateness", TickLateness.measure),
        ("calls", CallChanges.measure),
        ("virtual", VirtualCall.measure),
        ("tool", ToolStart.measure),
        ("sip-messages", SIPMessages.measure),
        ("sip-calls", SIPCalls.measure),
        ("sip-memory", SIPMemory.measure),
        ("messaging", Messaging.measure),
        ("cores", Cores.measure),
        ("storm", CoreStorm.measure),
        ("texts", PushedTexts.measure),
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
        let options: Options
        do {
            options = try Options(CommandLine.arguments.dropFirst())
        } catch {
            complain("\(error)\n\(usage)")
            exit(64)
        }
        var figures: [Figure] = []
        for benchmark in all where options.only.isEmpty || options.only.contains(benchmark.name) {
            do {
                figures += try await benchmark.run(options).map { $0.slackened(options.slack) }
            } catch {
                figures.append(Figure(benchmark.name, "could not be measured: \(error)"))
            }
        }
        print(options.isJSON ? Report.json(figures, options) : Report.table(figures, options))
        exit(figures.allSatisfy { $0.isKept } ? 0 : 1)
    }

    static func complain(_ text: String) {
        let line = text + "\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }
}
