/// G.722 at 64 kbit/s: 16000 Hz mono, two samples per byte.
///
/// Its RTP clock rate is 8000 Hz by an old error that RFC 3551 keeps for good: a 20 ms packet holds 320 frames and moves
/// the RTP timestamp by 160. It ignores bitrate, complexity, FEC and DTX. Gaps are filled by `LossConcealer`.
/// Source: ITU-T G.722, mode 1; RFC 3551, section 4.5.2.
package struct G722Codec: AudioCodec {
    /// G722 with its static payload type 9.
    package let description = CodecDescription(
        name: "G722",
        clockRate: 8000,
        format: AudioFormat(sampleRate: 16000),
        staticPayloadType: 9
    )

    /// The codec.
    package init() {}

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime outside 10 to 120 ms or more than one channel.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        return G722Encoder(format: description.format, frameCount: try description.frameCount(in: configuration.ptime))
    }

    /// Makes a decoder with loss concealment.
    ///
    /// - Throws: `CodecError` for more than one channel.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        return ConcealingDecoder(G722PayloadDecoder(format: description.format))
    }
}

private final class G722Encoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int
    /// The two filter banks together delay by 22 samples.
    var lookahead: Duration { format.duration(ofFrames: 22) }
    private var coder = G722Coder()

    init(format: AudioFormat, frameCount: Int) {
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount, payload.count >= frameCount / 2 else { return 0 }
        var coder = coder
        for index in 0..<frameCount / 2 {
            payload[index] = coder.encode(samples[2 &* index], samples[2 &* index &+ 1])
        }
        self.coder = coder
        return frameCount / 2
    }
}

private struct G722PayloadDecoder: PayloadDecoder {
    let format: AudioFormat
    private var coder = G722Coder()

    init(format: AudioFormat) {
        self.format = format
    }

    func frameCount(of payload: Span<UInt8>) -> Int { 2 &* payload.count }

    mutating func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        for index in 0..<payload.count {
            let (first, second) = coder.decode(payload[index])
            samples[2 &* index] = first
            samples[2 &* index &+ 1] = second
        }
        return 2 &* payload.count
    }

    mutating func reset() {
        coder = G722Coder()
    }
}
