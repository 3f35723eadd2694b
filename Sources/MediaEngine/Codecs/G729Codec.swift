#if G729
import CBCG729

/// G.729 annex A: 8000 Hz mono at 8 kbit/s, 10 bytes per 10 ms, by bcg729.
///
/// Annex B (silence compression) is not sent, and `annexb=no` asks the other side not to; comfort noise frames that
/// arrive nevertheless are played. It ignores bitrate, complexity, FEC and DTX. Concealment is the codec's own.
/// Source: ITU-T G.729; RFC 3551, section 4.5.6; RFC 4856, section 2.1.9.
package struct G729Codec: AudioCodec {
    /// G729 with its static payload type 18.
    package let description = CodecDescription(
        name: "G729",
        clockRate: 8000,
        format: AudioFormat(sampleRate: 8000),
        staticPayloadType: 18
    )

    /// The codec.
    package init() {}

    /// "annexb=no".
    package func receiveParameters(for configuration: EncoderConfiguration) -> String { "annexb=no" }

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime that is not 10 to 120 ms in steps of 10 ms, or more than one channel.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        let frameCount = try description.frameCount(in: configuration.ptime)
        guard frameCount % G729.frameCount == 0 else {
            throw CodecError(.unsupportedConfiguration, "G729 has packets of 10 to 120 ms in steps of 10 ms only.")
        }
        guard let encoder = initBcg729EncoderChannel(0) else { throw G729.failure("an encoder") }
        return G729Encoder(encoder, format: description.format, frameCount: frameCount)
    }

    /// Makes a decoder.
    ///
    /// - Throws: `CodecError` for more than one channel.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        guard let decoder = initBcg729DecoderChannel() else { throw G729.failure("a decoder") }
        return G729Decoder(decoder, format: description.format)
    }
}

private enum G729 {
    static let frameCount = 80
    static let byteCount = 10
    /// Bytes of a comfort noise frame, which may end a packet.
    static let noiseByteCount = 2

    static func failure(_ what: String) -> CodecError {
        CodecError(.libraryFailure, "bcg729 could not make \(what): memory is short. Close other programs.")
    }
}

private final class G729Encoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int
    /// ITU-T G.729, section 2.1.
    var lookahead: Duration { .milliseconds(5) }
    private let encoder: OpaquePointer

    init(_ encoder: OpaquePointer, format: AudioFormat, frameCount: Int) {
        self.encoder = encoder
        self.format = format
        self.frameCount = frameCount
    }

    deinit {
        closeBcg729EncoderChannel(encoder)
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        let blockCount = frameCount / G729.frameCount
        guard samples.count == frameCount, payload.count >= blockCount * G729.byteCount else { return 0 }
        var byteCount = 0
        samples.withUnsafeBufferPointer { input in
            payload.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let target = output.baseAddress else { return }
                for block in 0..<blockCount {
                    var written: UInt8 = 0
                    bcg729Encoder(encoder, source + block * G729.frameCount, target + byteCount, &written)
                    byteCount += min(Int(written), G729.byteCount)
                }
            }
        }
        return byteCount
    }
}

private final class G729Decoder: AudioDecoder {
    let format: AudioFormat
    private let decoder: OpaquePointer
    private let block: UnsafeMutablePointer<Int16>

    init(_ decoder: OpaquePointer, format: AudioFormat) {
        self.decoder = decoder
        self.format = format
        block = .allocate(capacity: G729.frameCount)
        block.initialize(repeating: 0, count: G729.frameCount)
    }

    deinit {
        closeBcg729DecoderChannel(decoder)
        block.deallocate()
    }

    func frameCount(of payload: Span<UInt8>) -> Int {
        let whole = payload.count / G729.byteCount
        switch payload.count % G729.byteCount {
        case 0: return whole * G729.frameCount
        case G729.noiseByteCount: return (whole + 1) * G729.frameCount
        default: return 0
        }
    }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let frames = frameCount(of: payload)
        guard frames > 0, frames <= samples.count else { return 0 }
        payload.withUnsafeBufferPointer { input in
            samples.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let target = output.baseAddress else { return }
                for index in 0..<frames / G729.frameCount {
                    let length = min(G729.byteCount, input.count - index * G729.byteCount)
                    let isNoise: UInt8 = length == G729.noiseByteCount ? 1 : 0
                    bcg729Decoder(
                        decoder,
                        source + index * G729.byteCount,
                        UInt8(length),
                        0,
                        isNoise,
                        0,
                        target + index * G729.frameCount
                    )
                }
            }
        }
        return frames
    }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        let wanted = min(frameCount, samples.count)
        var done = 0
        while done < wanted {
            bcg729Decoder(decoder, nil, 0, 1, 0, 0, block)
            let count = min(G729.frameCount, wanted - done)
            for index in 0..<count { samples[done + index] = block[index] }
            done += count
        }
    }

    /// The decoder's memory fades by itself; bcg729 offers no reset without allocation.
    func reset() {}
}
#endif
