/// G.711, µ-law or A-law: 8000 Hz mono at 64 kbit/s, one byte per sample.
///
/// It ignores bitrate, complexity, FEC and DTX: the codec has one way to work. Gaps are filled by `LossConcealer`.
/// Source: ITU-T G.711; RFC 3551, section 4.5.14.
package struct G711Codec: AudioCodec {
    /// How samples are companded.
    package enum Law: Sendable {
        /// µ-law, of North America and Japan: PCMU, static payload type 0.
        case muLaw
        /// A-law, of the rest of the world: PCMA, static payload type 8.
        case aLaw
    }

    /// PCMU or PCMA, with its static payload type.
    package let description: CodecDescription
    private let law: Law

    /// The codec of `law`.
    package init(_ law: Law) {
        self.law = law
        description = CodecDescription(
            name: law == .muLaw ? "PCMU" : "PCMA",
            clockRate: 8000,
            format: AudioFormat(sampleRate: 8000),
            staticPayloadType: law == .muLaw ? 0 : 8
        )
    }

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime outside 10 to 120 ms or more than one channel.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        return G711Encoder(
            law: law,
            format: description.format,
            frameCount: try description.frameCount(in: configuration.ptime)
        )
    }

    /// Makes a decoder with loss concealment.
    ///
    /// - Throws: `CodecError` for more than one channel.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        return ConcealingDecoder(G711PayloadDecoder(law: law, format: description.format))
    }
}

private final class G711Encoder: AudioEncoder {
    let law: G711Codec.Law
    let format: AudioFormat
    let frameCount: Int

    init(law: G711Codec.Law, format: AudioFormat, frameCount: Int) {
        self.law = law
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount, payload.count >= frameCount else { return 0 }
        switch law {
        case .muLaw: G711.encodeMuLaw(samples, into: &payload)
        case .aLaw: G711.encodeALaw(samples, into: &payload)
        }
        return frameCount
    }
}

private struct G711PayloadDecoder: PayloadDecoder {
    let law: G711Codec.Law
    let format: AudioFormat

    func frameCount(of payload: Span<UInt8>) -> Int { payload.count }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        switch law {
        case .muLaw: G711.decodeMuLaw(payload, into: &samples)
        case .aLaw: G711.decodeALaw(payload, into: &samples)
        }
        return payload.count
    }

    func reset() {}
}
