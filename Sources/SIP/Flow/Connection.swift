internal import CallBasics

/// One connection, or a UDP flow that is kept alive, with all that it waits for.
struct Connection: Sendable {
    enum State: Hashable, Sendable {
        case opening
        case open
        /// Nothing is read any more; it closes after the answer, or, where several are due, once there was time for them.
        case ending(closesWithAnswer: Bool)
    }

    let flow: Flow
    /// What it was opened for; nil when it was accepted.
    let target: Target?
    private let timers: FlowTimers
    private(set) var state: State
    private var stateStart: MediaTime
    private var lastUse: MediaTime
    private var framer = StreamFramer()
    /// Since when a message is not whole.
    private var messageStart: MediaTime?
    private var hasMessage = false
    /// Whether a line end came that may be the first half of a ping.
    private var hasHalfPing = false
    /// Until when something has to come, since a request was not answered; it serves no new ones meanwhile.
    private var suspicionEnd: MediaTime?
    /// Whether requests to its target leave by it: not once one was unanswered, until a message comes; who answers pings may not
    /// answer those.
    private(set) var servesTarget = true
    private(set) var keepAlive: KeepAlive?
    private var hasPonged = false
    /// Whether a ping by it was answered before it was agreed anew how it is kept.
    private var wasProven = false
    /// What leaves once it is open.
    private(set) var queue: [[UInt8]] = []
    private var queuedByteCount = 0
    /// The UDP targets whose long requests it was opened for.
    var datagramTargets: Set<Target> = []
    /// Where it begins, as the other side sees that.
    var ownEnd: SocketAddress?

    init(_ flow: Flow, target: Target?, state: State, _ timers: FlowTimers, at now: MediaTime) {
        (self.flow, self.target, self.state, self.timers) = (flow, target, state, timers)
        (stateStart, lastUse) = (now, now)
    }

    var isAccepted: Bool { target == nil && flow.transport != .udp }
    var waitingByteCount: Int { framer.waitingByteCount }
    /// Whether new requests may leave by it.
    var isUsable: Bool { !isEnding && suspicionEnd == nil }
    /// Whether a ping by it was answered.
    var isProven: Bool { wasProven || keepAlive?.isProven == true }

    private var isEnding: Bool { if case .ending = state { true } else { false } }

    /// When something is due; nil when nothing is.
    var deadline: MediaTime? { earlier(end?.time, state == .open ? keepAlive?.pingTime : nil) }

    /// When it ends if nothing happens, and why.
    var end: (time: MediaTime, cause: FlowEnd)? {
        guard flow.transport != .udp else { return nil }
        switch state {
        case .opening: return (stateStart + timers.opening, .unopened)
        case .ending: return (stateStart + timers.answer, .faulty)
        case .open: break
        }
        var ends: [(time: MediaTime, cause: FlowEnd)] = []
        if let messageStart { ends.append((messageStart + timers.message, .slow)) }
        if let suspicionEnd { ends.append((suspicionEnd, .unanswered)) }
        if let time = keepAlive?.end { ends.append((time, .noPong)) }
        if isAccepted, !hasMessage { ends.append((stateStart + timers.firstMessage, .idle)) }
        if keepAlive == nil { ends.append((lastUse + timers.idle, .idle)) }
        return ends.min { $0.time < $1.time }
    }

    /// It is open; what waited for that leaves now.
    mutating func open(at now: MediaTime) -> [[UInt8]] {
        (state, stateStart, lastUse) = (.open, now, now)
        defer { (queue, queuedByteCount) = ([], 0) }
        return queue
    }

    /// Keeps a message until it is open; false when too much waits.
    mutating func enqueue(_ bytes: [UInt8], _ limits: FlowLimits) -> Bool {
        guard queue.count < limits.queuedMessages, queuedByteCount + bytes.count <= limits.queuedBytes else {
            return false
        }
        queue.append(bytes)
        queuedByteCount += bytes.count
        return true
    }

    mutating func noteUse(at now: MediaTime) { lastUse = now }

    /// A request was not answered: no new one leaves by it until something comes, and it closes where nothing does.
    mutating func suspect(at now: MediaTime) {
        if suspicionEnd == nil { suspicionEnd = now + timers.suspicion }
        servesTarget = false
    }

    mutating func keep(_ agreement: KeepAlive.Agreement, _ generator: inout SeededGenerator, at now: MediaTime) {
        hasPonged = hasPonged || keepAlive?.expectsAnswers == true
        wasProven = isProven
        keepAlive = KeepAlive(
            agreement,
            isReliable: flow.transport.isReliable,
            hasAnswered: hasPonged,
            timers,
            &generator,
            at: now
        )
    }

    mutating func release(at now: MediaTime) { (keepAlive, lastUse) = (nil, now) }

    mutating func ping(_ generator: inout SeededGenerator, at now: MediaTime) -> [UInt8]? {
        guard state == .open, let bytes = keepAlive?.ping(&generator, at: now) else { return nil }
        hasHalfPing = false
        return bytes
    }

    /// What came of bytes.
    struct Reading {
        var messages: [SIPMessage] = []
        var hasPing = false
        /// Whether it cannot go on, and nobody waits for an answer.
        var isFaulty = false
    }

    mutating func read(_ bytes: [UInt8], at now: MediaTime) -> Reading {
        var reading = Reading()
        guard state == .open, !bytes.isEmpty else { return reading }
        suspicionEnd = nil
        framer.append(bytes)
        var lineEndCount = 0
        while let element = framer.next() {
            messageStart = nil
            switch element {
            case .message(let message):
                (hasMessage, lastUse, hasHalfPing, servesTarget) = (true, now, false, true)
                reading.messages.append(message)
            case .pong, .ping: lineEndCount += 1
            case .failure(_, let message):
                let answered = message.flatMap { $0.isAnswerable ? $0 : nil }
                // What came whole before it is answered, too.
                guard answered != nil || reading.messages.contains(where: \.isAnswerable) else {
                    reading.isFaulty = true
                    break
                }
                (state, stateStart) = (.ending(closesWithAnswer: reading.messages.isEmpty), now)
                if let answered { reading.messages.append(answered) }
            }
        }
        reading.hasPing = hasPing(in: lineEndCount)
        messageStart = framer.waitingByteCount > 0 ? messageStart ?? now : nil
        return reading
    }

    /// Whether line ends hold a ping, of two; one that is left over is the pong that is waited for, else half a ping.
    ///
    /// Two pongs that follow each other without a message between them are no ping, whatever time passed.
    private mutating func hasPing(in lineEndCount: Int) -> Bool {
        guard lineEndCount > 0 else { return false }
        let count = lineEndCount + (hasHalfPing ? 1 : 0)
        hasHalfPing = false
        if count % 2 == 1 {
            if keepAlive?.isWaiting == true { keepAlive?.receivePong() } else { hasHalfPing = true }
        }
        return count >= 2
    }
}
