import CallBasics
import MediaEngine
import SDP

/// The side of ICE that looks for the way by checks of its own, and answers those of the other side.
///
///     addresses of the other side ──► checks, one each 50 ms ──► answered: a way ──► nominated: the way, asked for consent
///     checks of the other side ──► answers, and checks back ──┘
///
/// It has one address of its own and one component, and may have a relay: a pair is an address of the other side, and whether it
/// is reached by the relay; none is frozen. What the other side's network makes of the own address does not matter: it answers
/// to where the check came from.
/// Source: RFC 8445; RFC 7675 (consent).
struct FullAgent: PathAgent {
    private let session: AgreedICE.Session
    private let component: ICEComponent
    private let relayed: SocketAddress?
    private let remoteKey: STUNKey
    private var checks: CheckGuard
    private var generator: any RandomNumberGenerator
    /// What the media thread knows answers by.
    private let tag: UInt32
    private var isControlling: Bool
    private var tieBreaker: UInt64
    private var pairs: [Pair] = []
    /// Checks that go before all others, since the other side has checked the way.
    private var triggered: [Route] = []
    private(set) var questions: [Question] = []
    private(set) var selected: Route?
    private var firstAnswer: MediaTime?
    /// When no more ways are nominated than one; nil before the first.
    private var settling: MediaTime?
    /// Since when the way in use is that.
    private var selection = MediaTime.zero
    private var nextCheck: MediaTime
    private var nextConsent: MediaTime?
    /// Whether the other side has said that it wants nothing more.
    private var isRefused = false
    /// Whether it has asked for the last time.
    private var isEnded = false
    private var leaving: [(bytes: [UInt8], route: Route)] = []

    /// A side that looks for the way from now on.
    ///
    /// - Parameters:
    ///   - agreed: What descriptions say.
    ///   - relayed: The own address at a relay, by which the other side's are checked, too; nil without.
    ///   - tag: What its transactions begin with.
    ///   - generator: Makes the rest of them, and decides who controls when both want to.
    ///   - now: When both descriptions are known.
    init(
        _ agreed: AgreedICE,
        by relayed: SocketAddress? = nil,
        tag: UInt32,
        _ generator: some RandomNumberGenerator,
        at now: MediaTime
    ) {
        (session, component, self.relayed, self.tag) = (agreed.session, agreed.component, relayed, tag)
        isControlling = agreed.isControlling
        remoteKey = STUNKey(shortTerm: agreed.session.remote.password)
        checks = CheckGuard(agreed.session)
        self.generator = generator
        tieBreaker = self.generator.next()
        nextCheck = now
        add(agreed.candidates, at: now)
    }

    // MARK: What is known

    var destination: Route? { current?.route }
    var refusedCount: Int { checks.refusedCount }

    /// Nothing is sent to whoever has not agreed for 30 s, or has said no.
    ///
    /// Source: RFC 7675, section 5.1.
    var end: MediaTime? {
        current.map { isRefused ? $0.lastAnswer : $0.lastAnswer + Self.consentLimit }
    }

    var next: MediaTime? {
        var times = questions.map(\.time)
        if nextToAsk != nil { times.append(nextCheck) }
        if let nomination { times.append(nomination.time) }
        if let nextConsent { times.append(nextConsent) }
        return times.min()
    }

    func knows(_ route: Route) -> Bool { pairs.contains { $0.route == route && $0.isKnown } }

    /// The side that controls is the first to look for another way, so that not both do.
    func isLost(at now: MediaTime) -> Bool {
        let limit = isControlling ? Self.lossLimit : Self.lossLimit + Self.lossLead
        return selectedPair.map { now - $0.lastAnswer > limit } ?? false
    }

    func needsNoRelay(at now: MediaTime) -> Bool {
        guard let pair = selectedPair, !pair.route.isRelayed else { return false }
        return now - selection > Self.relayPatience && !isSilent(at: now)
    }

    /// The way in use.
    private var current: Pair? { selectedPair ?? bestValid }

    private var bestValid: Pair? { best(pairs.filter { $0.state == .valid }) }

