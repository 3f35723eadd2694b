internal import CallBasics

/// Names a subscription of a user agent; after its end the name stays unused.
package struct SubscriptionHandle: SlotName {
    package let slot: Int
    package let serial: UInt64

    package init(slot: Int, serial: UInt64) { (self.slot, self.serial) = (slot, serial) }
}

/// What somebody wants to be told of.
package struct SubscriptionWishes: Sendable {
    /// Whose state.
    package var uri: SIPURI
    /// The event package, such as `message-summary`, with an `id` where there are several of one.
    package var event: String
    /// The types of body that are understood; others are answered 415.
    package var accept: [String]
    /// How long each subscription is to last, in seconds; 0 asks for the state once.
    package var expires: UInt32 = 3600
    package var account: AccountHandle?

    package init(_ uri: SIPURI, event: String, accept: [String]) {
        (self.uri, self.event, self.accept) = (uri, event, accept)
    }
}

/// What becomes of a subscription.
package enum SubscriptionEvent: Sendable {
    /// Somebody has yet to allow it.
    case pending
    /// It is allowed, for so many seconds.
    case active(UInt32?)
    /// The state, in a NOTIFY that has been answered 200.
    case state(SIPMessage)
    /// The other side has ended it, or did not answer; it is tried again after that time.
    case interrupted(reason: String?, retry: Duration)
    case ended(SubscriptionEnd)
}

/// Why a subscription is over.
package enum SubscriptionEnd: Hashable, Sendable {
    /// This side wanted it so, or asked for the state once.
    case unsubscribed
    /// A SUBSCRIBE was refused.
    case refused(Int)
    /// The other side has ended it for good, with this reason, such as `rejected` or `noresource`.
    case terminated(reason: String)
    /// It cannot be written, or its URI leads nowhere.
    case failed(RequestFailure)
}

/// One subscription with all that it waits for.
///
///     SUBSCRIBE ──► waiting ──NOTIFY──► pending, active ──NOTIFY terminated, Expires 0──► gone
///                     ▲ └─timer N──┐        │ 481, deactivated, timeout
///                     └── later ───┴────────┘
///
/// Source: RFC 6665, section 4.1
struct Subscription: Sendable {
    /// How often in a row a longer time is asked for because the other side wants it so.
    static let longerLimit = 3

    let wishes: SubscriptionWishes
    /// The chat room that it is about; then that hears of it.
    var room: RoomHandle?
    var dialog: Dialog?
    /// The own tag and the Call-ID: whoever answers with them means this one.
    var key: ByteKey?
    /// The SUBSCRIBE that is on its way.
    var errand: ErrandID?
    /// The number of the SUBSCRIBE sent last.
    var number: UInt32 = 0
    /// What is asked for, more than is wished where the other side wants that.
    var expires: UInt32
    /// Whether it is to end.
    var isLeaving = false
    /// Timer N: until when a NOTIFY has to come.
    var notifyEnd: MediaTime?
    var refreshAt: MediaTime?
    var expiresAt: MediaTime?
    /// When it is made anew.
    var retryAt: MediaTime?
    /// How often in a row it was made in vain.
    var failureCount = 0
    /// How often in a row a longer time was asked for.
    var longerCount = 0

    init(_ wishes: SubscriptionWishes) {
        self.wishes = wishes
        expires = wishes.expires
        isLeaving = wishes.expires == 0
    }

    var deadline: MediaTime? {
        earlier(earlier(notifyEnd, refreshAt), earlier(expiresAt, retryAt))
    }

    /// Whether a NOTIFY is of the same package and id.
    func isNamed(_ event: EventHeader) -> Bool {
        guard let own = try? EventHeader(parsing: Bytes(wishes.event)) else { return false }
        return own.package == event.package && own.id == event.id
    }

    /// It lasts so many seconds from now on; it is refreshed when 85 % of them are over.
    mutating func extend(_ seconds: UInt32, at now: MediaTime) {
        expiresAt = now + .seconds(Int64(seconds))
        refreshAt = isLeaving ? nil : now + max(.seconds(Int64(seconds)) * 85 / 100, .seconds(1))
    }

    /// Forgets what the other side knew, to be made anew after a while.
    mutating func interrupt(until retry: MediaTime?) {
        (dialog, key, errand) = (nil, nil, nil)
        (notifyEnd, refreshAt, expiresAt, retryAt) = (nil, nil, nil, retry)
    }

    static func key(callID: Bytes, tag: Bytes) -> ByteKey { ByteKey(bytes: Array(callID) + [0] + tag) }

    /// How long to wait before it is made anew, after so many failures: 1 s, and twice as long each time, up to 30 minutes.
    var pause: Duration { min(.seconds(1 << Int64(min(failureCount, 11))), .seconds(1800)) }

    /// What the reason of a NOTIFY that ends it means; nil when it is over for good.
    ///
    /// Source: RFC 6665, section 4.1.3
    func pause(after state: SubscriptionState) -> Duration? {
        let told = state.retryAfter.map { Duration.seconds(Int64($0)) }
        guard let reason = state.reason else { return max(told ?? pause, pause) }
        for word in ["rejected", "noresource", "invariant"] as [StaticString] where reason.isNamed(word) { return nil }
        // Deactivated and timeout say at once; who says it each time is not asked at once each time.
        return max(told ?? .zero, pause)
    }
}
