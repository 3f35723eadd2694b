import CallBasics

/// How one receiver hears one source of a call: loss in bursts and gaps, delays, levels and estimated quality.
///
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |     BT=7      |   reserved    |       block length = 8        |
///    |                        SSRC of source                         |
///    |   loss rate   | discard rate  | burst density |  gap density  |
///    |       burst duration          |         gap duration          |
///    |     round trip delay          |       end system delay        |
///    | signal level  |  noise level  |     RERL      |     Gmin      |
///    |   R factor    | ext. R factor |    MOS-LQ     |    MOS-CQ     |
///    |   RX config   |   reserved    |          JB nominal           |
///    |          JB maximum           |          JB abs max           |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// The stored fields are those on the wire; the computed ones are nil where the wire says that nothing is known, or
/// says what cannot be.
/// Units: rates and densities in 1/256; durations and delays in ms; levels in dBm0; MOS in tenths.
/// Source: RFC 3611, section 4.7
package struct RTCPVoIPMetrics: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of the block, its header included.
    package static let byteCount = 36
    /// What levels, R factors and MOS say when they are not known.
    package static let unavailable: UInt8 = 127

    /// The source that the block is about.
    package var ssrc: UInt32
    /// Packets lost since the beginning.
    package var lossRate: UInt8 = 0
    /// Packets thrown away since the beginning, because they came late or early.
    package var discardRate: UInt8 = 0
    /// Packets lost or thrown away within bursts.
    package var burstDensity: UInt8 = 0
    /// Packets lost or thrown away within gaps.
    package var gapDensity: UInt8 = 0
    /// The mean duration of bursts.
    package var burstDuration: UInt16 = 0
    /// The mean duration of gaps.
    package var gapDuration: UInt16 = 0
    /// The last measured round trip; 0 when it is not known.
    package var roundTripDelay: UInt16 = 0
    /// What the end system adds to the round trip: packetisation, encoding, playout.
    package var endSystemDelay: UInt16 = 0
    /// The level of speech, in two's complement.
    package var signalLevel = RTCPVoIPMetrics.unavailable
    /// The level of pauses, in two's complement.
    package var noiseLevel = RTCPVoIPMetrics.unavailable
    /// The residual echo return loss, in dB.
    package var residualEchoReturnLoss = RTCPVoIPMetrics.unavailable
    /// Received packets in a row that end a burst; never 0.
    package var gapThreshold: UInt8 = 16
    /// The R factor of this leg, 0 to 100.
    package var rFactor = RTCPVoIPMetrics.unavailable
    /// The R factor of a leg beyond this one, 0 to 100.
    package var externalRFactor = RTCPVoIPMetrics.unavailable
    /// The mean opinion score of listening, 10 to 50.
    package var listeningQuality = RTCPVoIPMetrics.unavailable
    /// The mean opinion score of conversing, 10 to 50.
    package var conversationalQuality = RTCPVoIPMetrics.unavailable
    /// Concealment (2 bits), kind of jitter buffer (2), its rate of adjustment (4).
    package var receiverConfiguration: UInt8 = 0
    /// The delay of the jitter buffer for a packet that comes exactly in time.
    package var nominalBufferDelay: UInt16 = 0
    /// The delay of the earliest packet that is not thrown away.
    package var maximumBufferDelay: UInt16 = 0
    /// The largest `maximumBufferDelay` that the buffer can take on.
    package var absoluteMaximumBufferDelay: UInt16 = 0

    /// Metrics about `ssrc` in which nothing is known yet.
    package init(ssrc: UInt32) {
        self.ssrc = ssrc
    }

    /// Reads the block at `offset`, whose 36 bytes must be there.
    init(parsing bytes: Span<UInt8>, at offset: Int) {
        ssrc = bytes.uint32(at: offset &+ 4)
        lossRate = bytes[offset &+ 8]
        discardRate = bytes[offset &+ 9]
        burstDensity = bytes[offset &+ 10]
        gapDensity = bytes[offset &+ 11]
        burstDuration = bytes.uint16(at: offset &+ 12)
        gapDuration = bytes.uint16(at: offset &+ 14)
        roundTripDelay = bytes.uint16(at: offset &+ 16)
        endSystemDelay = bytes.uint16(at: offset &+ 18)
        signalLevel = bytes[offset &+ 20]
        noiseLevel = bytes[offset &+ 21]
        residualEchoReturnLoss = bytes[offset &+ 22]
        gapThreshold = bytes[offset &+ 23]
        rFactor = bytes[offset &+ 24]
        externalRFactor = bytes[offset &+ 25]
        listeningQuality = bytes[offset &+ 26]
        conversationalQuality = bytes[offset &+ 27]
        receiverConfiguration = bytes[offset &+ 28]
        nominalBufferDelay = bytes.uint16(at: offset &+ 30)
        maximumBufferDelay = bytes.uint16(at: offset &+ 32)
        absoluteMaximumBufferDelay = bytes.uint16(at: offset &+ 34)
    }

    /// Writes all but the first 4 bytes of the block at `offset`, whose 36 bytes must be there.
    func serialize(into bytes: inout MutableSpan<UInt8>, at offset: Int) {
        bytes.store(ssrc, at: offset &+ 4)
        bytes[offset &+ 8] = lossRate
        bytes[offset &+ 9] = discardRate
        bytes[offset &+ 10] = burstDensity
        bytes[offset &+ 11] = gapDensity
        bytes.store(burstDuration, at: offset &+ 12)
        bytes.store(gapDuration, at: offset &+ 14)
        bytes.store(roundTripDelay, at: offset &+ 16)
        bytes.store(endSystemDelay, at: offset &+ 18)
        bytes[offset &+ 20] = signalLevel
        bytes[offset &+ 21] = noiseLevel
        bytes[offset &+ 22] = residualEchoReturnLoss
        bytes[offset &+ 23] = gapThreshold
        bytes[offset &+ 24] = rFactor
        bytes[offset &+ 25] = externalRFactor
        bytes[offset &+ 26] = listeningQuality
        bytes[offset &+ 27] = conversationalQuality
        bytes[offset &+ 28] = receiverConfiguration
        bytes[offset &+ 29] = 0
        bytes.store(nominalBufferDelay, at: offset &+ 30)
        bytes.store(maximumBufferDelay, at: offset &+ 32)
        bytes.store(absoluteMaximumBufferDelay, at: offset &+ 34)
    }

    // MARK: What the fields say

    /// The R factor; nil when it is not known or out of range.
    package var knownRFactor: Int? { rFactor <= 100 ? Int(rFactor) : nil }

    /// The mean opinion score of listening; nil when it is not known or out of range.
    package var knownListeningQuality: Double? { Self.opinion(listeningQuality) }

    /// The mean opinion score of conversing; nil when it is not known or out of range.
    package var knownConversationalQuality: Double? { Self.opinion(conversationalQuality) }

    /// The level of speech in dBm0; nil when it is not known.
    package var knownSignalLevel: Int? { Self.level(signalLevel) }

    /// The level of pauses in dBm0; nil when it is not known.
    package var knownNoiseLevel: Int? { Self.level(noiseLevel) }

    /// Whether every field says something that RFC 3611 allows.
    package var isPlausible: Bool {
        gapThreshold > 0
            && (rFactor <= 100 || rFactor == Self.unavailable)
            && (externalRFactor <= 100 || externalRFactor == Self.unavailable)
            && (listeningQuality == Self.unavailable || knownListeningQuality != nil)
            && (conversationalQuality == Self.unavailable || knownConversationalQuality != nil)
            && Int(lossRate) &+ Int(discardRate) <= 256
    }

    private static func opinion(_ tenths: UInt8) -> Double? {
        (10...50).contains(tenths) ? Double(tenths) / 10 : nil
    }

    private static func level(_ value: UInt8) -> Int? {
        value == unavailable ? nil : Int(Int8(bitPattern: value))
    }
}
