package import CallBasics

/// Finds the targets of URIs: answers about names and time go in, questions and lists of targets come out.
///
///     user ──resolve, cancel──►    ──poll──► ask, to whoever knows names
///     names ──receive──►           ──poll──► resolved, failed, to the user
///
/// After each call, `poll` until it is nil. Each question is asked once, however many wait for it, and has to be
/// answered once, if only by `timeout`. A lookup that ends leaves every table in the same step.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3263
package struct Resolver: Sendable {
    /// Names a lookup; after its end the name stays unused.
    package struct LookupID: Hashable, Sendable {
        fileprivate let serial: UInt64
    }

    /// What `poll` gives.
    package enum Output: Hashable, Sendable {
        case ask(DNSQuestion)
        case resolved(LookupID, Resolution)
        case failed(LookupID, ResolutionError)
    }

    /// How many lookups may run at once.
    package static let lookupCount = 1024

    private var searches: [LookupID: TargetSearch] = [:]
    private var waiting: [DNSQuestion: [LookupID]] = [:]
    private var cache: NameCache
    private var generator: SeededGenerator
    private var nextSerial: UInt64 = 0
    private var outputs = OutputQueue<Output>()
    /// Answers to what was not asked.
    package private(set) var droppedCount = 0

    /// The same seed and the same calls draw the same servers.
    package init(seed: UInt64) { self.init(seed: seed, limits: NameCache.Limits()) }

    init(seed: UInt64, limits: NameCache.Limits) {
        generator = SeededGenerator(seed: seed)
        cache = NameCache(limits: limits)
    }

    /// How many entries each table has; what is kept of answers goes by `forget`.
    package var counts: ResolverCounts {
        var counts = ResolverCounts()
        counts.lookups = searches.count
        counts.questions = waiting.count
        counts.kept = cache.count
        counts.outputs = outputs.count
        return counts
    }

    /// Looks for the targets of a URI, or of the first URI of a route.
    ///
    /// It may end at once, when the URI has an address or all answers are kept; that, too, is told by `poll`.
    package mutating func resolve(_ uri: SIPURI, _ wishes: ResolutionWishes, at now: MediaTime) -> LookupID {
        nextSerial += 1
        let id = LookupID(serial: nextSerial)
        let seed = generator.next()
        guard searches.count < Self.lookupCount else {
            let error = ResolutionError(.tooManyLookups, "\(searches.count) URIs are looked up. Wait for some to end.")
            outputs.append(.failed(id, error))
            return id
        }
        do {
            searches[id] = TargetSearch(try TargetPlan(uri, wishes), seed: seed)
            advance(id, at: now)
        } catch {
            outputs.append(.failed(id, error))
        }
        return id
    }

    /// Ends a lookup, of which nothing is told any more; the answers to what only it asked are dropped.
    package mutating func cancel(_ id: LookupID) {
        guard searches.removeValue(forKey: id) != nil else { return }
        for (question, ids) in waiting where ids.contains(id) {
            let left = ids.filter { $0 != id }
            waiting[question] = left.isEmpty ? nil : left
        }
    }

    /// Takes an answer.
    package mutating func receive(_ answer: DNSAnswer, to question: DNSQuestion, at now: MediaTime) {
        guard let ids = waiting.removeValue(forKey: question) else {
            droppedCount += 1
            return
        }
        let known = learn(answer, about: question, at: now)
        for id in ids {
            searches[id]?.learn(known, about: question)
            advance(id, at: now)
        }
    }

    /// Forgets all answers, as when the network is another one.
    package mutating func forget() { cache.removeAll() }

    /// The next thing to do; nil when all is done.
    package mutating func poll() -> Output? { outputs.poll() }

    private mutating func learn(_ answer: DNSAnswer, about question: DNSQuestion, at now: MediaTime) -> KnownFact {
        let (fact, life) = NameFact.read(answer, to: question)
        guard fact == .unknown else { return cache.insert(fact, life: life, for: question, at: now) }
        return cache.stale(question, at: now) ?? KnownFact(fact: .unknown, expires: now)
    }

    /// Goes on until an answer is missing; a search has a handful of steps.
    private mutating func advance(_ id: LookupID, at now: MediaTime) {
        while var search = searches[id] {
            switch search.step() {
            case .found(let resolution): end(id, .resolved(id, resolution))
            case .failed(let error): end(id, .failed(id, error))
            case .ask(let questions):
                var isAnswered = true
                for question in questions {
                    if let known = cache.fresh(question, at: now) {
                        search.learn(known, about: question)
                    } else {
                        isAnswered = false
                        ask(question, for: id)
                    }
                }
                searches[id] = search
                guard isAnswered else { return }
            }
        }
    }

    private mutating func ask(_ question: DNSQuestion, for id: LookupID) {
        guard let ids = waiting[question] else {
            waiting[question] = [id]
            return outputs.append(.ask(question))
        }
        if !ids.contains(id) { waiting[question] = ids + [id] }
    }

    private mutating func end(_ id: LookupID, _ output: Output) {
        searches[id] = nil
        outputs.append(output)
    }
}

/// How many entries each table of a stack's lookups has; all but `kept` are 0 when all is over.
package struct ResolverCounts: Hashable, Sendable {
    package internal(set) var lookups = 0
    /// Questions that wait for their answer.
    package internal(set) var questions = 0
    /// Answers that are kept.
    package internal(set) var kept = 0
    /// What was not polled.
    package internal(set) var outputs = 0
}
