/// One audio stream as a session description gives it: where to, in which formats, and how.
///
/// It writes what FFmpeg, GStreamer and SIP stacks read, and reads what they write, leaving out what it does not know.
/// A description with several media is read for its first usable audio.
/// Thread: control; it allocates.
/// Source: RFC 8866; RFC 3605 (rtcp), RFC 5761 (rtcp-mux); RFC 2198, section 5 (red).
public struct SessionDescription: Hashable, Sendable {
    /// Which way audio flows, seen from who wrote the description.
    public enum Direction: String, Sendable, CaseIterable {
        /// Both ways.
        case sendReceive = "sendrecv"
        /// From the writer.
        case sendOnly = "sendonly"
        /// To the writer.
        case receiveOnly = "recvonly"
        /// Neither way, as on hold.
        case inactive
    }

    /// Larger texts are refused.
    public static let maximumByteCount = 65_536
    /// Lines beyond these are left out.
    public static let maximumLineCount = 2000
    /// Formats beyond these are left out.
    public static let maximumFormatCount = 128

    /// The session's name.
    public var sessionName = "media-engine"
    /// A number that tells sessions apart.
    public var sessionID: UInt64 = 0
    /// A number that grows with each change.
    public var sessionVersion: UInt64 = 0
    /// The address, or the host name, that audio goes to.
    public var host: String
    /// The port that audio goes to; 0 says that the stream is refused.
    public var port: UInt16
    /// The port that RTCP goes to when it is not the next one; nil otherwise.
    public var controlPort: UInt16?
    /// Whether RTP and RTCP share one port.
    public var isMultiplexed = false
    /// The formats, the preferred one first.
    public var formats: [PayloadFormat]
    /// Audio per packet, in ms; nil leaves it to the codec.
    public var packetTime: Int?
    /// The most audio per packet, in ms; nil leaves it to the codec.
    public var maximumPacketTime: Int?
    /// Which way audio flows.
    public var direction = Direction.sendReceive

    /// A description of audio to `host` and `port` in one of `formats`.
    public init(host: String, port: UInt16, formats: [PayloadFormat]) {
        self.host = host
        self.port = port
        self.formats = formats
    }

    /// The first format with codec `name`, in whatever case.
    public func format(named name: String) -> PayloadFormat? {
        formats.first { $0.isNamed(name) }
    }

    /// The format of `payloadType`.
    public func format(payloadType: UInt8) -> PayloadFormat? {
        formats.first { $0.payloadType == payloadType }
    }

    /// The redundant audio (RED, RFC 2198) that repeats packets of `format`; nil when none is offered.
    public func redundancy(of format: PayloadFormat) -> PayloadFormat? {
        formats.first { $0.repeats(format) }
    }

    /// The port that RTCP goes to: the given one, RTP's own when multiplexed, or the next one.
    public var effectiveControlPort: UInt16 {
        isMultiplexed ? port : controlPort ?? port &+ 1
    }

    /// The description as text, lines ended by CR LF.
    public var text: String {
        let family = host.contains(":") ? "IP6" : "IP4"
        var lines = [
            "v=0",
            "o=- \(sessionID) \(sessionVersion) IN \(family) \(Self.word(host))",
            "s=\(sessionName.isEmpty ? "-" : Self.line(sessionName))",
            "c=IN \(family) \(Self.word(host))",
            "t=0 0",
            "m=audio \(port) RTP/AVP \(formats.map { String($0.payloadType) }.joined(separator: " "))",
        ]
        for format in formats {
            // A second channel is the only one that must be told (RFC 8866, section 6.6).
            let channels = format.channelCount > 1 ? "/\(format.channelCount)" : ""
            let name = Self.word(format.encodingName)
            lines.append("a=rtpmap:\(format.payloadType) \(name)/\(format.clockRate)\(channels)")
            if let parameters = format.parameters {
                lines.append("a=fmtp:\(format.payloadType) \(Self.line(parameters))")
            }
        }
        if let packetTime { lines.append("a=ptime:\(packetTime)") }
        if let maximumPacketTime { lines.append("a=maxptime:\(maximumPacketTime)") }
        if isMultiplexed { lines.append("a=rtcp-mux") }
        if let controlPort { lines.append("a=rtcp:\(controlPort)") }
        lines.append("a=\(direction.rawValue)")
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// The text without line breaks and other control characters, which would begin lines of their own.
    private static func line(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
    }

    /// The text without blanks and control characters.
    private static func word(_ text: String) -> String {
        String(line(text).filter { $0 != " " })
    }
}
