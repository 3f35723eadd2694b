/// Why bytes are not a valid RTP, RTCP or telephone-event packet.
///
/// A trivial value, because it is thrown on the media thread: the text is put together only when somebody reads it.
package struct RTPError: Error, Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// What kind of defect was found.
    package enum Code: UInt8, Sendable, BitwiseCopyable {
        /// The packet ends inside its header, extension, or a fixed part.
        case truncated
        /// The version field is not 2.
        case unsupportedVersion
        /// The padding count is zero, or larger than what follows the header.
        case invalidPadding
        /// An RTCP compound does not begin with a sender or receiver report.
        case invalidFirstPacket
        /// An RTCP length or count field does not agree with the bytes there are.
        case invalidLength
        /// A telephone event without duration.
        case zeroDuration
        /// A redundant-audio payload has more blocks than anybody needs.
        case tooManyBlocks
    }

    /// The kind of defect.
    package let code: Code
    /// The number that is wrong: a byte count, a version, a padding count or a packet type.
    package let found: Int
    /// The number that the packet must have, or the least one.
    package let required: Int

    init(_ code: Code, found: Int = 0, required: Int = 0) {
        self.code = code
        self.found = found
        self.required = required
    }

    /// What is wrong with the packet, and what to look at.
    package var description: String {
        switch code {
        case .truncated:
            "Packet has \(found) bytes where its header asks for \(required). Look for a sender or path that cuts packets."
        case .unsupportedVersion:
            "Version \(found) is not RTP version \(required). Check that the port receives RTP and nothing else."
        case .invalidPadding:
            "Padding count \(found) does not fit the \(required) bytes after the header. Check encryption on both sides."
        case .invalidFirstPacket:
            "RTCP begins with packet type \(found), not with a report (200 or 201). Ask the peer for compound RTCP."
        case .invalidLength:
            "RTCP length asks for \(required) bytes where \(found) are there. Check encryption on both sides."
        case .tooManyBlocks:
            "RED payload has \(found) redundant blocks or more, where \(required) are read. Ask the peer for fewer."
        case .zeroDuration:
            "Telephone event has no duration. The sender must count time from 1 on (RFC 4733, section 2.3.5)."
        }
    }
}
