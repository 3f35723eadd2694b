internal import CallBasics

/// A MESSAGE as its receiver takes it: out of its envelope, if it has one.
///
/// Source: RFC 3428; RFC 3862; RFC 3994; RFC 5438
package struct InstantMessage: Hashable, Sendable {
    /// What it brings.
    package enum Content: Hashable, Sendable {
        case text(String)
        /// What became of a message of this side.
        case receipt(DispositionNotification)
        /// Whether its sender is writing.
        case composing(ComposingState)
    }

    /// The types of its body.
    package static let types = [
        "text/plain", CPIMMessage.type, DispositionNotification.type, ComposingState.type, "multipart/mixed",
        "multipart/alternative",
    ]

    /// What pushes name it by; several may share one.
    package let callID: String
    /// What its sender calls it, to tell a repeat by, and for receipts; nil where it does not.
    package let messageID: String?
    /// What tells it from others of the same Call-ID that are not named: the number in CSeq, and the tag of From.
    package let distinction: String
    /// The address of who sent it, as From says; what an envelope says besides proves nothing, but for that of a room.
    package private(set) var sender: SIPURI
    package private(set) var senderName: String?
    /// The chat room that it comes from; nil outside of rooms.
    package private(set) var room: SIPURI?
    /// Who wrote it, as its envelope says; nil where it has none.
    private let author: NameAddress?
    /// The address that it was sent to.
    package let receiver: SIPURI
    package let content: Content
    /// Whether its sender wants to hear that it was delivered.
    package let wantsDelivery: Bool
    /// Whether its sender wants to hear that it was displayed.
    package let wantsDisplay: Bool

    /// Reads a MESSAGE; nil when what it brings is of no type that is taken.
    ///
    /// Throws: `badRequest` when it breaks a grammar, `messageTooLarge`
    package init?(_ request: SIPMessage) throws(SIPError) {
        guard let from = try request.from(), let to = try request.to(), let cSeq = try request.cSeq() else {
            throw SIPError(.badRequest, "The message does not say who sent it. Write From, To and CSeq.")
        }
        var (body, type) = (request.bodyBytes, try request.contentType())
        if let whole = type, whole.type.isNamed("multipart") {
            guard let part = try Self.part(of: request, whole) else { return nil }
            (body, type) = (part.bytes, part.type)
        }
        var envelope: CPIMMessage?
        if type?.isNamed(Bytes(CPIMMessage.type)) == true {
            let opened = try CPIMMessage(parsing: body)
            body = opened.content[...]
            let encodings = opened.contentHeaders.filter { Bytes($0.name).isNamed("Content-Encoding") }.flatMap {
                header in
                header.value.split(separator: ",").map { Bytes(String($0)).trimmed.text }
            }
            guard let isDeflated = ContentCoding.isDeflated(encodings) else { return nil }
            if isDeflated { body = try ContentCoding.inflate(body)[...] }
            type = try opened.contentType.map { text throws(SIPError) in try MediaType(parsing: Bytes(text)) }
            envelope = opened
        }
        if type?.isNamed(Bytes(DispositionNotification.type)) == true {
            content = .receipt(try DispositionNotification(parsing: body))
        } else if type?.isNamed(Bytes(ComposingState.type)) == true {
            content = .composing(try ComposingState(parsing: body))
        } else if type?.isNamed("text", "plain") ?? true {
            content = .text(body.text)
        } else {
            return nil
        }
        callID = request.callID?.text ?? ""
        distinction = "\(cSeq.number) \(from.tag?.text ?? "")"
        (sender, senderName, receiver) = (from.uri, from.displayName?.text, to.uri)
        author = envelope?.value("From").flatMap { try? NameAddress(parsing: Bytes($0)) }
        messageID = envelope?.messageID.flatMap { $0.isEmpty ? nil : $0 }
        // What becomes of a receipt nobody is told.
        let wishes = if case .text = content { envelope?.wantedReceipts ?? [] } else { [String]() }
        (wantsDelivery, wantsDisplay) = (wishes.contains("positive-delivery"), wishes.contains("display"))
    }

    /// The part that is the message: the first of a type that is taken, of alternatives the last.
    ///
    /// Source: RFC 2046, section 5.1; RFC 5621, section 3
    private static func part(of request: SIPMessage, _ whole: MediaType) throws(SIPError) -> BodyPart? {
        let taken = try request.bodyParts().filter { part in
            part.isPlain && part.type.map { type in types.contains { type.isNamed(Bytes($0)) } } ?? true
        }
        return whole.isNamed("multipart", "alternative") ? taken.last : taken.first
    }

    /// Says that the sender is a room that this side is in, whose server vouches for the envelope: there the author stands, whose
    /// device is left out.
    mutating func place(in room: SIPURI) {
        self.room = room
        guard let author, author.uri.scheme == .sip || author.uri.scheme == .sips else { return }
        (sender, senderName) = (author.uri.roomAddress, author.displayName?.text)
    }
}
