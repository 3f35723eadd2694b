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

    package init(domain: String) { self.domain = domain }
}

/// Somebody whom a server knows.
package struct ServerUser: Sendable {
    /// What proves who it is; nil when nothing is asked for.
    package var credentials: Credentials?

    package init(_ credentials: Credentials?) { self.credentials = credentials }
}

/// What a server does with requests to try how others stand it.
package struct ServerRule: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
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

    package init(_ action: Action, method: SIPMethod? = nil, user: String? = nil, times: Int? = nil) {
        (self.action, self.method, self.user, self.times) = (action, method, user, times)
    }
}

/// What a server tells its user.
package enum ServerEvent: Hashable, Sendable {
    /// A user is at a contact for some seconds from now; 0 when not any more.
    case binding(user: String, contact: String, seconds: UInt32)
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
    /// What was not polled.
    package var outputs = 0
}
