import Glibc

/// One thing that is measured, by its name.
package struct Benchmark: Sendable {
    let name: String
    let run: @Sendable (Options) async throws -> [Figure]

    package init(_ name: String, _ run: @escaping @Sendable (Options) async throws -> [Figure]) {
        (self.name, self.run) = (name, run)
    }

    /// Those that need nothing but the engine.
    package static let ofEngine = [
        Benchmark("opus-legs", OpusLegs.measure),
        Benchmark("g711-legs", G711Legs.measure),
        Benchmark("g711-unpaced", UnpacedLegs.measureG711),
        Benchmark("opus-unpaced", UnpacedLegs.measureOpus),
        Benchmark("allocations", SteadyTicks.measure),
        Benchmark("filter-step", FilterSteps.measureStep),
        Benchmark("gain", FilterSteps.measureGain),
        Benchmark("drift-resampler", DriftResampling.measure),
        Benchmark("dtmf", KeyToSample.measure),
        Benchmark("dtmf-detector", DetectorCost.measure),
        Benchmark("echo", EchoCost.measure),
        Benchmark("lateness", TickLateness.measure),
        Benchmark("calls", CallChanges.measure),
        Benchmark("virtual", VirtualCall.measure),
    ]

    /// Measures what the command line asks for, prints it, and ends the process.
    ///
    /// - Parameters:
    ///   - program: Its name.
    ///   - all: What can be measured.
    ///   - runsTool: Whether some of it runs the tool.
    package static func main(_ program: String, _ all: [Benchmark], runsTool: Bool = false) async -> Never {
        let options: Options
        do {
            options = try Options(CommandLine.arguments.dropFirst(), names: all.map(\.name), runsTool: runsTool)
        } catch {
            complain("\(error)\n\(Options.usage(of: program, runsTool: runsTool))")
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

    /// Says what went wrong on the standard error.
    package static func complain(_ text: String) {
        let line = text + "\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }
}
