import ArgumentParser
import CallCore
import MediaEngine
import MediaTransport

/// Receives RTP and plays it on a card or records it.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive",
        abstract: "Receives RTP, and plays it on a sound card or into a WAV file.",
        discussion: """
            It ends 2 s after RTP stops; when the sender has left (RTCP BYE), once all that came has been heard; after --seconds; \
            or at Ctrl-C. One source is heard at a time; packets of another, of a payload type that was not named, and bytes \
            that are no RTP are counted as rejected. RTCP uses the next port, or the same one when the description says rtcp-mux.

            A description of RTP/SAVP has the key (RFC 4568): what is not encrypted and signed by it is refused.

            --output holds what a card would have played, from the playout of the first packet to the end of the last, \
            with gaps concealed, at 48000 Hz for Opus and at the codec's rate otherwise.

            EXAMPLES
              media-tool receive --port 5004 --output heard.wav
              media-tool receive --sdp call.sdp --output heard.wav --json
              media-tool receive --port 5004 --codec PCMU --device 'alsa:plughw:1'
              media-tool receive --port 5004 --output heard.wav --trace heard.json
            """
    )

    @Option(help: ArgumentHelp("The UDP port to listen on, on all IPv4 addresses.", valueName: "n"))
    var port: UInt16?

    @Option(
        help: ArgumentHelp("A session description that says port, codec and payload types.", valueName: "file"),
        completion: .file(extensions: ["sdp"])
    )
    var sdp: String?

    @Option(
        help: ArgumentHelp(
            "The codec. Default: the first of the description that is known, or opus.",
            valueName: "name"
        ),
        completion: .list(["opus", "G722", "PCMU", "PCMA", "L16", "GSM", "G729"])
    )
    var codec: String?

    @Option(help: ArgumentHelp("The codec's payload type, 0 to 127.", valueName: "n"))
    var payloadType: UInt8?

    @Option(help: ArgumentHelp("The payload type of redundant audio (RED, RFC 2198); --sdp tells it.", valueName: "n"))
    var redPayloadType: UInt8?

    @Option(
        help: ArgumentHelp("The WAV file for what is heard.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(help: ArgumentHelp("\(DeviceName.help) Default: the call role."), completion: DeviceName.completion)
    var device: String?

    @Option(help: ArgumentHelp("How long to listen.", valueName: "n"))
    var seconds: Double?

    @Option(
        help: ArgumentHelp(
            "Hold packets back for so long, 0 to 1000, and never stretch sound. Default: as long as the network needs.",
            valueName: "ms"
        )
    )
    var playoutDelay: Int?

    @Option(
        help: ArgumentHelp("A JSON file with a row for each 20 ms of playout; see `report`.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var trace: String?

    @OptionGroup var roles: BindingOptions
    @OptionGroup var metrics: MetricsOption
    @OptionGroup var common: CommonOptions

    private static let silenceToEnd = Duration.seconds(2)
    /// What a card adds, and the network, on which a packet may come behind the goodbye.
    private static let goodbyeToEnd = Duration.milliseconds(300)

    func validate() throws {
        try Quantity.check("--port", port, in: 1...65_535)
        try Quantity.check("--payload-type", payloadType, in: 0...127)
        try Quantity.check("--red-payload-type", redPayloadType, in: 0...127)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try Quantity.check("--playout-delay", playoutDelay, in: 0...1000, "ms")
        if (port == nil) == (sdp == nil) {
            throw ValidationError(
                port == nil
                    ? "Missing '--port' or '--sdp'. Name the port to listen on, or a session description."
                    : "'--port' and '--sdp' exclude each other. Leave out one."
            )
        }
        try roles.check(device: device, beside: "--output", output)
        try roles.check(device: device)
        var files = FileArguments()
        try files.read("--sdp", sdp)
        try files.write("--output", output)
        try files.write("--trace", trace)
        try files.write("--metrics", metrics.metrics)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        try await CallEngine.session(try roles.engineConfiguration()) { engine in try await run(engine) }
    }

    private func run(_ engine: CallEngine) async throws {
        let wanted = try ReceivedStream(
            sdpPath: sdp,
            port: port ?? 0,
            codec: codec,
            payloadType: payloadType,
            redPayloadType: redPayloadType,
            registry: engine.registry
        )
        var configuration = CallConfiguration(network: .udp(local: wanted.local))
        configuration.name = "receiver"
        (configuration.agreement, configuration.security) = (wanted.agreement, wanted.security?.path)
        configuration.stream.encoder.channelCount = wanted.channelCount
        configuration.stream.tracesPlayout = trace != nil
        if let playoutDelay { configuration.stream.playoutDelay = .fixed(.milliseconds(playoutDelay)) }
        configuration.source = .silence
        let call = try await makeCall(configuration, on: engine)
        let recorder = try trace.map { path in
            try TraceRecorder(
                call,
                codec: wanted.codec,
                ptime: wanted.codec.defaultPtime,
                unixNanosecondsAtZero: MonotonicClock.wallOffset.nanoseconds,
                path: path
            )
        }
        let start = engine.now
        try await listen(call, start, recorder)
        var report = CallReport(
            codec: wanted.codec.name,
            mode: .udp,
            seconds: (engine.now - start).roundedSeconds,
            legs: [call.report()],
            ticks: engine.tickReport
        )
        report.cards = engine.cardReports
        report.routeChanges = engine.routeChanges
        if report.legs[0].received.packets == 0 {
            let refused = report.legs[0].received.rejected
            StandardError.write(
                refused > 0
                    ? "Note: what came to \(call.localAddress) was no RTP of this stream: "
                        + "\(English.count(refused, "packet")) refused.\n"
                    : "Note: nothing came to \(call.localAddress). See whether somebody sends there, and no firewall is "
                        + "between.\n"
            )
        }
        try recorder?.finish(report.legs[0], at: engine.now)
        try await call.end()
        let shown = report.shown(wanted.security.map { CallSecurity(.sdes, suite: $0.suite, $0.path.statistics) })
        common.show(shown.json, text: shown.text)
        try metrics.write(report)
    }

    /// Makes the call, into the file or on the card.
    private func makeCall(_ configuration: CallConfiguration, on engine: CallEngine) async throws -> Call {
        var configuration = configuration
        if let output {
            configuration.sink = .playout(output)
            return try await engine.makeCall(configuration)
        }
        let played = configuration
        return try await DeviceName.open(device, role: .call, .playback, in: engine.cards) { card in
            var configuration = played
            configuration.sink = .card(card)
            return try await engine.makeCall(configuration)
        }.result
    }

    private func listen(_ call: Call, _ start: MediaTime, _ recorder: TraceRecorder?) async throws {
        var progress = ProgressLine(total: seconds)
        defer { progress.clear() }
        let limit = seconds.map { start + .seconds(fraction: $0) }
        var packetCount = 0
        var silence = Duration.zero
        var lastLook = start
        while await Interruption.wait(.milliseconds(10)) {
            let now = MonotonicClock.current
            try recorder?.poll(at: now)
            let received = call.report().received
            // While the tool stood still (Ctrl-Z) nothing was read: what had come is still in the socket.
            silence += min(now - lastLook, .milliseconds(100))
            lastLook = now
            if received.packets != packetCount {
                packetCount = received.packets
                silence = .zero
            }
            if let limit, now >= limit { return }
            if packetCount > 0, silence >= patience(call) { return }
            progress.show((now - start).roundedSeconds)
        }
    }

    /// How long nothing may come before the end: of a sender who has left, until all was heard.
    private func patience(_ call: Call) -> Duration {
        guard call.rtpStatistics.hasSourceLeft else { return Self.silenceToEnd }
        let waiting = max(call.playoutDelay, .milliseconds(playoutDelay ?? 0))
        return min(waiting + Self.goodbyeToEnd, Self.silenceToEnd)
    }
}
