/// Uncompressed 16-bit samples in network byte order.
///
/// One value stands for one rate and channel count. 44100 Hz has the static payload types 11 (mono) and 10 (stereo);
/// every other is negotiated. In a registry the bare name "L16" means 44100 Hz mono, the one that any peer plays
/// without negotiation; "L16/48000" or "L16/44100/2" names another.
/// Packets last 10 ms unless told otherwise: 20 ms of 44100 Hz exceed an Ethernet frame. It ignores bitrate,
/// complexity, FEC and DTX. Gaps are filled by `LossConcealer`.
/// Source: RFC 3551, section 4.5.11.
package struct L16Codec: AudioCodec {
    /// L16 with its rate, channels, and payload type where RFC 3551 assigns one.
    package let description: CodecDescription

    /// The codec for samples of `sampleRate` Hz, 8000 to 96000 in whole hundreds, in one or two channels.
    package init(sampleRate: Int = 44100, channelCount: Int = 1) {
        precondition(sampleRate >= 8000 && sampleRate <= 96000 && sampleRate % 100 == 0)
        precondition(channelCount == 1 || channelCount == 2)
        let bytesPerTick = sampleRate / 100 * channelCount * 2
        let mostTicks = min(12, PacketBatch.maximumPayloadByteCount / bytesPerTick)
        description = CodecDescription(
            name: "L16",
            clockRate: sampleRate,
            format: AudioFormat(sampleRate: sampleRate, channelCount: channelCount),
            staticPayloadType: sampleRate == 44100 ? (channelCount == 1 ? 11 : 10) : nil,
            defaultPtime: .milliseconds(10),
            ptimes: .milliseconds(10)...(.milliseconds(10 * mostTicks))
        )
    }

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime or a channel count other than the description's.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        return L16Encoder(format: description.format, frameCount: try description.frameCount(in: configuration.ptime))
    }

    /// Makes a decoder with loss concealment.
    ///
    /// - Throws: `CodecError` for a channel count other than the description's.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        return ConcealingDecoder(L16PayloadDecoder(format: description.format))
    }
}

private final class L16Encoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int

    init(format: AudioFormat, frameCount: Int) {
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        let sampleCount = frameCount &* format.channelCount
        guard samples.count == sampleCount, payload.count >= sampleCount &* 2 else { return 0 }
        for index in 0..<sampleCount {
            let sample = UInt16(bitPattern: samples[index])
            payload[index &* 2] = UInt8(truncatingIfNeeded: sample &>> 8)
            payload[index &* 2 &+ 1] = UInt8(truncatingIfNeeded: sample)
        }
        return sampleCount &* 2
    }
}

private struct L16PayloadDecoder: PayloadDecoder {
    let format: AudioFormat

    func frameCount(of payload: Span<UInt8>) -> Int {
        let bytesPerFrame = format.channelCount &* 2
        return payload.count % bytesPerFrame == 0 ? payload.count / bytesPerFrame : 0
    }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        for index in 0..<payload.count / 2 {
            let high = UInt16(payload[index &* 2]) &<< 8
            samples[index] = Int16(bitPattern: high | UInt16(payload[index &* 2 &+ 1]))
        }
        return payload.count / (format.channelCount &* 2)
    }

    func reset() {}
}
