@testable import MediaEngine

/// Datagrams of a sender that goes through several codecs, 20 ms of a 400 Hz tone in each, under one SSRC.
///
/// Each clock rate has time stamps of its own, with nothing in common.
struct ChangingSender {
    static let amplitude = 8000.0
    let datagrams: [[UInt8]]

    /// A sender of `count` packets, of which packet n is of `codecs[n / period]`, and of the first again after the last.
    init(_ codecs: [(codec: any AudioCodec, payloadType: UInt8)], period: Int, count: Int) throws {
        // Each change begins with an encoder that has heard nothing; 20 ms hold whole periods of the tone.
        var encoding = EncoderConfiguration()
        encoding.ptime = .milliseconds(20)
        let payloads = try codecs.map { entry in
            let encoder = try entry.codec.makeEncoder(encoding)
            let rate = encoder.format.sampleRate
            let tone = CodecTest.tone(400, rate: rate, count: period * rate / 50, amplitude: Self.amplitude)
            return encoder.packets(of: tone)
        }
        datagrams = (0..<count).map { index in
            let kind = index / period % codecs.count
            let clockRate = codecs[kind].codec.description.clockRate
            let payload = payloads[kind][index % period]
            return CallReceiver.datagram(
                payloadType: codecs[kind].payloadType,
                number: index,
                timestamp: clockRate * 77_777 + index * clockRate / 50,
                payload: payload
            )
        }
    }
}
