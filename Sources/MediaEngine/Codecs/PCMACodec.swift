/// G.711 A-law: 8000 Hz mono at 64 kbit/s, one byte per sample.
///
/// It ignores bitrate, complexity, FEC and DTX: the codec has one way to work. Gaps are filled by `LossConcealer`.
/// Source: ITU-T G.711; RFC 3551, section 4.5.14.
public struct PCMACodec: AudioCodec {
    /// PCMA with its static payload type 8.
    public let description = CodecDescription(
        name: "PCMA",
        clockRate: 8000,
        format: AudioFormat(sampleRate: 8000),
        staticPayloadType: 8
    )

    /// The codec.
    public init() {}

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime outside 10 to 120 ms or more than one channel.
    public func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        return PCMAEncoder(
            format: description.format,
            frameCount: try description.frameCount(in: configuration.ptime)
        )
    }

    /// Makes a decoder with loss concealment.
    ///
    /// - Throws: `CodecError` for more than one channel.
    public func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        return ConcealingDecoder(PCMAPayloadDecoder(format: description.format))
    }
}

private final class PCMAEncoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int

    init(format: AudioFormat, frameCount: Int) {
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount, payload.count >= frameCount else { return 0 }
        G711.encodeALaw(samples, into: &payload)
        return frameCount
    }
}

private struct PCMAPayloadDecoder: PayloadDecoder {
    let format: AudioFormat

    func frameCount(of payload: Span<UInt8>) -> Int { payload.count }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        G711.decodeALaw(payload, into: &samples)
        return payload.count
    }

    func reset() {}
}
