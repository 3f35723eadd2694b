internal import CallBasics

/// Whether somebody is writing a text.
///
///     <isComposing xmlns="urn:ietf:params:xml:ns:im-iscomposing"><state>active</state><refresh>60</refresh></isComposing>
///
/// Source: RFC 3994
package struct ComposingState: Hashable, Sendable {
    /// The type of its body.
    package static let type = "application/im-iscomposing+xml"
    private static let namespace = "urn:ietf:params:xml:ns:im-iscomposing"

    package let isActive: Bool
    /// For how long it is so unless it is told again, in seconds; nil where that is not told.
    package let refresh: Int?

    package init(isActive: Bool, refresh: Int? = nil) { (self.isActive, self.refresh) = (isActive, refresh) }

    /// Reads a body of the type application/im-iscomposing+xml; a state that is not known is idle (section 4).
    ///
    /// Throws: `badRequest` when it tells no state, `messageTooLarge` beyond 64 KiB
    package init(parsing body: Bytes) throws(SIPError) {
        let document = try XMLElement(parsing: body)
        guard document.namespace == Self.namespace, document.name == "isComposing",
            let state = document["state"]?.text
        else {
            throw SIPError(.badRequest, "The body does not say whether somebody writes. Write it as RFC 3994 says.")
        }
        isActive = state == "active"
        refresh = document["refresh"].flatMap { Int($0.text) }.flatMap { $0 > 0 ? $0 : nil }
    }

    package var body: [UInt8] {
        let refresh = refresh.map { "<refresh>\($0)</refresh>" } ?? ""
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>\r
            <isComposing xmlns="\(Self.namespace)"><state>\(isActive ? "active" : "idle")</state>\(refresh)</isComposing>\r

            """
        return Array(text.utf8)
    }
}
