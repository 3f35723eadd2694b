import ArgumentParser
import CallCore
import MediaEngine
import MediaTransport
import SDP

/// Sends a file, a card or the test signal by RTP.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Sends a WAV file, a sound card or a test signal by RTP, at the pace of time.",
        discussion: """
            RTCP goes to the next port. Dynamic payload types are 96 for the codec, 101 for telephone events (102 when \
            --payload-type is 101) and, with --red, 121 for redundant audio (122 when --payload-type is 121). Sending ends with the input, later when keys are still to be sent; a card is \
            sent until --seconds are over, or Ctrl-C.

            With --srtp sdes the key is in the description of --sdp, which only its owner may read then: whoever has it can hear \
            the stream.

            EXAMPLES
              media-tool send --to 192.0.2.7:5004 --input speech.wav
              media-tool send --to 127.0.0.1:5004 --input speech.wav --sdp call.sdp &
              ffplay -protocol_whitelist file,udp,rtp -i call.sdp
              media-tool send --to 127.0.0.1:5004 --input speech.wav --sdp call.sdp --srtp sdes
              media-tool send --to door.local:5004 --codec PCMU --device 'alsa:plughw:1' --seconds 60
            """
    )

    @Option(help: ArgumentHelp("Where to send; an IPv6 address in brackets.", valueName: "host:port"))
    var to: HostPort

    @OptionGroup var encoder: EncoderOptions

    @Option(help: ArgumentHelp("The codec's payload type, 0 to 127.", valueName: "n"))
    var payloadType: UInt8?

    @Option(
        help: ArgumentHelp(
            "The WAV file to send, once; any usual rate, one or two channels. \(InputPath.help)",
            valueName: "file"
        ),
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

    @Option(help: "What secures the sound: off, or sdes, SRTP by a key in --sdp (RFC 4568).")
    var srtp = SRTPWish.off

    @OptionGroup var roles: BindingOptions
    @OptionGroup var metrics: MetricsOption
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--payload-type", payloadType, in: 0...127)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        guard srtp == .off || srtp == .sdes else {
            throw ValidationError(
                "DTLS needs an answer: '--srtp \(srtp.rawValue)' is for calls. Say sdes, which tells the key."
            )
        }
        guard srtp == .off || sdp != nil else {
            throw ValidationError("'--srtp sdes' tells the key by a description. Give '--sdp', the file for it.")
        }
        try roles.check(device: device, beside: "--input", input)
        try roles.check(device: device)
        if device == nil, let flag = roles.given.first(where: \.1)?.0 {
            throw ValidationError("'\(flag)' says what a role stands for. Give '--device role:AU', or leave it out.")
        }
        var files = FileArguments()
        try files.read("--input", input.map { InputPath.path(of: $0) })
        try files.write("--sdp", sdp)
        try files.write("--metrics", metrics.metrics)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        try await CallEngine.session(try roles.engineConfiguration()) { engine in try await run(engine) }
    }

    private func run(_ engine: CallEngine) async throws {
        let codec = try engine.registry.codec(named: encoder.codec).description
        try encoder.check(against: codec)
        let remote = try to.resolve()
        let sound = try AudioInput(path: input, seconds: seconds, format: codec.format).makePlayback()
        var configuration = CallConfiguration(
            network: .udp(local: SocketAddress(host: remote.isIPv4 ? "0.0.0.0" : "::", port: 0) ?? .loopback(port: 0))
        )
        configuration.name = "sender"
        configuration.stream = encoder.stream(of: codec)
        configuration.sink = .none
        var generator = SystemRandomNumberGenerator()
        let key = srtp == .off ? nil : SDESKeys.announcement(using: &generator)
        let path = SecurePath()
        if let key {
            path.offer(sending: key.sending, receiving: nil)
            configuration.security = path
        }
        let media = [try medium(codec, configuration.stream.encoder, key?.line, engine.registry)]
        let announced = SessionConfiguration(address: remote.host, media: media)
        configuration.agreement = try agreement(on: announced, with: remote, engine.registry)
        if let sdp {
            let sessionID = UInt64.random(in: .min ... .max)
            let text = try SessionDescription(announcing: announced, sessionID: sessionID).description
            try TextFile.write(text, to: sdp, isSecret: key != nil)
        }
        let call = try await makeCall(configuration, sound, on: engine)
        let start = engine.now
        try await talk(call, start, device == nil ? sound : nil)
        let length = engine.now - start
        let (cards, routeChanges) = (engine.cardReports, engine.routeChanges)
        // Until it has ended, packets may leave that a report would lack.
        try await call.end()
        var report = CallReport(
            codec: codec.name,
            mode: .udp,
            seconds: length.roundedSeconds,
            legs: [call.report()],
            ticks: engine.tickReport
        )
        report.cards = cards
        report.routeChanges = routeChanges
        let shown = report.shown(key.map { CallSecurity(.sdes, suite: $0.sending.suite, path.statistics) })
        common.show(shown.json, text: shown.text)
        try metrics.write(report)
    }

    /// What whoever listens takes, as `receive` does by the same description; the address may be that of many.
    private func agreement(
        on announced: SessionConfiguration,
        with remote: SocketAddress,
        _ registry: PluginRegistry
    ) throws -> MediaAgreement {
        var offer = announced
        offer.address = "0.0.0.0"
        let description = try SessionDescription(announcing: offer, sessionID: 1)
        var agreement = try DescribedStream(description, of: "The stream", codec: encoder.codec, registry).agreement
        agreement.direction = .sendOnly
        agreement.remote = remote
        agreement.isSymmetric = false
        return agreement
    }

    /// Makes the call, from the card or from the input.
    private func makeCall(
        _ configuration: CallConfiguration,
        _ sound: AudioInput.Playback,
        on engine: CallEngine
    ) async throws -> Call {
        var configuration = configuration
        configuration.source = sound.source
        guard let device else { return try await Self.makeCall(configuration, on: engine) }
        let spoken = configuration
        return try await DeviceName.open(device, role: .call, .capture, in: engine.cards) { card in
            var configuration = spoken
            configuration.source = .card(card)
            return try await Self.makeCall(configuration, on: engine)
        }.result
    }

    /// A call on a free port whose next port is free, too.
    private static func makeCall(_ configuration: CallConfiguration, on engine: CallEngine) async throws -> Call {
        for _ in 0..<16 {
            do {
                return try await engine.makeCall(configuration)
            } catch {
                guard case .network(let cause) = error, cause.code == .portInUse else { throw error }
            }
        }
        return try await engine.makeCall(configuration)
    }

    private func talk(_ call: Call, _ start: MediaTime, _ sound: AudioInput.Playback?) async throws {
        var progress = ProgressLine(total: seconds ?? sound?.length?.roundedSeconds)
        defer { progress.clear() }
        var watch = UnreachableWatch()
        func run(until isDone: () -> Bool) async -> Bool {
            while !isDone() {
                guard await Interruption.wait(.milliseconds(10)) else { return false }
                let now = MonotonicClock.current
                let sent = call.report().sent
                if watch.isTold(answers: sent.unreachable, at: now) {
                    StandardError.write(
                        "Note: the network answered that \(sent.unreachable) of "
                            + "\(English.count(sent.packets, "packet")) did not arrive: nobody listens there, or there is "
                            + "no route.\n"
                    )
                }
                progress.show((now - start).roundedSeconds)
            }
            return true
        }
        let limit = seconds.map { start + .seconds(fraction: $0) }
        if let keys = encoder.dtmf {
            let keyStart = start + EncoderOptions.keyStart
            guard await run(until: { MonotonicClock.current >= min(limit ?? keyStart, keyStart) }) else { return }
            try call.sendDTMF(keys.sequence.description)
        }
        if let limit {
            // What a machine that stood still is late with is sent, too, as far as it is made up for.
            let latest = limit + LatenessPolicy().longestBacklog
            _ = await run(until: {
                let now = MonotonicClock.current
                return now >= latest || now >= limit && sound?.hasGivenSignal ?? true
            })
            return
        }
        guard let sound else {
            _ = await run(until: { false })
            return
        }
        // The last packet is filled up with silence.
        let end = start + encoder.keyEnd
        guard await run(until: { sound.hasEnded(in: call) && MonotonicClock.current >= end }) else { return }
        _ = await Interruption.wait((encoder.stream.encoder.ptime ?? .milliseconds(20)) + .milliseconds(30))
    }

    /// The stream as its description announces it: where to listen, and for what.
    private func medium(
        _ codec: CodecDescription,
        _ wishes: EncoderConfiguration,
        _ key: CryptoAttribute?,
        _ registry: PluginRegistry
    ) throws -> MediaConfiguration {
        var formats = try registry.payloadFormats(for: [encoder.codec], encoder: wishes, hasComfortNoise: false)
        // The codec, and the telephone events beside it.
        if let payloadType { formats[0].payloadType = payloadType }
        if payloadType == 101 { formats[1].payloadType = 102 }
        if encoder.red {
            let type = payloadType == EncoderOptions.redPayloadType ? 122 : EncoderOptions.redPayloadType
            formats.append(PayloadFormat(redundant: formats[0], payloadType: type))
        }
        var medium = MediaConfiguration(port: to.port, formats: formats)
        medium.packetTime = Int((wishes.ptime ?? codec.defaultPtime).milliseconds)
        medium.direction = .sendOnly
        medium.isMultiplexed = false
        if let key { (medium.protocols, medium.keys) = ([.rtpSAVP], [key]) }
        return medium
    }
}
