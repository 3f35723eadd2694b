internal import CallBasics

/// The dialogs of calls that have ended lately, so that whoever wants to replace one hears that it is over.
///
/// Source: RFC 3891, section 3
struct EndedDialogs: Sendable {
    /// How many are remembered, and for how long.
    static let limit = 64
    static let lifetime = Duration.seconds(64)

    private var dialogs: [(id: DialogID, time: MediaTime)] = []

    func contains(_ id: DialogID) -> Bool { dialogs.contains { $0.id == id } }

    /// Notes one that has ended; old ones are forgotten.
    mutating func note(_ id: DialogID, at now: MediaTime) {
        dialogs.removeAll { now - $0.time > Self.lifetime }
        if dialogs.count == Self.limit { dialogs.removeFirst() }
        dialogs.append((id, now))
    }
}
