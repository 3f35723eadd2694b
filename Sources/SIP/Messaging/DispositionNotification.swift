internal import CallBasics

/// What became of a message, as who received it tells its sender.
///
///     <imdn xmlns="urn:ietf:params:xml:ns:imdn"><message-id>34jk324j</message-id><datetime>...</datetime>
///     <delivery-notification><status><delivered/></status></delivery-notification></imdn>
///
/// Source: RFC 5438, sections 7 and 11.1
package struct DispositionNotification: Hashable, Sendable {
    /// What is told about.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case delivery = "delivery-notification"
        case display = "display-notification"
        case processing = "processing-notification"
    }

    package enum Status: String, Hashable, Sendable, CaseIterable {
        case delivered, displayed, failed, forbidden, error, processed, stored
    }

    /// The type of its body.
    package static let type = "message/imdn+xml"
    private static let namespace = "urn:ietf:params:xml:ns:imdn"

    /// The identifier that the sender gave to the message.
    package let messageID: String
    package let kind: Kind
    package let status: Status

    /// That a message was delivered, or displayed.
    package init(of messageID: String, isDisplayed: Bool) {
        self.messageID = messageID
        (kind, status) = isDisplayed ? (.display, .displayed) : (.delivery, .delivered)
    }

    /// Reads a body of the type message/imdn+xml.
    ///
    /// Throws: `badRequest` when it tells nothing of a message, `messageTooLarge` beyond 64 KiB
    package init(parsing body: Bytes) throws(SIPError) {
        let document = try XMLElement(parsing: body)
        guard document.namespace == Self.namespace, document.name == "imdn",
            let id = document["message-id"]?.text, !id.isEmpty,
            let notification = document.children.first(where: { Kind(rawValue: $0.name) != nil }),
            let kind = Kind(rawValue: notification.name),
            let status = notification["status"]?.children.lazy.compactMap({ Status(rawValue: $0.name) }).first
        else {
            throw SIPError(.badRequest, "The receipt tells nothing of a message. Write it as RFC 5438 says.")
        }
        (messageID, self.kind, self.status) = (id, kind, status)
    }

    /// The body; `dateTime` is when the message was sent or came, by RFC 3339.
    package func body(dateTime: String) -> [UInt8] {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>\r
            <imdn xmlns="\(Self.namespace)">\r
            <message-id>\(XMLElement.escaped(messageID))</message-id>\r
            <datetime>\(XMLElement.escaped(dateTime))</datetime>\r
            <\(kind.rawValue)><status><\(status.rawValue)/></status></\(kind.rawValue)>\r
            </imdn>\r

            """
        return Array(text.utf8)
    }
}