    private func best(_ pairs: [Pair]) -> Pair? { pairs.max { isBetter($1, than: $0) } }

    private func isBetter(_ pair: Pair, than other: Pair) -> Bool {
        pair.priority(isControlling, component) > other.priority(isControlling, component)
    }

    private func isSettled(at now: MediaTime) -> Bool { settling.map { now >= $0 } ?? false }

    private var selectedPair: Pair? { selected.flatMap(index(of:)).map { pairs[$0] } }

    /// Whether the way in use has not answered for longer than it is asked.
    private func isSilent(at now: MediaTime) -> Bool {
        selectedPair.map { now - $0.lastAnswer > Self.silenceLimit } ?? false
    }

    private func index(of route: Route) -> Int? { pairs.firstIndex { $0.route == route } }

    // MARK: What comes in

    mutating func add(_ candidates: [ICECandidate], at now: MediaTime) {
        guard !isEnded else { return }
        for candidate in candidates { add(candidate, by: Route(candidate.address), at: now) }
        guard let relayed else { return }
        for candidate in candidates where Route.leads(from: relayed, to: candidate.address) {
            add(candidate, by: Route(candidate.address, isRelayed: true), at: now)
        }
    }

    private mutating func add(_ candidate: ICECandidate, by route: Route, at now: MediaTime) {
        let isNew = index(of: route) == nil
        add(route, priority: candidate.priority)
        guard let index = index(of: route) else { return }
        // While a way is in use, nothing is checked of its own accord.
        if isNew ? selected != nil : pairs[index].state == .failed || pairs[index].state == .asked {
            checkBack(index, at: now)
        }
    }

    private mutating func add(_ route: Route, priority: UInt32) {
        guard pairs.count < (route.isRelayed ? Self.relayedLimit : Self.pairLimit), index(of: route) == nil else {
            return
        }
        pairs.append(Pair(route: route, remotePriority: priority))
    }

    mutating func take(_ datagram: [UInt8], by route: Route, at now: MediaTime) {
        guard let message = STUNMessage(parsing: datagram), message.method == .binding else { return }
        switch message.kind {
        case .request: takeCheck(message, by: route, at: now)
        case .success, .failure: takeAnswer(message, by: route, at: now)
        case .indication: break
        }
    }

    private mutating func takeCheck(_ check: STUNMessage, by route: Route, at now: MediaTime) {
        switch checks.read(check) {
        case nil: break
        case .refused(let refusal): leaving.append((refusal, route))
        case .asks where !settlesRoles(check): leaving.append((checks.refusal(of: check, 487, "Role Conflict"), route))
        case .asks(let priority, let nominates):
            leaving.append((checks.answer(to: check, from: route.peer), route))
            add(route, priority: priority)
            guard let index = index(of: route), !isEnded else { return }
            pairs[index].isKnown = true
            consider(index, isNominated: nominates && !isControlling, at: now)
        }
    }

    /// Makes of a check of the other side what follows from it: its way is taken, checked back, or neither.
    private mutating func consider(_ index: Int, isNominated: Bool, at now: MediaTime) {
        if isNominated { pairs[index].isNominated = true }
        let isFresh = pairs[index].state == .valid && now - pairs[index].lastAnswer <= Self.silenceLimit
        let isSilent = isSilent(at: now)
        if isFresh, isNominated || (isControlling && isSilent) { return select(index, at: now) }
        let isWanted = isNominated || isSilent || (selected == nil && pairs[index].state != .valid)
        if !isFresh, isWanted, pairs[index].route != selected { checkBack(index, at: now) }
    }

    /// Asks at all other addresses of the other side, since that in use does not answer any more.
    private mutating func lookElsewhere(at now: MediaTime) {
        for index in pairs.indices where pairs[index].route != selected { checkBack(index, at: now) }
    }

    /// Whether the other side has another role than this one, where need be since this one has changed its own.
    ///
    /// Source: RFC 8445, section 7.3.1.1.
    private mutating func settlesRoles(_ check: STUNMessage) -> Bool {
        let other = check.tieBreaker(isControlling ? .iceControlling : .iceControlled)
        guard let other else { return true }
        guard isControlling == (tieBreaker < other) else { return false }
        isControlling.toggle()
        return true
    }

