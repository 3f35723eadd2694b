/// What a registrar and proxy serves, and how.
package struct ServerConfiguration: Sendable {
    /// Where a request goes to whose user has several bindings.
    package enum Forking: String, Hashable, Sendable, CaseIterable {
        /// To all of them at once.
        case all
        /// To the one that is liked best, of those the newest.
        case first
    }

    /// The host of the addresses that it serves, and the realm of its challenges.
    package var domain: String
    /// Its users by the user part of their addresses; nil when everybody is one, without a password.
    package var users: [String: ServerUser]?
    /// What it challenges with, the best one first.
    package var algorithms = [DigestAlgorithm(.sha256), DigestAlgorithm(.md5)]
    /// Longer bindings are cut to this, shorter ones refused by 423; in seconds.
    package var expires: ClosedRange<UInt32> = 1...3600
    package var forking = Forking.all
    /// Whether it stays on the way of calls, by Record-Route.
    package var staysOnWay = true
    /// What it does wrong on purpose, the first that fits.
    package var script: [ServerRule] = []
    /// The value of Server; nil says nothing of the program.
    package var product: String?
    /// Bindings of one user, and of all; those beyond are refused.
    package var bindingsPerUser = 10
    package var bindingCount = 65_536
    /// How long an INVITE may wait for a final response after each provisional one: timer C.
    ///
    /// Source: RFC 3261, section 16.6, item 11
    package var ringPatience = Duration.seconds(185)
    /// What it does about phones that sleep; nil passes over what their Contacts say of push.
    package var push: PushSettings?
    /// Texts that are kept for one user who is away, and for all; those beyond are refused.
    package var keptTextsPerUser = 100
    package var keptTextCount = 10_000
    /// The bytes of all texts that are kept.
    package var keptTextBytes = 16 << 20
    /// How long a text is kept.
    package var textPatience = Duration.seconds(72 * 3600)

    package init(domain: String) { self.domain = domain }
}

/// How a server has phones woken that registered with push parameters.
///
/// Source: RFC 8599, section 5
package struct PushSettings: Sendable {
    /// The services that it can send by; a phone of another one is answered 555.
    package var providers: Set<String> = ["apns", "apns.dev", "fcm"]
    /// How long a call waits for the phone to register anew.
    package var patience = Duration.seconds(30)
    /// How long before its end a phone that wakes itself is to refresh its binding, in seconds.
    package var refreshSeconds: UInt32 = 120

    package init() {}
}

/// Somebody whom a server knows.
package struct ServerUser: Sendable {
    /// What proves who it is; nil when nothing is asked for.
    package var credentials: Credentials?

    package init(_ credentials: Credentials?) { self.credentials = credentials }
}

/// What a server does with requests to try how others stand it.
public struct ServerRule: Hashable, Sendable {
    /// What happens to a message.
    public enum Action: Hashable, Sendable {
        /// Takes the message later.
        case delay(Duration)
        /// Loses the message, each repeat counted.
        case drop
        /// Passes the request on twice, the same bytes.
        case duplicate
        /// Answers the request itself.
        case answer(Int)
        /// Closes the connection that the message came by; by UDP it is lost.
        case cut
    }

    /// The method that it is for; nil for all.
    package var method: SIPMethod?
    /// The user that To names; nil for all.
    package var user: String?
    package var action: Action
    /// How often it is followed yet; nil for ever.
    package var times: Int?

    /// A rule.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - method: To which messages; nil for all.
    ///   - user: To those whose To names this user; nil for all.
    ///   - times: How often; nil for ever.
    public init(_ action: Action, method: SIPMethod? = nil, user: String? = nil, times: Int? = nil) {
        (self.action, self.method, self.user, self.times) = (action, method, user, times)
    }
}

/// What a server tells its user.
package enum ServerEvent: Hashable, Sendable {
    /// A user is at a contact, told without what wakes it, for some seconds from now; 0 when not any more.
    case binding(user: String, contact: String, seconds: UInt32, push: PushParameters? = nil)
    /// A phone is to be woken.
    case push(ServerPush)
    /// A call waits for a phone that was woken; or goes on, or waits no more, as the phone did or did not come.
    case parked(user: String, callID: String)
    case released(user: String, callID: String)
    case gaveUp(user: String, callID: String)
    /// A text is kept for a user who is away; or was taken from here.
    case kept(user: String, callID: String)
    case fetched(user: String, callID: String)
}

/// What is to be sent to the push service of a phone.
package struct ServerPush: Hashable, Sendable {
    /// What the phone is woken for.
    package enum Kind: String, Hashable, Sendable { case voip, message }

    package let kind: Kind
    package let user: String
    package let callID: String
    /// Who calls, or writes.
    package let from: String
    /// The Contact of the phone, with its push parameters; the tokens in it are secret.
    package let contact: Secret

    package var method: String { kind == .voip ? "INVITE" : "MESSAGE" }
}

/// How many entries each table of a server has; all are 0 when all is over, but bindings and answers of names that are kept.
package struct ServerCounts: Hashable, Sendable {
    package var transactions = TransactionCounts()
    package var flows = FlowCounts()
    package var lookups = ResolverCounts()
    package var bindings = 0
    /// Requests that were passed on and wait for their answers.
    package var forwards = 0
    package var branches = 0
    /// Names of transactions and lookups that somebody waits for.
    package var names = 0
    /// Messages that a rule holds back.
    package var delayed = 0
    /// Ways of calls that wait for a phone to wake.
    package var parked = 0
    /// Texts for users who are away.
    package var texts = 0
    /// What was not polled.
    package var outputs = 0
}
