internal import CallBasics

/// Names a text that is kept; after its end the name stays unused.
struct TextID: SlotName {
    let slot: Int
    let serial: UInt64
}

/// A MESSAGE for a user who was away when it came.
struct KeptText: Sendable {
    let user: String
    /// Without Via, and without what was for the server alone.
    let request: SIPMessage
    /// Whether it may leave by TLS alone (RFC 3261, section 26.2.2).
    let isSecure: Bool
    /// Whether it is on its way to a phone.
    var isLeaving = false
}

/// The texts for users who are away, in the order in which they came.
///
/// It owns no clock. The count is bounded by who puts them in.
struct TextStore: Sendable {
    private var texts = SlotTable<TextID, KeptText>()
    private var namesOfUser: [String: [TextID]] = [:]
    /// The bytes of all of them.
    private(set) var byteCount = 0

    var count: Int { texts.count }
    var deadline: MediaTime? { texts.deadline }

    func count(of user: String) -> Int { namesOfUser[user]?.count ?? 0 }

    subscript(id: TextID) -> KeptText? { texts[id] }

    mutating func insert(_ request: SIPMessage, for user: String, until end: MediaTime) {
        let name = texts.insert { _ in KeptText(user: user, request: request, isSecure: request.isBoundForSIPS) }
        texts.setDeadline(of: name, to: end)
        byteCount += request.bytes.count
        namesOfUser[user, default: []].append(name)
    }

    /// The oldest text of a user, which leaves now for a phone that is reached by TLS alone or not; nil when there is none, or one is leaving already.
    mutating func takeNext(of user: String, isSecure: Bool) -> TextID? {
        let names = namesOfUser[user] ?? []
        guard !names.contains(where: { texts[$0]?.isLeaving == true }),
            let name = names.first(where: { isSecure || texts[$0]?.isSecure == false })
        else { return nil }
        texts[name]?.isLeaving = true
        return name
    }

    /// A phone did not take it: it waits for the next.
    mutating func giveBack(_ name: TextID) { texts[name]?.isLeaving = false }

    @discardableResult
    mutating func remove(_ name: TextID) -> KeptText? {
        guard let text = texts.remove(name) else { return nil }
        byteCount -= text.request.bytes.count
        let left = (namesOfUser[text.user] ?? []).filter { $0 != name }
        namesOfUser[text.user] = left.isEmpty ? nil : left
        return text
    }

    mutating func removeExpired(at now: MediaTime) { while let name = texts.due(at: now) { remove(name) } }
}
