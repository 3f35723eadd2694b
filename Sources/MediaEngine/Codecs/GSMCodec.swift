#if GSM
import CGSM

/// GSM 06.10 full rate: 8000 Hz mono at 13 kbit/s, 33 bytes per 20 ms, by libgsm.
///
/// It ignores bitrate, complexity, FEC and DTX. Gaps are filled by `LossConcealer`.
/// Source: ETSI GSM 06.10; RFC 3551, section 4.5.8.
package struct GSMCodec: AudioCodec {
    /// GSM with its static payload type 3.
    package let description = CodecDescription(
        name: "GSM",
        clockRate: 8000,
        format: AudioFormat(sampleRate: 8000),
        staticPayloadType: 3,
        ptimes: .milliseconds(20)...(.milliseconds(120)),
        ptimeStep: .milliseconds(20)
    )

    /// The codec.
    package init() {}

    /// Makes an encoder.
    ///
    /// - Throws: `CodecError` for a ptime that is not 20 to 120 ms in steps of 20 ms, or more than one channel.
    package func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
        try description.checkChannelCount(configuration.channelCount)
        let frameCount = try description.frameCount(in: configuration.ptime)
        guard frameCount % GSM610.frameCount == 0 else {
            throw CodecError(.unsupportedConfiguration, "GSM has packets of 20, 40, 60, 80, 100 or 120 ms only.")
        }
        return GSMEncoder(try GSM610(), format: description.format, frameCount: frameCount)
    }

    /// Makes a decoder with loss concealment.
    ///
    /// - Throws: `CodecError` for more than one channel.
    package func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
        try description.checkChannelCount(channelCount)
        return ConcealingDecoder(GSMPayloadDecoder(coder: try GSM610(), format: description.format))
    }
}

/// One libgsm state.
private final class GSM610 {
    static let frameCount = 160
    static let byteCount = 33
    let state: OpaquePointer

    init() throws(CodecError) {
        guard let state = gsm_create() else {
            throw CodecError(.libraryFailure, "libgsm could not make a coder: memory is short. Close other programs.")
        }
        self.state = state
    }

    deinit {
        gsm_destroy(state)
    }
}

private final class GSMEncoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int
    private let coder: GSM610

    init(_ coder: GSM610, format: AudioFormat, frameCount: Int) {
        self.coder = coder
        self.format = format
        self.frameCount = frameCount
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        let blockCount = frameCount / GSM610.frameCount
        let byteCount = blockCount * GSM610.byteCount
        guard samples.count == frameCount, payload.count >= byteCount else { return 0 }
        samples.withUnsafeBufferPointer { input in
            payload.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let target = output.baseAddress else { return }
                for block in 0..<blockCount {
                    let signal = UnsafeMutablePointer(mutating: source + block * GSM610.frameCount)
                    gsm_encode(coder.state, signal, target + block * GSM610.byteCount)
                }
            }
        }
        return byteCount
    }
}

private struct GSMPayloadDecoder: PayloadDecoder {
    let coder: GSM610
    let format: AudioFormat

    func frameCount(of payload: Span<UInt8>) -> Int {
        guard payload.count % GSM610.byteCount == 0 else { return 0 }
        for start in stride(from: 0, to: payload.count, by: GSM610.byteCount) {
            // Every frame begins with the signature 0xD (RFC 3551, section 4.5.8.1).
            guard payload[start] >> 4 == 0xD else { return 0 }
        }
        return payload.count / GSM610.byteCount * GSM610.frameCount
    }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let blockCount = payload.count / GSM610.byteCount
        return payload.withUnsafeBufferPointer { input in
            samples.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let target = output.baseAddress else { return 0 }
                for block in 0..<blockCount {
                    let frame = UnsafeMutablePointer(mutating: source + block * GSM610.byteCount)
                    guard gsm_decode(coder.state, frame, target + block * GSM610.frameCount) == 0 else { return 0 }
                }
                return blockCount * GSM610.frameCount
            }
        }
    }

    /// The decoder's memory is 20 ms long and fades by itself; libgsm offers no reset without allocation.
    func reset() {}
}
#endif
