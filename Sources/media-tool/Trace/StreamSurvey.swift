import MediaEngine
import SDP

/// What the packets of one captured stream tell without a decoder: loss, jitter, keys, and whether lengths fit the time.
struct StreamSurvey: Sendable {
    /// Loss and order, and jitter where the clock rate is known.
    fileprivate(set) var reception = ReceiverStatistics(probation: 1)
    /// Keys pressed, by telephone events.
    fileprivate(set) var keys = ""
    /// The clock rate of the sound's time stamps, in Hz, where it is known.
    let clockRate: Int?
    /// Whether it is known to be Opus.
    private let isOpus: Bool
    /// Packets of the sound that were followed by the next one, by how many bytes they were longer than their sound.
    fileprivate var excess = [Int](repeating: 0, count: 34)
    fileprivate var soundCount = 0
    fileprivate var opusFitCount = 0
    fileprivate var opusMisfitCount = 0
    fileprivate var steps: [UInt32: Int] = [:]

    fileprivate init(_ format: SDP.PayloadFormat?) {
        clockRate = format?.clockRate
        isOpus = format?.isNamed("opus") ?? false
    }

    /// By how many bytes nearly all packets are longer than their sound, when it is by what SRTP adds; else nil.
    var tagByteCount: Int? {
        let all = excess.reduce(0, +)
        guard all >= Self.leastCount else { return nil }
        return Self.tagByteCounts.first { excess[$0] * 10 >= all * 9 }
    }

    /// Whether nearly all packets are exactly as long as their sound: what is encrypted is longer, or, of Opus, says at random
    /// how long it is.
    var isSound: Bool {
        if isOpus {
            let all = opusFitCount + opusMisfitCount
            return all >= Self.leastCount && opusFitCount * 10 >= all * 9
        }
        let all = excess.reduce(0, +)
        return all >= Self.leastCount && excess[0] * 10 >= all * 9
    }

    /// Whether the packets' own lengths speak against Opus.
    var isNoOpus: Bool { opusMisfitCount > opusFitCount }

    /// The step of time stamps from packet to packet that is seen most; nil where there is none.
    var packetUnits: UInt32? { steps.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key }

    /// What a packet lasts; nil where that, or the clock rate, is not known.
    var packetTime: Duration? {
        guard let clockRate, let packetUnits else { return nil }
        let time = Duration.nanoseconds(Int64(packetUnits) * 1_000_000_000 / Int64(clockRate))
        return Duration.milliseconds(1)...Duration.milliseconds(200) ~= time ? time : nil
    }

    /// Interarrival jitter; nil where the clock rate is not known, or no packet's time stamp tells when it was made.
    var jitter: Duration? { clockRate == nil || soundCount == 0 ? nil : reception.jitterDuration }

    /// A sign of encryption needs so many packets.
    private static let leastCount = 10
    /// HMAC-SHA1 of 80 and 32 bits and the tags of AES-GCM, alone and with a key's number of four bytes (MKI).
    private static let tagByteCounts = [10, 4, 14, 16, 20]
}

/// Makes the survey of one stream, packet by packet.
///
/// Thread: control; memory for the keys, up to `maximumKeyCount`, and a row of counts.
final class StreamSurveyor {
    /// Keys beyond these are left out.
    static let maximumKeyCount = 1000

    /// What was seen so far.
    private(set) var survey: StreamSurvey

    private let payloadType: UInt8
    private let eventPayloadType: UInt8
    private let clockRate: UInt32
    private let lengths: PayloadLength?
    private var receiver = TelephoneEventReceiver()
    private var last: Last?

    private struct Last {
        let sequenceNumber: UInt16
        let timestamp: UInt32
        let byteCount: Int
        let opusUnits: UInt32?
    }

    private static let maximumStepCount = 64

    /// The surveyor of a stream of which no packet was seen.
    ///
    /// - Parameters:
    ///   - payloadType: That of its sound.
    ///   - format: What that stands for, where it is known.
    ///   - eventPayloadType: That of its telephone events.
    init(payloadType: UInt8, format: SDP.PayloadFormat?, eventPayloadType: UInt8) {
        self.payloadType = payloadType
        self.eventPayloadType = eventPayloadType
        clockRate = UInt32(clamping: format?.clockRate ?? 0)
        lengths = format.flatMap(PayloadLength.init)
        survey = StreamSurvey(format)
    }

    /// Takes in a packet of the stream, whose bytes are `datagram`.
    func add(_ packet: RTPPacket, in datagram: Span<UInt8>, at nanoseconds: Int64) {
        let header = packet.header
        let payload = packet.payload(in: datagram)
        let arrival = MediaTime(nanoseconds: max(nanoseconds, 0))
        // All packets of a key bear the time stamp of its beginning.
        let isSound = header.payloadType == payloadType && header.payloadType != eventPayloadType
        _ = survey.reception.receive(header, clockRate: isSound ? clockRate : 0, arrival: arrival)
        if header.payloadType == eventPayloadType {
            // How long a key was down is not told here, so the clock rate does not matter.
            receiver.receive(header, payload: payload, clockRate: 8000, arrival: arrival)
            takeKeys()
        }
        guard isSound else { return }
        survey.soundCount += 1
        compare(header)
        last = Last(
            sequenceNumber: header.sequenceNumber,
            timestamp: header.timestamp,
            byteCount: payload.count,
            opusUnits: OpusPacket.timestampUnits(of: payload)
        )
    }

    /// Compares how long the packet before this one says it is with how far time stamps went on.
    private func compare(_ header: RTPHeader) {
        guard let last, header.sequenceNumber == last.sequenceNumber &+ 1 else { return }
        let step = header.timestamp &- last.timestamp
        guard step > 0, step < 1 << 24 else { return }
        if survey.steps.count < Self.maximumStepCount || survey.steps[step] != nil {
            survey.steps[step, default: 0] += 1
        }
        let units = last.opusUnits ?? 0
        if units == step {
            survey.opusFitCount += 1
        } else if units == 0 || step < units || step % units != 0 {
            // After silence that was left out the step is some packets long, which says nothing.
            survey.opusMisfitCount += 1
        }
        guard let bytes = lengths?.byteCount(of: step) else { return }
        // What is shorter stands before silence that was left out.
        let more = last.byteCount - bytes
        if more >= 0 { survey.excess[min(more, survey.excess.count - 1)] += 1 }
    }

    private func takeKeys() {
        while let report = receiver.next() {
            guard report.kind == .started, let key = TelephoneEvent.key(of: report.code),
                survey.keys.count < Self.maximumKeyCount
            else { continue }
            survey.keys.append(key)
        }
    }
}

/// How many bytes a codec of constant rate takes for a step of time stamps.
///
/// Source: RFC 3551, sections 4.5.1 to 4.5.14
struct PayloadLength: Sendable {
    private let units: UInt32
    private let bytes: Int

    /// The lengths of `format`; nil where they follow from nothing.
    init?(_ format: SDP.PayloadFormat) {
        switch format.encodingName.uppercased() {
        case "PCMU", "PCMA", "G722": (units, bytes) = (1, format.channelCount)
        case "L16": (units, bytes) = (1, 2 * format.channelCount)
        case "GSM": (units, bytes) = (160, 33)
        case "G729": (units, bytes) = (80, 10)
        default: return nil
        }
    }

    /// The bytes of `step` units; nil when no whole frames fill it.
    func byteCount(of step: UInt32) -> Int? {
        step % units == 0 ? Int(step / units) * bytes : nil
    }
}
