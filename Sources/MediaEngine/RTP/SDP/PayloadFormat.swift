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
