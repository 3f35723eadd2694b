@testable import CallBasics
import CMeasure
import Glibc
@testable import MediaEngine

/// How long a key takes to the card.
enum KeyToSample {
    private static let presses = 60
    private static let key = DTMFDigit.all[5]

    static func measure(_ options: Options) async throws -> [Figure] {
        var warm: [Double] = []
        let engine = try makeEngine()
        try await engine.startDTMFStream()
        guard let stream = engine.openToneStream else {
            throw Options.Wrong(description: "the tone stream is not open")
        }
        usleep(200_000)
        var generator = SeededGenerator(seed: UInt64(measure_now()))
        for _ in 0..<presses {
            try await engine.playDTMF(key, for: .milliseconds(40))
            while stream.isDialling { usleep(2000) }
            usleep(UInt32(70_000 + generator.nextUnit() * 20_000))
        }
        warm = engine.keyToSample.map(\.inMilliseconds)
        await engine.stopDTMFStream()
        await engine.shutDown()
        var cold: [Double] = []
        for _ in 0..<max(options.repetitions, 5) { cold.append(try await measureCold()) }
        guard warm.count == presses else {
            throw Options.Wrong(description: "\(warm.count) keys of \(presses) sounded")
        }
        let mean = warm.reduce(0, +) / Double(warm.count)
        return [
            Figure("dtmf: call to card, warm, mean", mean, "ms", .atMost(5), note: "\(presses) keys at random phases"),
            Figure("dtmf: call to card, warm, longest", warm.max() ?? 0, "ms", .atMost(10)),
            Figure(
                "dtmf: call to card, cold, longest",
                cold.max() ?? 0,
                "ms",
                .atMost(20),
                note: "\(cold.count) engines"
            ),
        ]
    }

    /// From the call on an engine that has opened nothing, the opening included.
    private static func measureCold() async throws -> Double {
        let engine = try makeEngine()
        try await engine.playDTMF(key, for: .milliseconds(40))
        while let stream = engine.openToneStream, stream.isDialling { usleep(2000) }
        let first = engine.keyToSample.first
        await engine.shutDown()
        guard let first else { throw Options.Wrong(description: "the cold key did not sound") }
        return first.inMilliseconds
    }

    private static func makeEngine() throws -> CallEngine {
        var configuration = CallEngineConfiguration()
        configuration.cardBindings = try CardBindings(flags: ["au": "null", "aq": "null"], environment: [:])
        return try CallEngine(configuration)
    }
}

/// How late ticks come when the processors are busy.
enum TickLateness {
    static func measure(_ options: Options) throws -> [Figure] {
        var best = (p99: Double.infinity, maximum: 0.0, scheduling: "")
        for _ in 0..<options.repetitions {
            let runner = GraphRunner()
            var graph = Graph()
            let format = AudioFormat(sampleRate: 48000)
            try graph.connect(
                LoopingSource(SharedSamples(TestSignal.samples(1, format)), format: format, offset: 0),
                to: GainFilter(format: format, gain: Decibels(-6))
            )
            runner.install(try GraphPlan(graph))
            let driver = TimerDriver(runner)
            measure_start_busy(4)
            try driver.start()
            sleep(UInt32(max(options.seconds, 5)))
            driver.stop()
            measure_stop_busy()
            let lateness = driver.statistics.lateness
            let p99 = lateness.quantile(0.99).inMilliseconds
            let scheduling = driver.scheduling.map { "\($0)" } ?? ""
            if p99 < best.p99 { best = (p99, lateness.maximum.inMilliseconds, scheduling) }
        }
        return [
            Figure(
                "lateness: p99 under 4 busy threads",
                best.p99,
                "ms",
                .atMost(0.3),
                note: "longest \(Report.number(best.maximum)) ms, \(best.scheduling)"
            )
        ]
    }
}

/// How fast a call runs in virtual time.
enum VirtualCall {
    private static let seconds = 60

    static func measure(_ options: Options) async throws -> [Figure] {
        let format = AudioFormat(sampleRate: 48000)
        let speech = SharedSamples(try Speech.samples(options, format))
        var best = Double.infinity
        for _ in 0..<max(2, options.repetitions - 1) {
            let engine = try CallEngine(.virtual())
            let (left, right) = MemoryLink.pair()
            let configurations = [(left, right), (right, left)].map { own, other in
                var call = CallConfiguration(network: .link(own, local: own.localAddress))
                call.agreement.remote = other.localAddress
                call.source = .filter(LoopingSource(speech, format: format, offset: 0))
                call.sink = .none
                return call
            }
            _ = try await engine.makeCalls(configurations)
            let start = measure_thread_cpu()
            try engine.advance(by: .seconds(seconds))
            best = min(best, Double(measure_thread_cpu() - start) / 1e9)
            await engine.shutDown()
        }
        return [
            Figure(
                "virtual: Opus both ways, \(seconds) s",
                Double(seconds) / best,
                "x real time",
                .atLeast(25),
                note: "\(Report.number(best)) s of CPU on one core"
            )
        ]
    }
}

extension Duration {
    package var inMilliseconds: Double {
        Double(components.seconds) * 1000 + Double(components.attoseconds) / 1e15
    }
}
