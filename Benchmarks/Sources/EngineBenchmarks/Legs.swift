import CMeasure
import Glibc

@testable package import MediaEngine

/// Full-duplex legs in one engine, two and two connected over UDP on the loopback interface, in real time.
enum Legs {
    struct Cost {
        var process = 0.0
        var codec = 0.0
        /// Packets received for each that should have been.
        var share = 0.0
        var lateTicks = 0
    }

    /// Runs `count` legs for `seconds` after a second to warm up, and answers CPU nanoseconds.
    static func run(
        count: Int,
        seconds: Int,
        speech: [Int16],
        codec: String,
        stream: AudioStreamConfiguration
    ) async throws -> Cost {
        let engine = try CallEngine(CallEngineConfiguration())
        let format = try engine.registry.codec(named: codec).description.format
        let ports = try freePorts(count)
        let shared = SharedSamples(speech)
        let configurations = (0..<count).map { leg in
            var call = CallConfiguration(network: .udp(local: ports[leg]))
            call.name = "leg \(leg)"
            call.stream = stream
            call.agreement.codec = AgreedCodec(codec)
            call.agreement.remote = ports[leg ^ 1]
            call.source = .filter(LoopingSource(shared, format: format, offset: leg * 7919 * 16))
            call.sink = .none
            return call
        }
        let calls = try await engine.makeCalls(configurations)
        sleep(1)
        measure_opus(1)
        let before = (measure_process_cpu(), received(calls), measure_now(), engine.tickStatistics.lateCount)
        sleep(UInt32(seconds))
        var cost = Cost(process: Double(measure_process_cpu() - before.0), codec: Double(measure_opus_nanoseconds()))
        measure_opus(0)
        let expected = Double(measure_now() - before.2) / 20_000_000 * Double(count)
        cost.share = Double(received(calls) - before.1) / expected
        cost.lateTicks = engine.tickStatistics.lateCount - before.3
        await engine.shutDown()
        return cost
    }

    private static func received(_ calls: [Call]) -> Int {
        calls.reduce(0) { $0 + $1.report().received.packets }
    }

    /// Ports that were free a moment ago.
    private static func freePorts(_ count: Int) throws -> [SocketAddress] {
        let sockets = try (0..<count).map { _ in try UDPSocket(bind: .loopback(port: 0)) }
        return sockets.map(\.localAddress)
    }
}

/// How much an Opus leg costs beside the codec itself.
enum OpusLegs {
    static let codec = "opus"
    static let count = 40

    static var stream: AudioStreamConfiguration {
        var stream = AudioStreamConfiguration()
        stream.encoder.complexity = 5
        stream.encoder.bitrate = 24000
        stream.fec = .on
        return stream
    }

    static func measure(_ options: Options) async throws -> [Figure] {
        let speech = try Speech.samples(options, AudioFormat(sampleRate: 48000))
        var runs: [Legs.Cost] = []
        for _ in 0..<options.repetitions {
            runs.append(
                try await Legs.run(count: count, seconds: options.seconds, speech: speech, codec: codec, stream: stream)
            )
        }
        let best = runs.min { $0.process / $0.codec < $1.process / $1.codec } ?? Legs.Cost()
        let perLeg = best.process / 1000 / Double(count * options.seconds)
        return [
            Figure(
                "opus-legs: process CPU / libopus CPU, N=\(count)",
                best.process / best.codec,
                "",
                .atMost(1.06),
                note: "\(Report.number(perLeg)) us/leg-s"
            ),
            // In whole percents: a packet of each leg is sent before the count and taken after it.
            Figure("opus-legs: packets received of those due", (best.share * 100).rounded(), "%", .atLeast(100)),
            Figure(
                "opus-legs: late ticks",
                Double(best.lateTicks),
                "",
                .atMost(Double(options.seconds)),
                note: "of \(options.seconds * 100), 6 of 600"
            ),
        ]
    }
}

/// How much a leg costs whose codec costs nothing.
enum G711Legs {
    static let codec = "PCMU"
    static let count = 200

