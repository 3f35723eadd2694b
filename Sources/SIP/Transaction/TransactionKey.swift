/// What the responses to a request have in common.
///
/// Source: RFC 3261, section 17.1.3
struct ClientKey: Hashable, Sendable {
    let branch: [UInt8]
    let method: SIPMethod

    init(branch: Bytes, method: SIPMethod) { (self.branch, self.method) = (Array(branch), method) }
}

/// What the repeats of a request, its ACK and its CANCEL have in common with it.
///
/// Source: RFC 3261, section 17.2.3
struct ServerKey: Hashable, Sendable {
    /// The parts with a NUL between them, which none of them holds but perhaps a branch, which stands first.
    private let text: [UInt8]
    private let method: SIPMethod
    /// Whether it comes from a peer of RFC 2543, whose branch says nothing.
    let isLegacy: Bool

    /// The key of a request that was validated; an ACK has that of the INVITE.
    ///
    /// `method` stands for that of the request: INVITE to find what a CANCEL is about.
    init(_ request: SIPMessage, via: Via, method: SIPMethod) throws(SIPError) {
        self.method = method == .ack ? .invite : method
        isLegacy = !via.hasUniqueBranch
        guard !isLegacy else {
            text = try Self.legacyText(request, method: self.method)
            return
        }
        var text = Array(via.branch ?? [])
        text.append(0)
        text += via.host.map(\.lowercase)
        text += ":\(via.port.map { String($0) } ?? "")".utf8
        self.text = text
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
    private let fromTag: [UInt8]
    private let callID: [UInt8]
    private let cSeq: CSeq

    /// Nil for a request within a dialog, which cannot be merged.
    init?(_ request: SIPMessage) throws(SIPError) {
        guard try request.to()?.tag == nil, let cSeq = try request.cSeq() else { return nil }
        fromTag = Array(try request.from()?.tag ?? [])
        callID = Array(request.callID ?? [])
        self.cSeq = cSeq
    }
}
