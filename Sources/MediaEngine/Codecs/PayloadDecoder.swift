/// A decoder that knows nothing of loss: `ConcealingDecoder` makes a complete one of it.
///
/// Thread: media; it must not allocate, lock or wait. No payload makes it trap.
public protocol PayloadDecoder {
    /// The samples that come out.
    var format: AudioFormat { get }

    /// Frames that `payload` holds, without decoding it; 0 when it is not of this codec.
    func frameCount(of payload: Span<UInt8>) -> Int

    /// Decodes `payload`, whose frames fit into `samples`, and answers the frames written; 0 when it cannot.
    mutating func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int

    /// Forgets the past.
    mutating func reset()
}

/// A decoder for a codec without loss concealment of its own: it fills gaps by waveform substitution.
///
/// Thread: media.
public final class ConcealingDecoder<Payload: PayloadDecoder>: AudioDecoder {
    /// The samples that come out.
    public let format: AudioFormat
    // One thread owns the decoder, so checking each access would be a waste of the tick.
    @exclusivity(unchecked) private var payloadDecoder: Payload
    private let concealer: LossConcealer

    /// A decoder that takes payloads through `payloadDecoder`.
    public init(_ payloadDecoder: Payload) {
        self.payloadDecoder = payloadDecoder
        format = payloadDecoder.format
        concealer = LossConcealer(format: payloadDecoder.format)
    }

    /// Frames that `payload` holds; 0 when it is not of this codec.
    public func frameCount(of payload: Span<UInt8>) -> Int {
        max(0, payloadDecoder.frameCount(of: payload))
    }

    /// Decodes `payload`, blends its beginning with concealed audio after a loss, and answers the frames written.
    public func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let expected = frameCount(of: payload)
        let room = samples.count / format.channelCount
        guard expected > 0, expected <= room else { return 0 }
        let decoded = min(payloadDecoder.decode(payload, into: &samples), room)
        guard decoded > 0 else { return 0 }
        concealer.receive(&samples, frameCount: decoded)
        return decoded
    }

    /// Writes `frameCount` frames that continue what was decoded last, fading to silence within 60 ms.
    public func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        concealer.conceal(frameCount: frameCount, into: &samples)
    }

    /// Forgets the past: the next packet belongs to another source.
    public func reset() {
        payloadDecoder.reset()
        concealer.reset()
    }
}
