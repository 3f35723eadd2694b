import COpus
import CallBasics

/// One libopus encoder at 48000 Hz.
final class OpusEncoder: AudioEncoder {
    let format: AudioFormat
    let frameCount: Int
    private let encoder: OpaquePointer
    private let mostBitrate: Int
    let bitrate: Int?
    let canUseFEC: Bool
    /// Asked for once: later, the encoder is the media thread's.
    let lookahead: Duration
    private let usesDTX: Bool

    /// An encoder for a checked configuration and what is known of the receiver.
    init(_ configuration: EncoderConfiguration, remote: OpusParameters) throws(CodecError) {
        let channelCount = configuration.channelCount
        var code: Int32 = 0
        let created = opus_encoder_create(48000, Int32(channelCount), OPUS_APPLICATION_VOIP, &code)
        guard let created, code == OPUS_OK else {
            throw CodecError(opus: code, doing: "make an encoder")
        }
        encoder = created
        format = AudioFormat(sampleRate: 48000, channelCount: channelCount)
        frameCount = 48 * remote.ptime(wish: configuration.ptime.map { Int($0.milliseconds) })
        mostBitrate = remote.maxAverageBitrate ?? OpusCodec.bitrates.upperBound
        canUseFEC = remote.isKnown ? remote.usesFEC ?? false : true
        usesDTX = remote.usesDTX ?? configuration.usesDTX
        var delay: opus_int32 = 0
        let isKnown = copus_encoder_get(created, OPUS_GET_LOOKAHEAD_REQUEST, &delay) == OPUS_OK
        lookahead = isKnown ? format.duration(ofFrames: Int(delay)) : .zero

        let sendsStereo = channelCount == 2 && (!remote.isKnown || remote.prefersStereo ?? false)
        let bitrate = min(configuration.bitrate ?? (sendsStereo ? 48000 : 32000), mostBitrate)
        self.bitrate = bitrate
        try set(OPUS_SET_COMPLEXITY_REQUEST, configuration.complexity, "complexity")
        try set(OPUS_SET_BITRATE_REQUEST, bitrate, "bitrate")
        try set(OPUS_SET_VBR_REQUEST, remote.wantsConstantBitrate ?? false ? 0 : 1, "VBR")
        try set(OPUS_SET_DTX_REQUEST, usesDTX ? 1 : 0, "DTX")
        try set(OPUS_SET_INBAND_FEC_REQUEST, configuration.usesFEC && canUseFEC ? 1 : 0, "FEC")
        // Without FEC, libopus would only spend bits of the sound on being robust: 0.1 PESQ at 24 kbit/s.
        let loss = configuration.usesFEC ? configuration.expectedLossPercent : 0
        try set(OPUS_SET_PACKET_LOSS_PERC_REQUEST, loss, "expected loss")
        if channelCount == 2, !sendsStereo { try set(OPUS_SET_FORCE_CHANNELS_REQUEST, 1, "channel count") }
        if let rate = remote.maxPlaybackRate {
            try set(OPUS_SET_MAX_BANDWIDTH_REQUEST, Self.bandwidth(forPlaybackRate: rate), "bandwidth")
        }
    }

    deinit {
        opus_encoder_destroy(encoder)
    }

    func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
        guard samples.count == frameCount &* format.channelCount else { return 0 }
        let room = Int32(truncatingIfNeeded: min(payload.count, PacketBatch.maximumPayloadByteCount))
        let frames = Int32(truncatingIfNeeded: frameCount)
        let byteCount = samples.withUnsafeBufferPointer { input in
            payload.withUnsafeMutableBufferPointer { output -> Int32 in
                guard let first = input.baseAddress, let target = output.baseAddress else { return 0 }
                return opus_encode(encoder, first, frames, target, room)
            }
        }
        // With DTX, a packet of up to two bytes says only that the silence lasts (RFC 7587, section 3.1.3).
        return byteCount > (usesDTX ? 2 : 0) ? Int(byteCount) : 0
    }

    func adapt(bitrate: Int?, usesFEC: Bool, expectedLossPercent: Int) {
        if let bitrate {
            let bounded = min(max(bitrate, OpusCodec.bitrates.lowerBound), mostBitrate)
            _ = copus_encoder_set(encoder, OPUS_SET_BITRATE_REQUEST, Int32(truncatingIfNeeded: bounded))
        }
        _ = copus_encoder_set(encoder, OPUS_SET_INBAND_FEC_REQUEST, usesFEC && canUseFEC ? 1 : 0)
        let loss = usesFEC ? min(max(expectedLossPercent, 0), 100) : 0
        _ = copus_encoder_set(encoder, OPUS_SET_PACKET_LOSS_PERC_REQUEST, Int32(truncatingIfNeeded: loss))
    }

    /// A setting as libopus reports it, for tests.
    func setting(_ request: Int32) -> Int {
        var value: Int32 = 0
        return copus_encoder_get(encoder, request, &value) == OPUS_OK ? Int(value) : -1
    }

    private func set(_ request: Int32, _ value: Int, _ name: String) throws(CodecError) {
        let code = copus_encoder_set(encoder, request, Int32(truncatingIfNeeded: value))
        guard code == OPUS_OK else { throw CodecError(opus: code, doing: "set \(name) to \(value)") }
    }

    /// The widest band that a receiver with that output rate can render (RFC 7587, section 3.1.1).
    private static func bandwidth(forPlaybackRate rate: Int) -> Int {
        switch rate {
        case ...8000: Int(OPUS_BANDWIDTH_NARROWBAND)
        case ...12000: Int(OPUS_BANDWIDTH_MEDIUMBAND)
        case ...16000: Int(OPUS_BANDWIDTH_WIDEBAND)
        case ...24000: Int(OPUS_BANDWIDTH_SUPERWIDEBAND)
        default: Int(OPUS_BANDWIDTH_FULLBAND)
        }
    }
}
