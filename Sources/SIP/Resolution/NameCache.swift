internal import CallBasics

/// Answers that are kept as long as their servers allow, and longer when nobody answers.
///
/// Source: RFC 2308, section 5; RFC 8767
struct NameCache: Sendable {
    /// How much is kept, and how long.
    struct Limits: Hashable, Sendable {
        var entries = 512
        /// No answer is asked for sooner than this.
        var floor = Duration.seconds(5)
        var ceiling = Duration.seconds(86_400)
        /// That there is nothing, when the server does not say how long that holds.
        var nothing = Duration.seconds(30)
        var nothingCeiling = Duration.seconds(300)
        /// How long past its time an answer serves when nobody gives a new one.
        var staleness = Duration.seconds(3600)
    }

    let limits: Limits
    private var facts: [DNSQuestion: KnownFact] = [:]

    init(limits: Limits) { self.limits = limits }

    var count: Int { facts.count }

    /// Keeps what was learnt, and gives it with its time.
    mutating func insert(_ fact: NameFact, life: Duration?, for question: DNSQuestion, at now: MediaTime) -> KnownFact {
        let ceiling = if case .values = fact { limits.ceiling } else { limits.nothingCeiling }
        let known = KnownFact(fact: fact, expires: now + min(max(life ?? limits.nothing, limits.floor), ceiling))
        if facts[question] == nil, facts.count >= limits.entries { makeRoom() }
        facts[question] = known
        return known
    }

    /// What is known and still holds.
    func fresh(_ question: DNSQuestion, at now: MediaTime) -> KnownFact? {
        guard let known = facts[question], now < known.expires else { return nil }
        return known
    }

    /// What was known, for when nobody answers; that there was nothing is not worth keeping.
    func stale(_ question: DNSQuestion, at now: MediaTime) -> KnownFact? {
        guard var known = facts[question], case .values = known.fact, now < known.expires + limits.staleness else {
            return nil
        }
        known.isStale = now >= known.expires
        return known
    }

    mutating func removeAll() { facts = [:] }

    /// Drops the entry that ends first; it looks at all of them.
    private mutating func makeRoom() {
        guard let first = facts.min(by: { $0.value.expires < $1.value.expires }) else { return }
        facts[first.key] = nil
    }
}