    static func measure(_ options: Options) async throws -> [Figure] {
        let speech = try Speech.samples(options, AudioFormat(sampleRate: 8000))
        var floors: [Double] = []
        var legs: [Legs.Cost] = []
        for _ in 0..<options.repetitions {
            var received: Int64 = 0
            let floor = measure_floor(Int32(count), Int32(options.seconds), speech, Int32(speech.count), &received)
            guard floor > 0 else { throw Options.Wrong(description: "the floor program failed: \(floor)") }
            floors.append(Double(floor))
            legs.append(
                try await Legs.run(
                    count: count,
                    seconds: options.seconds,
                    speech: speech,
                    codec: codec,
                    stream: AudioStreamConfiguration()
                )
            )
        }
        let floor = floors.min() ?? 1
        let best = legs.min { $0.process < $1.process } ?? Legs.Cost()
        let scale = 1000 * Double(count * options.seconds)
        let pairs = zip(legs, floors).map { $0.process / $1 }.map(Report.number).joined(separator: " ")
        return [
            Figure(
                "g711-legs: leg / floor program, N=\(count)",
                best.process / floor,
                "",
                .atMost(2),
                note: "\(Report.number(best.process / scale)) / \(Report.number(floor / scale)) us/leg-s, "
                    + "received \(Report.number(best.share * 100)) %, late ticks \(best.lateTicks), pairs \(pairs)"
            )
        ]
    }
}

/// Legs over UDP whose ticks follow each other without a pause: for profilers, and to compare two builds.
///
/// Instructions per leg and second: run `valgrind --tool=callgrind` with `--seconds 2` and `--seconds 6`, divide the
/// difference by 4 s and the legs.
package enum UnpacedLegs {
    static func measureG711(_ options: Options) throws -> [Figure] {
        [try measure("g711-unpaced", G711Legs.codec, AudioStreamConfiguration(), options)]
    }

    static func measureOpus(_ options: Options) throws -> [Figure] {
        [try measure("opus-unpaced", OpusLegs.codec, OpusLegs.stream, options)]
    }

    private static func measure(
        _ title: String,
        _ name: String,
        _ configuration: AudioStreamConfiguration,
        _ options: Options
    ) throws -> Figure {
        let cost = try cost(name, configuration, options) { link, _ in link }
        return Figure(
            "\(title): N=\(options.legs & ~1)",
            cost,
            "us/leg-s",
            note: "ticks without a pause between them"
        )
    }

    /// What a leg takes of a processor.
    ///
    /// - Parameters:
    ///   - name: The codec.
    ///   - configuration: What is asked of the stream.
    ///   - options: How many legs, and for how long.
    ///   - over: What a leg has over its link: the link itself, or one that secures it.
    /// - Returns: Microseconds for each second of sound.
    /// - Throws: `CodecError`, `GraphError`, `NetworkError`, and what `over` throws.
    package static func cost(
        _ name: String,
        _ configuration: AudioStreamConfiguration,
        _ options: Options,
        over: (any DatagramLink, Int) throws -> any DatagramLink
    ) throws -> Double {
        let count = options.legs & ~1
        let codec = try PluginRegistry.standard().codec(named: name)
        let speech = SharedSamples(TestSignal.samples(2, codec.description.format))
        let sockets = try (0..<count).map { _ in try UDPSocket(bind: .loopback(port: 0)) }
        var graph = Graph()
        for (leg, socket) in sockets.enumerated() {
            try BareLeg.add(
                name,
                configuration,
                over: over(UnpacedLink(socket), leg),
                addresses: (socket.localAddress, sockets[leg ^ 1].localAddress),
                seed: UInt64(leg),
                to: &graph,
                source: LoopingSource(speech, format: codec.description.format, offset: leg * 800)
            )
        }
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        var now = MonotonicClock.current
        let start = measure_thread_cpu()
        for _ in 0..<options.seconds * 100 {
            runner.tick(at: now)
            now += .milliseconds(10)
        }
        return Double(measure_thread_cpu() - start) / 1000 / Double(options.seconds * count)
    }
}

/// A socket whose datagrams arrive with the tick that takes them: without a pause between ticks, the kernel's time stamps
/// would say of every packet that the network had held it back.
private final class UnpacedLink: DatagramLink {
    private let socket: UDPSocket

    init(_ socket: UDPSocket) {
        self.socket = socket
    }

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        socket.send(bytes, to: destination, at: now)
    }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        socket.receive(into: &buffer, at: now).map {
            ReceivedDatagram(byteCount: $0.byteCount, source: $0.source, arrival: now)
        }
    }
}