    /// Asks whether the way that the other side has checked goes there, too, instead of what is asked already.
    ///
    /// Source: RFC 8445, section 7.3.1.4.
    private mutating func checkBack(_ index: Int, at now: MediaTime) {
        let route = pairs[index].route
        cease(by: route, at: now)
        pairs[index].state = .waiting
        if !triggered.contains(route) { triggered.append(route) }
    }

    /// Sends no check by `route` again; what was sent may still be answered.
    private mutating func cease(by route: Route, at now: MediaTime) {
        for index in questions.indices where questions[index].route == route && questions[index].sendsLeft > 0 {
            questions[index].sendsLeft = 0
            questions[index].time = now + Self.lateLimit
        }
    }

    private mutating func takeAnswer(_ answer: STUNMessage, by route: Route, at now: MediaTime) {
        guard let place = questions.firstIndex(where: { $0.transaction == answer.transaction }),
            answer.hasRightFingerprint != false, answer.isSigned(with: remoteKey),
            let index = index(of: questions[place].route)
        else { return }
        let question = questions.remove(at: place)
        guard route == question.route, answer.notUnderstood.isEmpty else { return fail(index, question, at: now) }
        guard answer.kind == .success else {
            return takeRefusal(answer.error?.code, of: question, index, at: now)
        }
        guard answer.address(.xorMappedAddress) != nil else { return fail(index, question, at: now) }
        (pairs[index].state, pairs[index].isKnown, pairs[index].lastAnswer) = (.valid, true, now)
        triggered.removeAll { $0 == question.route }
        (firstAnswer, nextConsent) = (firstAnswer ?? now, nextConsent ?? now + consentPause())
        let isChosen = isControlling ? question.purpose == .nomination : pairs[index].isNominated
        if isChosen || (isControlling && isSilent(at: now)) { select(index, at: now) }
    }

    private mutating func takeRefusal(_ code: Int?, of question: Question, _ index: Int, at now: MediaTime) {
        switch code {
        case 487:
            // Both had the same role. It asks again in the other one.
            if isControlling == question.isControlling {
                isControlling.toggle()
                tieBreaker = generator.next()
            }
            if pairs[index].state != .valid { checkBack(index, at: now) }
        case 403 where question.purpose == .consent && question.route == destination: isRefused = true
        default: fail(index, question, at: now)
        }
    }

    private mutating func fail(_ index: Int, _ question: Question, at now: MediaTime) {
        guard question.purpose != .consent, pairs[index].route != selected else { return }
        if !questions.contains(where: { $0.route == question.route }), !triggered.contains(question.route) {
            pairs[index].state = .failed
        }
    }

    /// Takes a way for the one in use.
    ///
    /// Of several that are nominated the best counts: old peers nominate each way that they find. Later, or when the way in use
    /// falls silent, the other side has another one in mind.
    private mutating func select(_ index: Int, at now: MediaTime) {
        let pair = pairs[index]
        pairs[index].isNominated = false
        if let former = selectedPair {
            guard former.route != pair.route else { return }
            guard isSettled(at: now) || isSilent(at: now) || isBetter(pair, than: former) else { return }
        }
        (selected, selection, settling) = (pair.route, now, settling ?? now + Self.settlingTime)
        nextConsent = now + consentPause()
        triggered.removeAll { route in !pairs.contains { $0.route == route && $0.isNominated } }
        for other in pairs where other.route != pair.route { cease(by: other.route, at: now) }
    }

    // MARK: What goes out

    mutating func advance(to now: MediaTime) {
        if let end, now >= end {
            // These names and passwords are good for nothing any more.
            (isEnded, questions, triggered, nextConsent) = (true, [], [], nil)
        }
        guard !isEnded else { return }
        sendAgain(at: now)
        if let nextConsent, now >= nextConsent {
            if let destination { ask(destination, for: .consent, at: now) }
            self.nextConsent = now + consentPause()
            if isSilent(at: now) { lookElsewhere(at: now) }
        }
        while now >= nextCheck, let route = nextToAsk, let index = index(of: route) {
            triggered.removeAll { $0 == route }
            pairs[index].state = .asked
            ask(route, for: .check, at: now)
            nextCheck = now + Self.pace
        }
        giveUpNomination(at: now)
        if let nomination, now >= nomination.time { ask(nomination.route, for: .nomination, at: now) }
    }

