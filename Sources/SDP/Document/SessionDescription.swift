/// A session description: every line as it came, and typed views of those that are understood.
///
///     v= o= s= c= t= a=...      lines of the session
///     m= c= a=...               one section for each medium, which begins with its m= line
///     m= c= a=...
///
/// Lines that are not understood are kept, in their place. What is written reads the same, with these differences to what
/// was read: lines end with CR LF, empty lines and those without a type are left out, and so are blanks before the type
/// and before the equals sign.
/// Thread: control; it allocates.
/// Source: RFC 8866.
public struct SessionDescription: Hashable, Sendable, CustomStringConvertible {
    /// What is more than this is refused, before memory is taken for it.
    package enum Limits {
        package static let byteCount = 65_536
        package static let lineCount = 2000
        package static let mediaCount = 16
        /// In the session's part and in each section.
        package static let attributeCount = 512
        /// In one m= line.
        package static let formatCount = 128
    }

    /// The lines before the first m= line.
    let sessionLines: [DescriptionLine]
    /// The lines of each medium; each begins with an m= line.
    let sections: [[DescriptionLine]]

    /// The media, in order.
    public var media: [MediaDescription] {
        sections.map { MediaDescription(lines: $0, sessionLines: sessionLines) }
    }

    /// The attributes of the session, in order; those of a medium are `MediaDescription.attributes`.
    public var attributes: [SDPAttribute] { sessionLines.compactMap(\.attribute) }

    /// How many bytes `serialize(into:)` appends.
    package var byteCount: Int {
        sections.joined().reduce(sessionLines.reduce(0) { $0 + $1.byteCount }) { $0 + $1.byteCount }
    }

    /// Appends the description to `bytes`, with lines ended by CR LF.
    public func serialize(into bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + byteCount)
        for line in sessionLines { line.serialize(into: &bytes) }
        for line in sections.joined() { line.serialize(into: &bytes) }
    }

    /// The description as text, with lines ended by CR LF; what is not UTF-8 in it is replaced.
    public var description: String {
        var bytes: [UInt8] = []
        serialize(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension SessionDescription {
    /// Who made the description, and which version of it this is; nil when no line says so in the form of RFC 8866.
    package var origin: SessionOrigin? { firstValue("o").flatMap(SessionOrigin.init(parsing:)) }

    /// The session's name; nil when there is none.
    package var sessionName: String? { firstValue("s")?.text }

    /// The version of the protocol, which can only be "0"; nil when it is left out.
    var protocolVersion: String? { firstValue("v")?.text }

    /// The value of the t= line, if it is two numbers as it must be; else that of a session without end.
    var times: String {
        guard var value = firstValue("t"), let start = value.takeField(), let stop = value.takeField(),
            value.takeField() == nil, start.decimal(UInt64.self) != nil, stop.decimal(UInt64.self) != nil
        else { return "0 0" }
        return "\(start.text) \(stop.text)"
    }

    private func firstValue(_ type: Unicode.Scalar) -> Bytes? {
        sessionLines.first { $0.type == UInt8(ascii: type) }?.value
    }
}

/// Who made a description, and which version of it this is.
///
///     o=<username> <sess-id> <sess-version> <nettype> <addrtype> <unicast-address>
///
/// Source: RFC 8866, section 5.2.
package struct SessionOrigin: Hashable, Sendable {
    package var userName: String
    /// Digits, as many as the peer likes.
    package var sessionID: String
    package var version: String
    package var address: String

    package init(userName: String, sessionID: String, version: String, address: String) {
        self.userName = userName
        self.sessionID = sessionID
        self.version = version
        self.address = address
    }

    init?(parsing value: Bytes) {
        var rest = value
        guard let userName = rest.takeField(), let sessionID = rest.takeField(), let version = rest.takeField(),
            rest.takeField() != nil, rest.takeField() != nil, let address = rest.takeField()
        else { return nil }
        self.init(userName: userName.text, sessionID: sessionID.text, version: version.text, address: address.text)
    }
}
