/// What a payload type stands for: a codec's name, clock rate and parameters.
///
/// Source: RFC 8866, sections 6.6 (rtpmap) and 6.15 (fmtp); RFC 3551, section 6 (static payload types).
public struct PayloadFormat: Hashable, Sendable {
    /// The payload type, 0 to 127.
    public var payloadType: UInt8
    /// The codec's name as it was written, such as "opus"; names are compared without regard to case.
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
    package init?(staticPayloadType payloadType: UInt8) {
        guard let known = Self.staticFormats.first(where: { $0.payloadType == payloadType }) else { return nil }
        self = known
    }

    /// Redundant audio (RED) that repeats packets of `format`; its parameters name the types of the packet's own block and
    /// of the copy (RFC 2198, section 5).
    package init(redundant format: PayloadFormat, payloadType: UInt8) {
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
    package func repeats(_ format: PayloadFormat) -> Bool {
        guard isNamed("red"), clockRate == format.clockRate else { return false }
        return repeatedTypes?.contains(format.payloadType) ?? true
    }

    /// Whether the codec's name is `name`, in whatever case.
    package func isNamed(_ name: String) -> Bool { encodingName.isNamed(name) }

    /// The value of the parameter `name` in a list like "mode=20; octet-align=1"; nil when it is not there.
    package func parameter(_ name: String) -> String? {
        guard let parameters else { return nil }
        var rest = Bytes(parameters)
        while !rest.isEmpty {
            var value = rest.take(before: UInt8(ascii: ";"))
            guard let key = value.take(before: UInt8(ascii: "=")).trimmed, key.text.isNamed(name) else { continue }
            return value.trimmed?.text ?? ""
        }
        return nil
    }
}

extension PayloadFormat {
    /// What a format is there for, beside a codec.
    enum Role { case codec, telephoneEvent, comfortNoise, redundancy }

    var role: Role {
        if isNamed("telephone-event") { return .telephoneEvent }
        if isNamed("CN") { return .comfortNoise }
        if isNamed("red") { return .redundancy }
        return .codec
    }

    /// The types that redundant audio repeats, its own first; nil when it names none, empty when they are no list of types.
    var repeatedTypes: [UInt8]? {
        guard let parameters else { return nil }
        var rest = Bytes(parameters)
        var types: [UInt8] = []
        while !rest.isEmpty {
            guard let type: UInt8 = rest.take(before: UInt8(ascii: "/")).trimmed?.decimal(), type < 128,
                types.count < 32
            else { return [] }
            types.append(type)
        }
        return types
    }

    /// Whether both are one codec, whatever their numbers and parameters.
    ///
    /// Opus is always written 48000/2 (RFC 7587, section 7); those who leave the channels out mean it, too.
    func isSameCodec(as other: PayloadFormat) -> Bool {
        guard clockRate == other.clockRate, isNamed(other.encodingName) else { return false }
        return channelCount == other.channelCount || isNamed("opus")
    }

    /// The value of an a=rtpmap line.
    var map: String {
        let channels = isNamed("opus") ? 2 : channelCount
        // A single channel goes without saying (RFC 8866, section 6.6).
        return "\(payloadType) \(encodingName)/\(clockRate)" + (channels > 1 ? "/\(channels)" : "")
    }

    /// The types of RFC 3551, tables 4 and 5; those that they reserve, such as 1 and 2, stand for nothing.
    private static let staticFormats: [PayloadFormat] = [
        (0, "PCMU", 8000, 1), (3, "GSM", 8000, 1), (4, "G723", 8000, 1), (5, "DVI4", 8000, 1), (6, "DVI4", 16000, 1),
        (7, "LPC", 8000, 1), (8, "PCMA", 8000, 1), (9, "G722", 8000, 1), (10, "L16", 44100, 2), (11, "L16", 44100, 1),
        (12, "QCELP", 8000, 1), (13, "CN", 8000, 1), (14, "MPA", 90000, 1), (15, "G728", 8000, 1),
        (16, "DVI4", 11025, 1), (17, "DVI4", 22050, 1), (18, "G729", 8000, 1), (25, "CelB", 90000, 1),
        (26, "JPEG", 90000, 1), (28, "nv", 90000, 1), (31, "H261", 90000, 1), (32, "MPV", 90000, 1),
        (33, "MP2T", 90000, 1), (34, "H263", 90000, 1),
    ].map { type, name, clockRate, channelCount in
        PayloadFormat(payloadType: type, encodingName: name, clockRate: clockRate, channelCount: channelCount)
    }
}
