/// Views of what WebRTC says of the streams of a medium.
extension MediaDescription {
    /// What is said of sources, one value for each line (RFC 5576, section 4.1).
    package var sources: [SourceAttribute] {
        lines.compactMap { $0.value(ofAttribute: "ssrc") }.compactMap(SourceAttribute.init(parsing:))
    }

    /// The streams and tracks that the medium is of (RFC 8830, section 2).
    package var streamIdentifiers: [StreamIdentifier] {
        lines.compactMap { $0.value(ofAttribute: "msid") }.compactMap(StreamIdentifier.init(parsing:))
    }

    /// The feedback that is understood (RFC 4585, section 4.2).
    package var feedback: [FeedbackAttribute] {
        lines.compactMap { $0.value(ofAttribute: "rtcp-fb") }.compactMap(FeedbackAttribute.init(parsing:))
    }

    /// The header extensions by their numbers (RFC 8285, section 5).
    package var headerExtensions: [HeaderExtension] {
        (sessionLines + lines).compactMap { $0.value(ofAttribute: "extmap") }.compactMap(HeaderExtension.init(parsing:))
    }
}

/// An attribute of one source: a=ssrc:<ssrc> <name>[:<value>].
package struct SourceAttribute: Hashable, Sendable {
    package var ssrc: UInt32
    package var attribute: SDPAttribute

    init?(parsing value: Bytes) {
        var rest = value
        guard let ssrc: UInt32 = rest.takeField()?.decimal(), var text = rest.trimmed else { return nil }
        self.ssrc = ssrc
        let name = text.take(before: UInt8(ascii: ":"))
        attribute = SDPAttribute(name.text, name.endIndex < rest.endIndex && !text.isEmpty ? text.text : nil)
    }
}

/// The stream and the track of a medium: a=msid:<stream> [<track>].
package struct StreamIdentifier: Hashable, Sendable {
    package var stream: String
    package var track: String?

    init?(parsing value: Bytes) {
        var rest = value
        guard let stream = rest.takeField() else { return nil }
        self.stream = stream.text
        track = rest.takeField()?.text
    }
}

/// Feedback by RTCP: a=rtcp-fb:<payload type or *> <feedback>.
package struct FeedbackAttribute: Hashable, Sendable {
    /// Nil for all formats.
    package var payloadType: UInt8?
    /// Such as "nack pli".
    package var feedback: String

    init?(parsing value: Bytes) {
        var rest = value
        guard let type = rest.takeField(), let feedback = rest.trimmed else { return nil }
        if !type.isNamed("*") {
            guard let number: UInt8 = type.decimal(), number < 128 else { return nil }
            payloadType = number
        }
        self.feedback = feedback.text
    }
}

/// A header extension: a=extmap:<number>[/<direction>] <URI> [<attributes>].
package struct HeaderExtension: Hashable, Sendable {
    package var number: UInt16
    package var direction: MediaDirection?
    package var uri: String
    package var attributes: String?

    init?(parsing value: Bytes) {
        var rest = value
        guard var numbers = rest.takeField(), let uri = rest.takeField(),
            let number: UInt16 = numbers.take(before: UInt8(ascii: "/")).decimal()
        else { return nil }
        self.number = number
        direction = MediaDirection(numbers)
        self.uri = uri.text
        attributes = rest.trimmed?.text
    }
}
