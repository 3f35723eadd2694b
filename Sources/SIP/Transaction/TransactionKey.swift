/// What the responses to a request have in common.
///
/// Source: RFC 3261, section 17.1.3
struct ClientKey: Hashable, Sendable {
    /// The branch and the method, with a blank between them, which no method holds.
    private let key: ByteKey

    init(branch: Bytes, method: SIPMethod) {
        var text: [UInt8] = []
        text.reserveCapacity(branch.count + method.name.utf8.count + 1)
        text += branch
        text.append(.space)
        text += method.name.utf8
        key = ByteKey(bytes: text)
    }
}

/// What the repeats of a request, its ACK and its CANCEL have in common with it.
///
/// Source: RFC 3261, section 17.2.3
struct ServerKey: Hashable, Sendable {
    /// The method and the parts with a NUL between them; a branch, which stands last, may hold one, too, and a tag of a peer of
    /// RFC 2543.
    private let key: ByteKey
    /// Whether it comes from a peer of RFC 2543, whose branch says nothing.
    let isLegacy: Bool

    /// The key of a request that was validated; an ACK has that of the INVITE.
    ///
    /// `method` stands for that of the request: INVITE to find what a CANCEL is about.
    init(_ request: SIPMessage, via: Via, method: SIPMethod) throws(SIPError) {
        let method = method == .ack ? .invite : method
        isLegacy = !via.hasUniqueBranch
        guard !isLegacy else {
            key = ByteKey(bytes: Array(method.name.utf8) + [0] + (try Self.legacyText(request, method: method)))
            return
        }
        let branch = via.branch ?? []
        var text: [UInt8] = []
        text.reserveCapacity(method.name.utf8.count + via.host.count + branch.count + 8)
        text += method.name.utf8
        text.append(0)
        for byte in via.host { text.append(byte.lowercase) }
        text.append(.colon)
        if let port = via.port { text += String(port).utf8 }
        text.append(0)
        text += branch
        key = ByteKey(bytes: text)
    }

    /// The To tag of an INVITE is left out: its ACK has another one.
    private static func legacyText(_ request: SIPMessage, method: SIPMethod) throws(SIPError) -> [UInt8] {
        var parts = [request.startBytes, try request.from()?.tag ?? [], request.callID ?? []]
        parts.append(Bytes("\(try request.cSeq()?.number ?? 0)"))
        parts.append(request.first(.via) ?? [])
        if method != .invite { parts.append(try request.to()?.tag ?? []) }
        return Array(parts.joined(separator: [0]))
    }
}

/// What a request has in common with the same request that came another way.
///
/// Source: RFC 3261, section 8.2.2.2
struct MergeKey: Hashable, Sendable {
    /// CSeq, the Call-ID, which holds no blank, and the tag of From, with a NUL between them.
    private let key: ByteKey

    /// Nil for a request within a dialog, which cannot be merged.
    init?(_ request: SIPMessage) throws(SIPError) {
        guard try request.to()?.tag == nil, let cSeq = try request.cSeq() else { return nil }
        let (callID, tag) = (request.callID ?? [], try request.from()?.tag ?? [])
        var text: [UInt8] = []
        text.reserveCapacity(callID.count + tag.count + 24)
        cSeq.serialize(into: &text)
        text.append(0)
        text += callID
        text.append(0)
        text += tag
        key = ByteKey(bytes: text)
    }
}
