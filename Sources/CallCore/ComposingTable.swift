internal import CallBasics

/// Who is writing: this side to whom, and who to this side.
///
///     key pressed ──► active at the first one, again each 60 s while keys are pressed ──► idle 15 s behind the last
///     active received ──► writes ──► idle received, a text, or its time is over ──► writes no more
///
/// It owns no clock; after each call, `poll` until it is nil.
/// Source: RFC 3994, section 3
struct ComposingTable: Sendable {
    enum Output: Hashable, Sendable {
        /// Tells somebody whether this side writes.
        case send(isActive: Bool, to: String, account: String?)
        /// Somebody writes to this side, or not any more.
        case told(from: String, isActive: Bool)
    }

    private struct Own {
        let account: String?
        /// When nothing was pressed for so long that nobody writes any more.
        var idleAt: MediaTime
        /// When it is to be told again, at the next key.
        var refreshAt: MediaTime
    }

    /// How long behind the last key nobody writes any more.
    static let idle = Duration.seconds(15)
    /// How often it is told again.
    static let refresh = Duration.seconds(60)
    /// For how long who says nothing of it writes.
    static let remoteRefresh = Duration.seconds(120)
    /// Those that are known in each direction; of those beyond nothing is told.
    static let limit = 256

    private var own: [String: Own] = [:]
    /// Until when they write.
    private var others: [String: MediaTime] = [:]
    private var outputs: [Output] = []

    var deadline: MediaTime? {
        [own.values.map(\.idleAt).min(), others.values.min()].compactMap(\.self).min()
    }

    mutating func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    /// A key was pressed in a text for somebody.
    mutating func notePress(to peer: String, account: String?, at now: MediaTime) {
        handleTimeout(at: now)
        if own[peer] == nil || own[peer].map({ $0.refreshAt <= now }) == true {
            guard own[peer] != nil || own.count < Self.limit else { return }
            own[peer] = Own(account: account, idleAt: now, refreshAt: now + Self.refresh)
            outputs.append(.send(isActive: true, to: peer, account: account))
        }
        own[peer]?.idleAt = now + Self.idle
    }

    /// A text leaves for somebody, who takes that for the end of the writing.
    mutating func noteSent(to peer: String) { own[peer] = nil }

    /// Somebody says whether they write.
    mutating func receive(_ isActive: Bool, refresh: Int?, from peer: String, at now: MediaTime) {
        guard isActive else { return end(peer) }
        let isKnown = others[peer] != nil
        guard isKnown || others.count < Self.limit else { return }
        others[peer] = now + (refresh.map { .seconds(min($0, 3600)) } ?? Self.remoteRefresh)
        if !isKnown { outputs.append(.told(from: peer, isActive: true)) }
    }

    /// A text of somebody has come.
    mutating func noteText(from peer: String) { end(peer) }

    mutating func handleTimeout(at now: MediaTime) {
        for (peer, entry) in own where entry.idleAt <= now {
            own[peer] = nil
            outputs.append(.send(isActive: false, to: peer, account: entry.account))
        }
        for (peer, time) in others where time <= now { end(peer) }
    }

    private mutating func end(_ peer: String) {
        guard others.removeValue(forKey: peer) != nil else { return }
        outputs.append(.told(from: peer, isActive: false))
    }
}
