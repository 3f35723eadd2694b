package import CallBasics

/// Ends sessions of which nobody knows any more: one side refreshes in time, the other ends the session when it does not.
///
/// Source: RFC 4028
package struct SessionTimer: Hashable, Sendable {
    /// What this side wants.
    package struct Wishes: Hashable, Sendable {
        /// How long a session lasts without a refresh, in seconds; nil leaves that to the peer.
        package var seconds: UInt32?
        /// The least that is taken, in seconds.
        package var minimum: UInt32

        /// A minimum below 90 s is a mistake of the caller (RFC 4028, section 4).
        package init(seconds: UInt32? = nil, minimum: UInt32 = 90) {
            precondition(minimum >= 90)
            (self.seconds, self.minimum) = (seconds, minimum)
        }
    }

    /// What is due.
    package enum Action: Hashable, Sendable {
        /// UPDATE, where the peer takes it, or re-INVITE, with the same description.
        case refresh
        /// BYE: the session was not refreshed in time.
        case end
    }

    /// How long the session lasts from each refresh on, in seconds.
    package let seconds: UInt32
    /// Whether this side refreshes.
    package let isRefresher: Bool
    /// When this side refreshes; nil once it has begun to, or when the other does.
    private var refreshAt: MediaTime?
    private var endAt: MediaTime?

    private init(seconds: UInt32, isRefresher: Bool, at now: MediaTime) {
        (self.seconds, self.isRefresher) = (seconds, isRefresher)
        restart(at: now)
    }

    package var deadline: MediaTime? { earlier(refreshAt, endAt) }
    private var interval: Duration { .seconds(seconds) }

    /// The session was refreshed at `now`, by either side.
    package mutating func restart(at now: MediaTime) {
        refreshAt = isRefresher ? now + interval / 2 : nil
        endAt = now + interval - min(.seconds(32), interval / 3)
    }

    /// Has a refresh that was refused for the moment tried again, while the session lasts: after `wait`, else half of what is left.
    ///
    /// It is not before an eighth of that; a `wait` beyond the end of the session leaves it to end.
    /// Source: RFC 4028, section 10
    mutating func postpone(by wait: Duration?, at now: MediaTime) {
        guard isRefresher, let endAt else { return }
        let left = endAt - now
        let pause = max(wait ?? left / 2, left / 8, .seconds(5))
        if pause < left { refreshAt = now + pause }
    }

    /// Does what is due; before `deadline` that is nothing.
    ///
    /// A refresh that is to be tried again, as after 491, is the caller's, until the session ends.
    /// Source: RFC 4028, section 10
    package mutating func handleTimeout(at now: MediaTime) -> Action? {
        if let endAt, now >= endAt {
            (refreshAt, self.endAt) = (nil, nil)
            return .end
        }
        guard let refreshAt, now >= refreshAt else { return nil }
        self.refreshAt = nil
        return .refresh
    }

    // MARK: The side that asks

    /// Asks for a timer in an INVITE or UPDATE, a refresh among them.
    ///
    /// `current` is the timer that runs, of which a refresh says who refreshes.
    /// Throws: `invalidCharacter`, never in fact
    /// Source: RFC 4028, section 7.1 and 7.4
    package static func ask(in request: inout SIPMessage, _ wishes: Wishes, current: SessionTimer?) throws(SIPError) {
        guard let seconds = current?.seconds ?? wishes.seconds else { return }
        let refresher: SessionInterval.Refresher? = current.map { $0.isRefresher ? .uac : .uas }
        let interval = SessionInterval(seconds: max(seconds, wishes.minimum), refresher: refresher)
        try request.set(.sessionExpires, to: interval)
        if wishes.minimum > 90 { try request.set(.minSE, to: SessionInterval(seconds: wishes.minimum)) }
    }

    /// The wishes that a 422 asks for, to be tried once; nil when it names no minimum that is longer.
    ///
    /// Source: RFC 4028, section 7.3
    package static func wishes(after refusal: SIPMessage, to wishes: Wishes) -> Wishes? {
        guard refusal.statusCode == 422, let minimum = try? refusal.value(.minSE, as: SessionInterval.self)?.seconds,
            minimum > wishes.minimum
        else { return nil }
        var changed = wishes
        changed.minimum = minimum
        changed.seconds = max(wishes.seconds ?? minimum, minimum)
        return changed
    }

    /// The timer of a 2xx to this side's request; nil when it has none: then no timer runs any more.
    ///
    /// Throws: `badRequest` when Session-Expires breaks the grammar
    /// Source: RFC 4028, section 7.2
    package init?(client response: SIPMessage, at now: MediaTime) throws(SIPError) {
        guard let told = try response.value(.sessionExpires, as: SessionInterval.self) else { return nil }
        // Shorter than may be, nobody could keep it.
        let seconds = max(told.seconds, 90)
        self.init(seconds: seconds, isRefresher: told.refresher != .uas, at: now)
    }

    // MARK: The side that answers

    /// Whether a request asks for a shorter session than is taken: 422 with this Min-SE.
    ///
    /// Throws: `badRequest` when Session-Expires breaks the grammar
    /// Source: RFC 4028, section 9
    package static func refusal(of request: SIPMessage, _ wishes: Wishes) throws(SIPError) -> SessionInterval? {
        guard let asked = try request.value(.sessionExpires, as: SessionInterval.self), asked.seconds < wishes.minimum,
            try supports(request)
        else { return nil }
        return SessionInterval(seconds: wishes.minimum)
    }

    /// Answers what a request asks for in its 2xx, and gives the timer that runs then; nil when none does.
    ///
    /// Throws: `badRequest` when Session-Expires or Min-SE breaks the grammar
    /// Source: RFC 4028, section 9 and table 2
    package init?(
        server request: SIPMessage,
        in response: inout SIPMessage,
        _ wishes: Wishes,
        at now: MediaTime
    ) throws(SIPError) {
        let asked = try request.value(.sessionExpires, as: SessionInterval.self)
        let least = max(try request.value(.minSE, as: SessionInterval.self)?.seconds ?? 90, wishes.minimum)
        let isSupported = try Self.supports(request)
        guard let longest = asked?.seconds ?? wishes.seconds else { return nil }
        // It may be made shorter than was asked for, but never longer.
        let seconds = asked == nil ? max(longest, least) : max(min(longest, wishes.seconds ?? longest), least)
        // Who does not know the extension cannot refresh.
        let refresher = isSupported ? asked?.refresher ?? .uac : .uas
        try response.set(.sessionExpires, to: SessionInterval(seconds: seconds, refresher: refresher))
        // It is to refresh, or to end the session when nobody does.
        if isSupported { try response.append(.require, Bytes("timer")) }
        self.init(seconds: seconds, isRefresher: refresher == .uas, at: now)
    }

    private static func supports(_ request: SIPMessage) throws(SIPError) -> Bool {
        for name in [HeaderName.supported, .require] {
            if try request.tokens(of: name).contains(where: { $0.lowercased() == "timer" }) { return true }
        }
        return false
    }
}
