/// What a payload type stands for in a session description: a codec's name, clock rate and parameters.
///
/// Source: RFC 8866, sections 6.6 (rtpmap) and 6.15 (fmtp); RFC 3551, section 6 (static payload types).
public struct PayloadFormat: Hashable, Sendable {
    /// The payload type, 0 to 127.
    public var payloadType: UInt8
    /// The codec's name as it was written, such as "opus"; `isNamed` compares without regard to case.
    public var encodingName: String
    /// The RTP clock rate, in Hz.
    public var clockRate: Int
    /// Channels; 1 when the description gives none.
    public var channelCount: Int
    /// The codec's parameters, as one text; nil when there are none.
    public var parameters: String?

    /// A format with the given fields.
    public init(
        payloadType: UInt8,
        encodingName: String,
        clockRate: Int,
        channelCount: Int = 1,
        parameters: String? = nil
    ) {
        self.payloadType = payloadType & 0x7F
        self.encodingName = encodingName
        self.clockRate = clockRate
        self.channelCount = channelCount
        self.parameters = parameters
    }

    /// The format that a payload type has without being described; nil for dynamic ones.
    public init?(staticPayloadType payloadType: UInt8) {
        guard let known = Self.staticFormats.first(where: { $0.payloadType == payloadType }) else { return nil }
        self = known
    }

    /// Redundant audio (RED) that repeats packets of `format`; its parameters name the types of the packet's own block and
    /// of the copies (RFC 2198, section 5).
    public init(redundant format: PayloadFormat, payloadType: UInt8) {
        self.init(
            payloadType: payloadType,
            encodingName: "red",
            clockRate: format.clockRate,
            channelCount: format.channelCount,
            parameters: "\(format.payloadType)/\(format.payloadType)"
        )
    }

    /// Whether this is redundant audio that repeats packets of `format`.
    ///
    /// Without parameters it may repeat any.
    public func repeats(_ format: PayloadFormat) -> Bool {
        guard isNamed("red"), clockRate == format.clockRate else { return false }
        guard let parameters else { return true }
        let types = parameters.split(separator: "/").map { UInt8($0.filter { $0 != " " }) }
        return types.contains(format.payloadType)
    }

    /// Whether the codec's name is `name`, in whatever case.
    public func isNamed(_ name: String) -> Bool {
        encodingName.lowercased() == name.lowercased()
    }

    private static let staticFormats = [
        PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000),
        PayloadFormat(payloadType: 3, encodingName: "GSM", clockRate: 8000),
        PayloadFormat(payloadType: 8, encodingName: "PCMA", clockRate: 8000),
        PayloadFormat(payloadType: 9, encodingName: "G722", clockRate: 8000),
        PayloadFormat(payloadType: 10, encodingName: "L16", clockRate: 44100, channelCount: 2),
        PayloadFormat(payloadType: 11, encodingName: "L16", clockRate: 44100),
        PayloadFormat(payloadType: 13, encodingName: "CN", clockRate: 8000),
        PayloadFormat(payloadType: 18, encodingName: "G729", clockRate: 8000),
    ]
}
