import COpus
import CallBasics

/// Opus: 48000 Hz, mono or stereo, 6 to 510 kbit/s.
///
/// Defaults: 32 kbit/s mono and 48 kbit/s stereo, where in-band FEC still leaves room for the speech itself; packets
/// of 20 ms; complexity 5, half the CPU of libopus's own default 9; variable bitrate.
///
/// The receiver's parameters are obeyed. Each of them caps or forces, whatever the configuration asks:
/// | parameter | effect |
/// |---|---|
/// | `maxplaybackrate` | the encoded bandwidth |
/// | `maxaveragebitrate` | the highest bitrate, also in `adapt` |
/// | `stereo` | without `stereo=1` two channels are encoded as one |
/// | `useinbandfec` | without `useinbandfec=1` no FEC is sent |
/// | `cbr` | `cbr=1`: constant bitrate |
/// | `usedtx` | when there, decides instead of the configuration |
/// | `ptime`, `minptime`, `maxptime` | the packet length |
///
/// Empty parameters mean that nothing is known of the receiver: the configuration is then followed as it is.
/// Source: RFC 6716; RFC 7587.
package struct OpusCodec: AudioCodec {
    /// opus/48000/2, whose samples are mono unless the configuration asks for two channels.
    package let description = CodecDescription(
        name: "opus",
        clockRate: 48000,
        format: AudioFormat(sampleRate: 48000),
        ptimes: .milliseconds(10)...(.milliseconds(120)),
        ptimeStep: .milliseconds(20),
        rtpmapChannelCount: 2
    )

    /// The codec.
    package init() {}

    /// "minptime=10;useinbandfec=1", with `stereo=1` for two channels and `usedtx=1` where DTX is wished.
    ///
    /// FEC is always asked for, since the decoder takes it whenever it is there.
    package func receiveParameters(for configuration: EncoderConfiguration) -> String {
        var parameters = OpusParameters()
        parameters.minPtime = 10
        if configuration.channelCount == 2 { parameters.prefersStereo = true }
        parameters.usesFEC = true
        if configuration.usesDTX { parameters.usesDTX = true }
        return parameters.text
    }

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a value that Opus does not have.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try check(configuration)
        return try OpusEncoder(configuration, remote: OpusParameters(parsing: configuration.remoteParameters))
    }

    /// Makes a decoder, which gives one or two channels whatever was encoded.
    ///
    /// - Throws: `CodecError` for another channel count.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try Self.checkChannelCount(channelCount)
        return try OpusDecoder(channelCount: channelCount)
    }

    private func check(_ configuration: EncoderConfiguration) throws(CodecError) {
        try Self.checkChannelCount(configuration.channelCount)
        if let bitrate = configuration.bitrate {
            try Self.check(bitrate, in: Self.bitrates, "a bitrate in bit/s")
        }
        try Self.check(configuration.complexity, in: 0...10, "a complexity")
        try Self.check(configuration.expectedLossPercent, in: 0...100, "an expected loss in %")
        guard let ptime = configuration.ptime else { return }
        guard OpusParameters.encoderPtimes.contains(where: { .milliseconds($0) == ptime }) else {
            throw CodecError(
                .unsupportedConfiguration,
                "Opus has no packets of \(ptime.milliseconds) ms. Ask for 10, 20, 40, 60, 80, 100 or 120 ms."
            )
        }
    }

    private static func checkChannelCount(_ channelCount: Int) throws(CodecError) {
        try check(channelCount, in: 1...2, "a channel count")
    }

    private static func check(_ value: Int, in range: ClosedRange<Int>, _ what: String) throws(CodecError) {
        guard !range.contains(value) else { return }
        throw CodecError(
            .unsupportedConfiguration,
            "Opus does not take \(value) as \(what). Choose from \(range.lowerBound) to \(range.upperBound)."
        )
    }

    /// Bitrates that libopus takes, in bit/s.
    static let bitrates = 6000...510_000
}

extension CodecError {
    /// The error for a libopus return code.
    init(opus code: Int32, doing what: String) {
        let reason = String(cString: opus_strerror(code))
        self.init(.libraryFailure, "libopus could not \(what): \(reason). Check the installed libopus.")
    }
}
