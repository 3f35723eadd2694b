import ArgumentParser
import MediaEngine

/// Makes a call between two legs of this process.
struct LoopbackCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "loopback",
        abstract: "Makes an RTP call between two legs, A and B, and reports on both.",
        discussion: """
            Both legs send the input (or the built-in test signal), from the same tick on. They use UDP sockets on \
            127.0.0.1, or, with --virtual, a simulated network in virtual time, where the same seed gives the same \
            files and the same report, byte for byte. Loss, delay and the like act on both directions, each with its \
            own draws, RTCP included.

            --output records what B hears, at the codec's rate, from the tick in which A begins to send, so that \
            correlating it with the input gives the delay from mouth to ear. It is as long as the call: the input, and \
            the time that its last sound needs to be heard.

            --record keeps both sides of B's leg in one file, a channel each, in step with each other.

            --relay IN:OUT has A send to 127.0.0.1:IN and B listen on 127.0.0.1:OUT, for a program of yours to pass \
            packets from IN to OUT. B answers A directly.

            --trace writes what B's jitter buffer does, a row for each 20 ms, for `media-tool report`.

            --device measures the delay from mouth to ear over real cards: A sends chirps, B plays them on the card, and \
            the card (or --capture-device) hears them, through the air, a cable, or a sound server's monitor.

            EXAMPLES
              media-tool loopback --input speech.wav --output heard.wav
              media-tool loopback --virtual --loss 5 --burst 2 --jitter 30 --seed 7 --json
              media-tool loopback --codec PCMU --dtmf '159#' --seconds 3 --pcap call.pcap
              media-tool loopback --relay 6000:6002 --input speech.wav --output heard.wav
              media-tool loopback --virtual --loss 5 --jitter 60 --trace call.json
              media-tool loopback --virtual --loss 5 --record both.wav
              media-tool loopback --device role:AU --chirps 10
              media-tool loopback --device 'alsa:plughw:1' --capture-device 'alsa:plughw:2' --json
            """
    )

    @Option(
        help: ArgumentHelp(
            "The WAV file that both legs send, once; any usual rate, one or two channels.",
            valueName: "file"
        ),
        completion: .file(extensions: ["wav"])
    )
    var input: String?

    @Option(
        help: ArgumentHelp("The WAV file for what B hears.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(
        help: ArgumentHelp("A stereo WAV file: left what B sends, right what B hears.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var record: String?

    @Option(help: ArgumentHelp("How long the call lasts. Default: until the input has been heard.", valueName: "n"))
    var seconds: Double?

    @OptionGroup var encoder: EncoderOptions

    @Option(help: ArgumentHelp("A program between ports IN and OUT passes A's packets on to B.", valueName: "in:out"))
    var relay: RelayPorts?

    @Flag(help: "Simulate network and time.")
    var virtual = false

    @OptionGroup var network: ImpairmentOptions

    @Option(
        help: ArgumentHelp("A capture file of the packets that B sends and receives.", valueName: "file"),
        completion: .file(extensions: ["pcap"])
    )
    var pcap: String?

    @Option(
        help: ArgumentHelp(
            "A JSON file with a row for each 20 ms of B's playout; see `report`.",
            valueName: "file"
        ),
        completion: .file(extensions: ["json"])
    )
    var trace: String?

    @OptionGroup var cards: ChirpOptions
    @OptionGroup var metrics: MetricsOption
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try cards.check(
            excluding: [
                ("--virtual", virtual), ("--input", input != nil), ("--output", output != nil),
                ("--record", record != nil), ("--seconds", seconds != nil), ("--dtmf", encoder.dtmf != nil),
                ("--trace", trace != nil), ("--metrics", metrics.metrics != nil),
            ]
        )
        if virtual, relay != nil {
            throw ValidationError("'--relay' needs sockets and cannot be used with '--virtual'. Leave out one.")
        }
        var files = FileArguments()
        let path = input.map { InputPath.path(of: $0) }
        if let path, InputPath.isPipe(path) {
            throw ValidationError("'--input' is a pipe, which two legs cannot both read. Copy it to a file first.")
        }
        try files.read("--input", path)
        try files.write("--output", output)
        try files.write("--record", record)
        try files.write("--pcap", pcap)
        try files.write("--trace", trace)
        try files.write("--metrics", metrics.metrics)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let configuration = virtual ? CallEngineConfiguration.virtual(seed: network.seed) : CallEngineConfiguration()
        try await CallEngine.session(configuration) { engine in try await run(engine) }
    }

    private func run(_ engine: CallEngine) async throws {
        let codec = try engine.registry.codec(named: encoder.codec).description
        try encoder.check(against: codec)
        if let device = cards.device { return try await measure(engine, codec, device) }
        let sound = try AudioInput(path: input, seconds: seconds, format: codec.format)
        var sink = CallSink.none
        if let output { sink = .file(output) }
        let calls = try await engine.makeCalls(try legs({ sound.makePlayback().source }, sink, codec))
        let (a, b) = (calls[0], calls[1])
        let recorder = try trace.map { path in
            let ptime = encoder.stream.encoder.ptime ?? codec.defaultPtime
            let zero = virtual ? nil : MonotonicClock.wallOffset.nanoseconds
            return try TraceRecorder(b, codec: codec, ptime: ptime, unixNanosecondsAtZero: zero, path: path)
        }
        if let record { try await b.startRecording(stereo: record) }
        let start = engine.now
        try await converse(engine, a, sound, recorder)
        var report = CallReport(
            codec: codec.name,
            mode: virtual ? .virtual : .udp,
            seconds: (engine.now - start).roundedSeconds,
            legs: [a.report(hearing: b), b.report(hearing: a)],
            ticks: engine.tickReport
        )
        report.cards = engine.cardReports
        report.routeChanges = engine.routeChanges
        try recorder?.finish(report.legs[1], at: engine.now)
        try await a.end()
        try await b.end()
        common.show(report.json, text: report.table)
        try metrics.write(report)
    }

    /// A sends chirps, B plays them on the card, and the card that hears them tells when.
    private func measure(_ engine: CallEngine, _ codec: CodecDescription, _ device: String) async throws {
        let (playback, capture) = try cards.cards(device, in: engine.cards)
        let chirps = ChirpSourceFilter(format: codec.format, count: cards.chirps ?? 5)
        let heard = try await DeviceName.open(capture, .capture) { try await ChirpListener($0) }
        let listener = heard.result
        let (leg, streams): (LegReport, [MouthToEar.StreamDelay])
        do {
            (leg, streams) = try await send(chirps, to: playback, heardBy: listener, engine, codec)
        } catch {
            await listener.stop()
            throw error
        }
        let failure = listener.failure
        await listener.stop()
        let result = try MouthToEar(listener, chirps, streams: streams)
        common.show(
            result.json(codec: codec.name, playback, capture, leg),
            text: result.text(codec: codec.name, playback, capture)
        )
        if let failure { throw failure }
    }

    /// Makes the call in which B plays `chirps` on `card`; answers how B received them, and how long that took all the while.
    private func send(
        _ chirps: ChirpSourceFilter,
        to card: any SoundCard,
        heardBy listener: ChirpListener,
        _ engine: CallEngine,
        _ codec: CodecDescription
    ) async throws -> (LegReport, [MouthToEar.StreamDelay]) {
        let calls = try await DeviceName.open(card, .playback) { card in
            try await engine.makeCalls(try legs({ .filter(chirps) }, .card(card), codec, isOneWay: true))
        }.result
        var streams: [MouthToEar.StreamDelay] = []
        await listener.listen(to: chirps) { time in
            let delay = calls[1].report(hearing: calls[0]).mouthToEarMs
            streams.append(MouthToEar.StreamDelay(time: time, milliseconds: delay))
        }
        let leg = calls[1].report(hearing: calls[0])
        for call in calls { try await call.end() }
        return (leg, streams)
    }

    // MARK: The legs

    private func legs(
        _ source: () -> CallSource,
        _ sink: CallSink,
        _ codec: CodecDescription,
        isOneWay: Bool = false
    ) throws -> [CallConfiguration] {
        let (links, addresses) = try networks()
        var a = CallConfiguration(network: links.0)
        a.name = "A"
        a.agreement = encoder.agreement
        a.agreement.remote = relay.map { .loopback(port: $0.input) } ?? addresses.1
        a.stream = encoder.stream(of: codec)
        // Through a relay, packets come from elsewhere than where answers must go.
        a.agreement.isSymmetric = relay == nil
        a.impairment = network.impairment
        a.impairmentSeed = network.seed &+ 1
        a.source = source()
        a.sink = .none
        var b = a
        b.network = links.1
        b.name = "B"
        b.agreement.remote = addresses.0
        b.impairmentSeed = network.seed
        b.source = isOneWay ? .silence : source()
        b.sink = sink
        b.stream.tracesPlayout = trace != nil
        b.capturePath = pcap
        return [a, b]
    }

    private func networks() throws -> ((CallNetwork, CallNetwork), (SocketAddress, SocketAddress)) {
        if virtual {
            let (left, right) = MemoryLink.pair()
            return (
                (.link(left, local: left.localAddress), .link(right, local: right.localAddress)),
                (left.localAddress, right.localAddress)
            )
        }
        let left = try UDPSocket(bind: .loopback(port: 0))
        let right = try UDPSocket(bind: .loopback(port: relay?.output ?? 0))
        return (
            (.link(left, local: left.localAddress), .link(right, local: right.localAddress)),
            (left.localAddress, right.localAddress)
        )
    }

    // MARK: The call

    private func converse(
        _ engine: CallEngine,
        _ a: Call,
        _ sound: AudioInput,
        _ recorder: TraceRecorder?
    ) async throws {
        let start = engine.now
        var progress = ProgressLine(total: (seconds.map { .seconds(fraction: $0) } ?? sound.length)?.roundedSeconds)
        defer { progress.clear() }
        func run(until end: MediaTime) async throws -> Bool {
            while engine.now < end {
                guard !Interruption.hasCome else { return false }
                // What happens beside the rows of a trace is seen as often as this.
                let step = min(end, engine.now + .milliseconds(recorder == nil ? 500 : 100))
                if virtual {
                    try engine.advance(by: step - engine.now)
                } else {
                    _ = await Interruption.wait(until: step)
                }
                try recorder?.poll(at: engine.now)
                progress.show((engine.now - start).roundedSeconds)
            }
            return true
        }
        let limit = seconds.map { start + .seconds(fraction: $0) }
        if let keys = encoder.dtmf {
            let keyStart = start + EncoderOptions.keyStart
            guard try await run(until: min(limit ?? keyStart, keyStart)) else { return }
            try a.sendDTMF(keys.sequence.description)
        }
        if let limit {
            _ = try await run(until: limit)
            return
        }
        if let length = sound.length {
            guard try await run(until: start + length) else { return }
        } else {
            while !a.isSourceEnded { guard try await run(until: engine.now + .milliseconds(10)) else { return } }
        }
        // The last sound is under way for as long as the network and the buffers hold it.
        let tail = network.longestDelay + (encoder.stream.encoder.ptime ?? .milliseconds(20)) + .milliseconds(260)
        _ = try await run(until: max(engine.now + tail, start + encoder.keyEnd + tail))
    }
}

/// Two UDP ports, written IN:OUT.
struct RelayPorts: ExpressibleByArgument {
    let input: UInt16
    let output: UInt16

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let input = UInt16(parts[0]), let output = UInt16(parts[1]), input > 0, output > 0
        else {
            return nil
        }
        self.input = input
        self.output = output
    }
}
