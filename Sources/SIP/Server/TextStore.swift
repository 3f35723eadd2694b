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
    /// The contact of the phone that it is on its way to; nil while it is on none.
    fileprivate(set) var destination: Bytes?
    /// How often it has left.
    fileprivate(set) var attempt = 0
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

    /// The oldest text of a user, which leaves now for a phone that is reached by TLS alone or not; nil when there is none, or
    /// one is on its way to a phone that is still there.
    ///
    /// A phone that has gone, or is another process at another address now, does not hold up the next.
    mutating func takeNext(of user: String, to contact: Bytes, isSecure: Bool, _ isThere: (Bytes) -> Bool) -> TextID? {
        let names = namesOfUser[user] ?? []
        for name in names {
            guard let destination = texts[name]?.destination else { continue }
            guard !isThere(destination) else { return nil }
            texts[name]?.destination = nil
        }
        guard let name = names.first(where: { isSecure || texts[$0]?.isSecure == false }) else { return nil }
        texts[name]?.destination = contact.detached
        texts[name]?.attempt += 1
        return name
    }

    /// A phone did not take it, which was sent for so many times: it waits for the next, unless it has left again since.
    mutating func giveBack(_ name: TextID, attempt: Int) {
        if texts[name]?.attempt == attempt { texts[name]?.destination = nil }
    }

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
