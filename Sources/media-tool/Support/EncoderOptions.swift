public import ArgumentParser
public import MediaEngine

extension FECMode: ExpressibleByArgument {}

/// The codec and what is asked of its encoder.
struct EncoderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The codec: NAME, NAME/RATE or NAME/RATE/CHANNELS; see `codecs`.", valueName: "name"),
        completion: .list(["opus", "G722", "PCMU", "PCMA", "L16", "GSM", "G729"])
    )
    var codec = "opus"

    @Option(help: ArgumentHelp("Target bitrate of the payload, 6000 to 510000 bit/s; Opus.", valueName: "b"))
    var bitrate: Int?

    @Option(help: ArgumentHelp("Audio per packet, 10 to 120 ms.", valueName: "ms"))
    var ptime: Int?

    @Option(help: ArgumentHelp("Work per frame, 0 to 10; Opus, 5 unless told.", valueName: "n"))
    var complexity: Int?

    @Option(
        help: ArgumentHelp(
            "Protection against loss: as reports of loss ask for (auto), Opus in-band FEC always (on), or off."
        )
    )
    var fec = FECMode.auto

    @Flag(help: "Offer redundant audio (RED, RFC 2198), which --fec auto chooses under heavy loss.")
    var red = false

    @Flag(help: "Leave out silence (DTX); Opus.")
    var dtx = false

    @Option(
        help: ArgumentHelp(
            "Digits to send as telephone events of 100 ms with gaps of 100 ms, from 0.5 s on.",
            valueName: "digits"
        )
    )
    var dtmf: Digits?

    /// The payload type of redundant audio, of the dynamic ones.
    static let redPayloadType: UInt8 = 121
    static let keyStart = Duration.milliseconds(500)

    func validate() throws {
        try Quantity.check("--bitrate", bitrate, in: 6000...510_000, "bit/s")
        try Quantity.check("--ptime", ptime, in: 10...120, "ms")
        if let ptime, ptime % 10 != 0 {
            throw ValidationError("The value '\(ptime)' of '--ptime' is no multiple of 10 ms. Give 10, 20, 40, 60.")
        }
        try Quantity.check("--complexity", complexity, in: 0...10)
        try dtmf?.validate(limit: 64)
    }

    /// Codec and payload types, as both legs of a call of the tool's own have them.
    var agreement: MediaAgreement {
        var agreement = MediaAgreement()
        agreement.codec = AgreedCodec(codec)
        agreement.redPayloadType = red ? Self.redPayloadType : nil
        return agreement
    }

    /// The stream's configuration.
    var stream: AudioStreamConfiguration {
        var stream = AudioStreamConfiguration()
        stream.encoder.bitrate = bitrate
        stream.encoder.ptime = ptime.map { .milliseconds($0) }
        if let complexity { stream.encoder.complexity = complexity }
        stream.encoder.usesDTX = dtx
        stream.fec = fec
        return stream
    }

    /// The stream's configuration, with as many channels as `codec` has.
    func stream(of codec: CodecDescription) -> AudioStreamConfiguration {
        var stream = stream
        stream.encoder.channelCount = codec.format.channelCount
        return stream
    }

    /// When the last key has been sent, the repeats of its end included; zero without keys.
    var keyEnd: Duration {
        guard let dtmf else { return .zero }
        return Self.keyStart + dtmf.length(duration: .milliseconds(100), gap: .milliseconds(100)) + .milliseconds(100)
    }

    /// Refuses a knob that the codec has not, so that nothing is asked for in vain.
    func check(against codec: CodecDescription) throws {
        if codec.name.lowercased() != "opus" {
            let asked = [
                ("--bitrate", bitrate != nil), ("--complexity", complexity != nil), ("--dtx", dtx),
                ("--fec on", fec == .on),
            ]
            if let wrong = asked.first(where: \.1)?.0 {
                throw ValidationError("\(codec.name) has no '\(wrong)'. Leave it out, or choose --codec opus.")
            }
        }
        if let ptime, !codec.ptimes.contains(.milliseconds(ptime)) {
            throw ValidationError(
                "The value '\(ptime)' of '--ptime' is out of range for \(codec.name). "
                    + "Give \(Int(codec.ptimes.lowerBound.milliseconds)) to \(Int(codec.ptimes.upperBound.milliseconds)) ms."
            )
        }
    }
}
