internal import CallBasics

/// A message in its envelope: who wrote it to whom, and what its sender wants to hear of it.
///
///     From: "Anna" <sip:anna@example.org>       headers of the envelope; their names are compared with case
///     NS: imdn <urn:ietf:params:imdn>           what the prefix imdn stands for
///     imdn.Message-ID: 34jk324j
///                                               an empty line
///     Content-Type: text/plain                  headers of the content
///                                               an empty line
///     Hello
///
/// Source: RFC 3862; RFC 5438, section 6
package struct CPIMMessage: Hashable, Sendable {
    /// One header of the envelope.
    package struct Header: Hashable, Sendable {
        /// What its prefix stands for; empty for those of RFC 3862, nil where nothing says it.
        package let namespace: String?
        /// Without its prefix.
        package let name: String
        package let value: String
    }

    /// What is more than this is refused.
    private static let lineCount = 64

    /// The type of its body.
    package static let type = "message/cpim"

    /// The namespace of receipts.
    package static let receipts = "urn:ietf:params:imdn"

    package let headers: [Header]
    /// The headers of the content, whose names are compared without case.
    package let contentHeaders: [Header]
    package let content: [UInt8]

    /// Reads a body of the type message/cpim.
    ///
    /// Content headers that follow without an empty line, as in the examples of RFC 5438, are taken.
    /// Throws: `badRequest` when it has no envelope, `messageTooLarge` beyond 64 KiB
    package init(parsing body: Bytes) throws(SIPError) {
        guard body.count <= MessageLimits.byteCount else { throw SIPMessage.tooLarge(body.count) }
        var rest = body
        let envelope = try Self.fields(&rest)
        guard !envelope.isEmpty else { throw Self.refused("has no headers") }
        var prefixes = ["": ""]
        for field in envelope where field.name.elementsEqual("NS".utf8) {
            guard let (prefix, uri) = Self.namespace(field.value) else {
                throw Self.refused("has a NS that names nothing")
            }
            prefixes[prefix] = uri
        }
        // Names of the content stand among those of the envelope only where the line between them is missing.
        let isJoined = envelope.contains { $0.name.isNamed("Content-Type") }
        let own = envelope.filter { !isJoined || !$0.name.prefix(8).isNamed("Content-") }
        headers = own.map { field in
            let dot = field.name.firstIndex(of: 0x2E)
            let prefix = dot.map { field.name[..<$0].text } ?? ""
            let name = dot.map { field.name[($0 + 1)...].text } ?? field.name.text
            return Header(namespace: prefixes[prefix], name: name, value: field.value.text)
        }
        let inner = isJoined ? envelope.filter { $0.name.prefix(8).isNamed("Content-") } : try Self.fields(&rest)
        contentHeaders = inner.map { Header(namespace: "", name: $0.name.text, value: $0.value.text) }
        content = Array(rest)
    }

    /// The value of the first header of a name; nil where there is none.
    package func value(_ name: String, in namespace: String = "") -> String? {
        headers.first { $0.namespace == namespace && $0.name == name }?.value
    }

    /// What names the message for its receipts; nil where none is wanted.
    package var messageID: String? { value("Message-ID", in: Self.receipts) }

    /// The receipts that are wanted: `positive-delivery`, `negative-delivery`, `display`.
    package var wantedReceipts: [String] {
        (value("Disposition-Notification", in: Self.receipts) ?? "").split(separator: ",")
            .map { $0.filter { $0 != " " && $0 != "\t" } }.filter { !$0.isEmpty }
    }

    /// The type of the content; nil where none is told.
    package var contentType: String? {
        contentHeaders.first { Bytes($0.name).isNamed("Content-Type") }?.value
    }

    /// What goes into an envelope.
    package struct Letter: Sendable {
        /// Who wrote it, and to whom.
        package var from, to: SIPURI
        /// When, by RFC 3339.
        package var dateTime: String
        /// What names it for its receipts.
        package var messageID: String
        /// `positive-delivery`, `negative-delivery`, `display`.
        package var wantedReceipts: [String] = []
        package var contentType: String
        package var content: [UInt8]

        package init(
            from: SIPURI,
            to: SIPURI,
            dateTime: String,
            messageID: String,
            contentType: String,
            _ content: [UInt8]
        ) {
            (self.from, self.to, self.dateTime, self.messageID) = (from, to, dateTime, messageID)
            (self.contentType, self.content) = (contentType, content)
        }

        /// A receipt, of which nobody is told what becomes.
        package init(
            _ notification: DispositionNotification,
            from: SIPURI,
            to: SIPURI,
            dateTime: String,
            messageID: String
        ) {
            self.init(
                from: from,
                to: to,
                dateTime: dateTime,
                messageID: messageID,
                contentType: DispositionNotification.type,
                notification.body(dateTime: dateTime)
            )
        }

        /// A body of the type message/cpim.
        ///
        /// Throws: `invalidCharacter` when a value would end its line
        package func body() throws(SIPError) -> [UInt8] {
            var lines = [
                "From: <\(from.bytes.text)>", "To: <\(to.bytes.text)>", "DateTime: \(dateTime)",
                "NS: imdn <\(CPIMMessage.receipts)>", "imdn.Message-ID: \(messageID)",
            ]
            if !wantedReceipts.isEmpty {
                lines.append("imdn.Disposition-Notification: \(wantedReceipts.joined(separator: ", "))")
            }
            lines += ["", "Content-Type: \(contentType)"]
            if contentType == DispositionNotification.type { lines.append("Content-Disposition: notification") }
            lines.append("Content-Length: \(content.count)")
            if let wrong = lines.first(where: { Bytes($0).wouldEndLine }) {
                throw SIPError(.invalidCharacter, "\(Bytes(wrong).excerpt) would end its line. Leave the line end out.")
            }
            return Array((lines + ["", ""]).joined(separator: "\r\n").utf8) + content
        }
    }

    // MARK: Lines

    private typealias Field = (name: Bytes, value: Bytes)

    /// Takes the fields up to an empty line, and that.
    private static func fields(_ rest: inout Bytes) throws(SIPError) -> [Field] {
        var fields: [Field] = []
        while let end = rest.firstIndex(of: .lineFeed) {
            let line = rest[..<end].last == .carriageReturn ? rest[..<(end - 1)] : rest[..<end]
            rest = rest[(end + 1)...]
            guard !line.isEmpty else { return fields }
            guard fields.count < lineCount, line.count <= MessageLimits.valueByteCount else {
                throw refused(
                    "has more than \(lineCount) headers, or one of more than \(MessageLimits.valueByteCount) bytes"
                )
            }
            guard let colon = line.firstIndex(of: .colon), colon > line.startIndex,
                line[..<colon].allSatisfy({ $0 > 0x20 && $0 != 0x7F })
            else { throw refused("has a line that is no header") }
            fields.append((line[..<colon], line[(colon + 1)...].trimmed))
        }
        throw refused("has no empty line behind its headers")
    }

    /// The prefix, empty for the default, and the URI of a NS header.
    private static func namespace(_ value: Bytes) -> (prefix: String, uri: String)? {
        guard let start = value.firstIndex(of: .less), value.last == .greater else { return nil }
        let uri = value[(start + 1)..<(value.endIndex - 1)]
        return uri.isEmpty ? nil : (value[..<start].trimmed.text, uri.text)
    }

    private static func refused(_ what: String) -> SIPError {
        SIPError(.badRequest, "The CPIM message \(what). Write it as RFC 3862 says.")
    }
}