    mutating func takeDatagrams() -> [(bytes: [UInt8], route: Route)] {
        defer { leaving = [] }
        return leaving
    }

    /// The way that is checked next: one that the other side has checked, or the best that nobody has.
    private var nextToAsk: Route? {
        if let route = triggered.first { return route }
        guard selected == nil, !isEnded else { return nil }
        return best(pairs.filter { $0.state == .waiting })?.route
    }

    /// What is nominated, and when: the best way once none that is better may still be found, but soon after the first.
    ///
    /// Source: RFC 8445, section 8.1.1.
    private var nomination: (route: Route, time: MediaTime)? {
        guard isControlling, selected == nil, !isEnded, let firstAnswer, let best = bestValid,
            !questions.contains(where: { $0.purpose == .nomination })
        else { return nil }
        let mayBeBettered = pairs.contains {
            isBetter($0, than: best) && ($0.state == .waiting || $0.state == .asked)
        }
        let patience = best.goesByRelay ? Self.relayedPatience : Self.patience
        return (best.route, mayBeBettered ? firstAnswer + patience : firstAnswer)
    }

    /// Nominates another way where the first is not answered any more.
    private mutating func giveUpNomination(at now: MediaTime) {
        guard
            let place = questions.firstIndex(where: { $0.purpose == .nomination && now - $0.begin >= Self.settlingTime }
            ),
            pairs.contains(where: { $0.state == .valid && $0.route != questions[place].route })
        else { return }
        let question = questions.remove(at: place)
        if let index = index(of: question.route) { pairs[index].state = .failed }
    }

    private mutating func sendAgain(at now: MediaTime) {
        var lost: [Question] = []
        for index in questions.indices where questions[index].time <= now {
            guard questions[index].sendsLeft > 0 else {
                lost.append(questions[index])
                continue
            }
            leaving.append((questions[index].bytes, questions[index].route))
            questions[index].sendsLeft -= 1
            questions[index].pause *= 2
            questions[index].time = now + (questions[index].sendsLeft > 0 ? questions[index].pause : Self.lastPause)
        }
        for question in lost {
            questions.removeAll { $0.transaction == question.transaction }
            if let index = index(of: question.route), pairs[index].state == .asked || question.purpose == .nomination {
                fail(index, question, at: now)
            }
        }
    }

    private mutating func ask(_ route: Route, for purpose: Question.Purpose, at now: MediaTime) {
        let transaction = STUNMessage.Transaction(high: tag, low: generator.next())
        var writer = STUNWriter(.request, .binding, transaction)
        writer.append(.username, session.remote.userFragment + ":" + session.local.userFragment)
        writer.append(.priority, number: component.priority(.peerReflexive, isRelayed: route.isRelayed))
        writer.append(isControlling ? .iceControlling : .iceControlled, number: tieBreaker)
        // Sides that only answer may want it in each request.
        if isControlling, purpose != .check { writer.append(.useCandidate, []) }
        writer.sign(with: remoteKey)
        let bytes = writer.finish(withFingerprint: true)
        leaving.append((bytes, route))
        let busyCount = pairs.count { $0.state == .waiting || $0.state == .asked }
        let pause = max(Self.leastPause, Self.pace * busyCount)
        let isOnce = purpose == .consent
        questions.append(
            Question(
                transaction: transaction,
                route: route,
                purpose: purpose,
                isControlling: isControlling,
                bytes: bytes,
                begin: now,
                time: now + (isOnce ? Self.consentLimit : pause),
                pause: pause,
                sendsLeft: isOnce ? 0 : Self.sendLimit - 1
            )
        )
    }

    /// 4 to 6 s.
    private mutating func consentPause() -> Duration { .milliseconds(Int.random(in: 4000...6000, using: &generator)) }
}
