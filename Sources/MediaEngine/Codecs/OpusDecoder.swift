import COpus

/// One libopus decoder at 48000 Hz, with concealment and in-band FEC.
final class OpusDecoder: AudioDecoder {
    let format: AudioFormat
    private let decoder: OpaquePointer
    /// One step of concealment, for gaps that are no whole number of steps.
    private let step: UnsafeMutablePointer<Int16>

    /// libopus conceals in steps of 2.5 ms.
    private static let stepFrameCount = 120
    /// Frames of the longest packet, 120 ms.
    private static let mostFrames = 5760

    /// A decoder that gives `channelCount` channels.
    init(channelCount: Int) throws(CodecError) {
        var code: Int32 = 0
        guard let created = opus_decoder_create(48000, Int32(channelCount), &code), code == OPUS_OK else {
            throw CodecError(opus: code, doing: "make a decoder")
        }
        decoder = created
        format = AudioFormat(sampleRate: 48000, channelCount: channelCount)
        step = .allocate(capacity: Self.stepFrameCount * channelCount)
        step.initialize(repeating: 0, count: Self.stepFrameCount * channelCount)
    }

    deinit {
        opus_decoder_destroy(decoder)
        step.deallocate()
    }

    func frameCount(of payload: Span<UInt8>) -> Int {
        guard payload.count > 0 else { return 0 }
        let count = payload.withUnsafeBufferPointer { bytes -> Int32 in
            guard let base = bytes.baseAddress else { return 0 }
            return opus_packet_get_nb_samples(base, Int32(truncatingIfNeeded: bytes.count), 48000)
        }
        return max(0, Int(count))
    }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        guard payload.count > 0, payload.count <= Int(Int32.max) else { return 0 }
        return decode(payload, into: &samples, frameCount: samples.count / format.channelCount, fec: false)
    }

    func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int {
        guard
            let packet = OpusPacket(parsing: next), packet.carriesFEC,
            frameCount > 0, frameCount <= samples.count / format.channelCount,
            frameCount % Self.stepFrameCount == 0
        else { return 0 }
        return decode(next, into: &samples, frameCount: frameCount, fec: true)
    }

    func carriesFEC(_ payload: Span<UInt8>) -> Bool { OpusPacket(parsing: payload)?.carriesFEC ?? false }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        let wanted = min(frameCount, samples.count / format.channelCount)
        let whole = wanted / Self.stepFrameCount * Self.stepFrameCount
        let channelCount = format.channelCount
        samples.withUnsafeMutableBufferPointer { output in
            guard let base = output.baseAddress else { return }
            var done = 0
            while done < whole {
                let count = min(whole &- done, Self.mostFrames)
                concealSteps(base + done &* channelCount, frameCount: count)
                done = done &+ count
            }
            let rest = wanted &- whole
            guard rest > 0 else { return }
            concealSteps(step, frameCount: Self.stepFrameCount)
            (base + whole &* channelCount).update(from: step, count: rest &* channelCount)
        }
    }

    func reset() {
        _ = copus_decoder_reset(decoder)
    }

    /// The range coder's final state: the same on both sides, or the decoder is wrong (RFC 6716, section 6).
    var finalRange: UInt32 {
        var value: UInt32 = 0
        _ = copus_decoder_get_final_range(decoder, &value)
        return value
    }

    private func decode(
        _ payload: Span<UInt8>,
        into samples: inout MutableSpan<Int16>,
        frameCount: Int,
        fec: Bool
    ) -> Int {
        let room = Int32(truncatingIfNeeded: min(frameCount, Self.mostFrames))
        let decoded = payload.withUnsafeBufferPointer { bytes in
            samples.withUnsafeMutableBufferPointer { output -> Int32 in
                guard let first = output.baseAddress else { return 0 }
                return opus_decode(decoder, bytes.baseAddress, Int32(bytes.count), first, room, fec ? 1 : 0)
            }
        }
        return max(0, Int(decoded))
    }

    private func concealSteps(_ target: UnsafeMutablePointer<Int16>, frameCount: Int) {
        let decoded = opus_decode(decoder, nil, 0, target, Int32(truncatingIfNeeded: frameCount), 0)
        let written = max(0, Int(decoded))
        guard written < frameCount else { return }
        let channelCount = format.channelCount
        (target + written * channelCount).update(repeating: 0, count: (frameCount - written) * channelCount)
    }
}
