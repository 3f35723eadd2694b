internal import CallBasics

/// The people that a request is about, such as those who are invited to a room.
///
///     <resource-lists xmlns="urn:ietf:params:xml:ns:resource-lists">
///     <list><entry uri="sip:bill@example.com"/></list></resource-lists>
///
/// Lists within lists are taken, references to lists elsewhere are not followed.
/// Source: RFC 4826, section 3; RFC 5364; RFC 5366
package struct ResourceList: Hashable, Sendable {
    /// The type of its body.
    package static let type = "application/resource-lists+xml"
    /// Lists of more people are refused.
    package static let limit = 1024

    private static let namespace = "urn:ietf:params:xml:ns:resource-lists"
    private static let copyNamespace = "urn:ietf:params:xml:ns:copyControl"

    package let addresses: [SIPURI]

    package init(_ addresses: [SIPURI]) { self.addresses = addresses }

    /// Reads a body of the type application/resource-lists+xml; who is in it without a SIP address is left out.
    ///
    /// Throws: `badRequest` when it is no list, or one of too many; `messageTooLarge` beyond 64 KiB
    package init(parsing body: Bytes) throws(SIPError) {
        let document = try XMLElement(parsing: body)
        guard document.namespace == Self.namespace, document.name == "resource-lists" else {
            throw SIPError(.badRequest, "The body is no list of addresses. Write it as RFC 4826 says.")
        }
        var found: [SIPURI] = []
        try Self.collect(document, into: &found)
        addresses = found
    }

    private static func collect(_ element: XMLElement, into found: inout [SIPURI]) throws(SIPError) {
        for child in element.children where child.namespace == namespace {
            if child.name == "list" { try collect(child, into: &found) }
            guard child.name == "entry", let text = child.attributes["uri"],
                let uri = try? SIPURI(parsing: Bytes(text)), uri.scheme == .sip || uri.scheme == .sips,
                !uri.hostBytes.isNamed("anonymous.invalid")
            else { continue }
            guard found.count < limit else {
                throw SIPError(.badRequest, "The list has more than \(limit) addresses. Send fewer.")
            }
            found.append(uri)
        }
    }

    /// The body; all see of each other that they are invited.
    package var body: [UInt8] {
        let entries = addresses.map {
            "<entry uri=\"\(XMLElement.escaped($0.bytes.text))\" cp:copyControl=\"to\"/>\r\n"
        }
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>\r
            <resource-lists xmlns="\(Self.namespace)" xmlns:cp="\(Self.copyNamespace)">\r
            <list>\r
            \(entries.joined())</list>\r
            </resource-lists>\r

            """
        return Array(text.utf8)
    }
}
