import ArgumentParser
import MediaEngine

/// Sends a file, a card or the test signal by RTP.
struct SendCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Sends a WAV file, a sound card or a test signal by RTP, at the pace of time.",
        discussion: """
            RTCP goes to the next port. Dynamic payload types are 96 for the codec, 101 for telephone events (102 when \
            --payload-type is 101) and, with --red, 121 for redundant audio (122 when --payload-type is 121). Sending ends with the input, later when keys are still to be sent; a card is \
            sent until --seconds are over, or Ctrl-C.

            EXAMPLES
              media-tool send --to 192.0.2.7:5004 --input speech.wav
              media-tool send --to 127.0.0.1:5004 --input speech.wav --sdp call.sdp &
              ffplay -protocol_whitelist file,udp,rtp -i call.sdp
              media-tool send --to door.local:5004 --codec PCMU --device 'alsa:plughw:1' --seconds 60
            """
    )

    @Option(help: ArgumentHelp("Where to send; an IPv6 address in brackets.", valueName: "host:port"))
    var to: HostPort

    @OptionGroup var encoder: EncoderOptions

    @Option(help: ArgumentHelp("The codec's payload type, 0 to 127.", valueName: "n"))
    var payloadType: UInt8?

    @Option(
        help: ArgumentHelp("The WAV file to send, once; any usual rate, one or two channels.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var input: String?

    @Option(help: ArgumentHelp("Capture from a card. \(DeviceName.help)"), completion: DeviceName.completion)
    var device: String?

    @Option(help: ArgumentHelp("How long to send; silence follows a shorter file.", valueName: "n"))
    var seconds: Double?

    @Option(
        help: ArgumentHelp("Write a session description that others play the stream by.", valueName: "file"),
        completion: .file(extensions: ["sdp"])
    )
    var sdp: String?

    @OptionGroup var roles: BindingOptions
    @OptionGroup var metrics: MetricsOption
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--payload-type", payloadType, in: 0...127)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        if input != nil, device != nil {
            throw ValidationError("'--input' and '--device' exclude each other. Leave out one.")
        }
    }

    func run() throws {
        common.startLogging()
        Interruption.catchSignals()
        let engine = try roles.engine()
        defer { engine.shutDown() }
        let codec = try engine.registry.codec(named: encoder.codec)
        try encoder.check(against: codec.description)
        let remote = try to.resolve()
        let sound = try AudioInput(path: input, seconds: seconds, format: codec.description.format)
        var configuration = CallConfiguration(
            network: .udp(local: SocketAddress(host: remote.isIPv4 ? "0.0.0.0" : "::", port: 0) ?? .loopback(port: 0))
        )
        configuration.name = "sender"
        configuration.remote = remote
        configuration.multiplexesControl = false
        configuration.isSymmetric = false
        configuration.stream = encoder.stream(of: codec.description)
        configuration.stream.payloadType = payloadType
        configuration.stream.telephoneEventPayloadType = payloadType == 101 ? 102 : 101
        if encoder.red, payloadType == EncoderOptions.redPayloadType { configuration.stream.redPayloadType = 122 }
        configuration.sink = .none
        var card: (any SoundCard)?
        if let device { card = try DeviceName.card(device, role: .call, in: engine.cards) }
        configuration.source = card.map { .card($0) } ?? sound.source
        if let sdp { try TextFile.write(description(to: remote, codec, configuration.stream).text, to: sdp) }
        let call = try Self.makeCall(configuration, on: engine)
        if let card { DeviceName.noteFallback(card) }
        let start = engine.now
        try talk(call, start, card == nil ? sound : nil)
        engine.flushEvents()
        let length = engine.now - start
        let (cards, routeChanges) = (engine.cardReports, engine.routeChanges)
        // Until it has ended, packets may leave that a report would lack.
        try call.end()
        var report = CallReport(
            codec: codec.description.name,
            mode: "udp",
            seconds: length.roundedSeconds,
            legs: [call.report()],
            ticks: CallReport.Ticks(engine.tickStatistics)
        )
        report.cards = cards
        report.routeChanges = routeChanges
        common.show(report.json, text: report.table)
        try metrics.write(report)
    }

    /// A call on a free port whose next port is free, too.
    private static func makeCall(_ configuration: CallConfiguration, on engine: CallEngine) throws -> Call {
        for _ in 0..<16 {
            do {
                return try engine.makeCall(configuration)
            } catch {
                guard case .network(let cause) = error, cause.code == .portInUse else { throw error }
            }
        }
        return try engine.makeCall(configuration)
    }

    private func talk(_ call: Call, _ start: MediaTime, _ sound: AudioInput?) throws {
        var progress = ProgressLine(total: seconds ?? sound?.length?.roundedSeconds)
        defer { progress.clear() }
        func run(until isDone: () -> Bool) -> Bool {
            while !isDone() {
                guard Interruption.wait(.milliseconds(10)) else { return false }
                progress.show((MonotonicClock.current - start).roundedSeconds)
            }
            return true
        }
        let limit = seconds.map { start + .seconds(fraction: $0) }
        if let keys = encoder.dtmf {
            let keyStart = start + EncoderOptions.keyStart
            guard run(until: { MonotonicClock.current >= min(limit ?? keyStart, keyStart) }) else { return }
            try call.sendDTMF(keys.sequence.description)
        }
        if let limit {
            _ = run(until: { MonotonicClock.current >= limit })
            return
        }
        guard sound != nil else {
            _ = run(until: { false })
            return
        }
        // The last packet is filled up with silence.
        let end = start + encoder.keyEnd
        guard run(until: { call.isSourceEnded && MonotonicClock.current >= end }) else { return }
        _ = Interruption.wait((encoder.stream.encoder.ptime ?? .milliseconds(20)) + .milliseconds(30))
    }

    private func description(
        to remote: SocketAddress,
        _ codec: any AudioCodec,
        _ stream: AudioStreamConfiguration
    ) -> SessionDescription {
        let known = codec.description
        let parameters = codec.receiveParameters(for: stream.encoder)
        var formats = [
            PayloadFormat(
                payloadType: payloadType ?? known.staticPayloadType ?? 96,
                encodingName: known.name,
                clockRate: known.clockRate,
                channelCount: known.rtpmapChannelCount,
                parameters: parameters.isEmpty ? nil : parameters
            )
        ]
        if let events = stream.telephoneEventPayloadType {
            formats.append(
                PayloadFormat(
                    payloadType: events,
                    encodingName: "telephone-event",
                    clockRate: known.clockRate,
                    parameters: "0-15"
                )
            )
        }
        if let red = stream.redPayloadType { formats.append(PayloadFormat(redundant: formats[0], payloadType: red)) }
        var description = SessionDescription(host: remote.host, port: remote.port, formats: formats)
        description.packetTime = Int((stream.encoder.ptime ?? known.defaultPtime).milliseconds)
        description.direction = .sendOnly
        return description
    }
}
