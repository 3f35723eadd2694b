internal import CallBasics

/// How often a request was sent to one server with new credentials; one begins with each sending that answers no challenge.
package struct DigestAttempt: Sendable {
    /// How many challenges to the request were answered.
    package fileprivate(set) var roundCount = 0
    fileprivate var answered: Set<DigestProtection.Scope> = []

    package init() {}
}

/// The digest authentication of one account as a client: challenges go in, requests get their credentials.
///
///     request ──authorize──► with what is known ──► 401 or 407 ──answer──► with what was asked ──► 2xx ──handleSuccess
///
/// It keeps the last nonce of each realm, of servers and of proxies apart, so that later requests carry credentials at
/// once. A description shows names and realms, nothing that proves a password.
/// Thread: control; it allocates. A copy is a snapshot: two copies that both send would use one count twice.
/// Source: RFC 3261, section 22; RFC 7616; RFC 8760, section 2.4
package struct DigestClient: Sendable {
    /// What a challenge comes to.
    package enum Answer: Hashable, Sendable {
        /// The request has its credentials: send it with a new branch, and the next CSeq.
        case retry
        case refused(Refusal)
    }

    /// Why a request is not to be sent again.
    package enum Refusal: Hashable, Sendable {
        /// The realm knows another password; ask the user.
        case wrongPassword(realm: String)
        /// Nothing is known for the realm, or nothing for the algorithms that it takes.
        case noCredentials(realm: String)
        /// No challenge is a digest that is understood and allowed.
        case notUnderstood
        /// The request was challenged again and again.
        case tooManyRounds
    }

    /// Of all, the first that fits a realm is taken.
    ///
    /// A change forgets all nonces.
    package var credentials: [Credentials] { didSet { protections = [] } }
    /// Whether challenges with MD5 are passed over.
    package var refusesMD5: Bool
    /// The one that was challenged last stands at the end.
    var protections: [DigestProtection] = []

    package init(credentials: [Credentials], refusesMD5: Bool = false) {
        (self.credentials, self.refusesMD5) = (credentials, refusesMD5)
    }

    /// How many realms are remembered, those of servers and of proxies counted apart.
    package var realmCount: Int { protections.count }

    /// Gives a new request the credentials that it will be asked for; ACK and CANCEL get none.
    ///
    /// The Request-URI, the method and the body must not change afterwards.
    /// Throws: `badRequest` when the request has no URI, `invalidCharacter` when a user's name would end its line
    package mutating func authorize(
        _ request: inout SIPMessage,
        using generator: inout some RandomNumberGenerator
    ) throws(SIPError) {
        guard request.method != .ack, request.method != .cancel else { return }
        let host = try request.requestURI().hostBytes
        try write(protections.filter { $0.serves(host) }.map(\.scope), to: &request, using: &generator)
    }

    /// Answers a 401 or 407 to `request`: all who ask in it, together, and those whose credentials it had.
    ///
    /// CSeq and Via are the caller's to change.
    /// Throws: as `authorize`
    package mutating func answer(
        _ response: SIPMessage,
        to request: inout SIPMessage,
        _ attempt: inout DigestAttempt,
        using generator: inout some RandomNumberGenerator
    ) throws(SIPError) -> Answer {
        guard attempt.roundCount < DigestLimits.roundCount else { return .refused(.tooManyRounds) }
        let (chosen, refusal) = choose(of: response)
        guard !chosen.isEmpty else { return .refused(refusal) }
        let sent = Self.nonces(of: request)
        for item in chosen {
            guard let nonce = sent[item.scope] else { continue }
            let isFresh = attempt.answered.contains(item.scope)
            if item.challenge.isStale, item.challenge.nonce != nonce { continue }
            guard item.challenge.nonce == nonce || isFresh else { continue }
            protections.removeAll { $0.scope == item.scope }
            return .refused(
                item.challenge.isStale ? .tooManyRounds : .wrongPassword(realm: item.scope.realm.text)
            )
        }
        let host = try request.requestURI().hostBytes.detached
        for item in chosen { remember(item, challengedAt: host) }
        attempt.roundCount += 1
        attempt.answered.formUnion(chosen.map(\.scope))
        let scopes = protections.map(\.scope).filter { scope in
            sent[scope] != nil || chosen.contains { $0.scope == scope }
        }
        try write(scopes, to: &request, using: &generator)
        return .retry
    }

    /// Takes the next nonces from the response to a request that was let in.
    ///
    /// Source: RFC 7616, section 3.5; RFC 7615
    package mutating func handleSuccess(_ response: SIPMessage, to request: SIPMessage) {
        let sent = Self.nonces(of: request)
        for kind in DigestKind.allCases {
            guard let text = response.values(named: kind.infoHeader).first,
                let next = (try? AuthenticationValue(parsingInfo: Bytes(text)))?.quoted("nextnonce")
            else { continue }
            // The header names no realm: it is clear whose it is only when one was answered.
            let scopes = sent.keys.filter { $0.kind == kind }
            guard scopes.count == 1, let place = protections.firstIndex(where: { $0.scope == scopes[0] }),
                protections[place].nonce == sent[scopes[0]]
            else { continue }
            protections[place].advance(to: next)
        }
    }

    /// Gives the ACK to a 2xx the credentials of its INVITE (RFC 3261, section 13.2.2.4 and 22.1).
    ///
    /// Throws: `invalidCharacter` when the INVITE holds what would end a line
    package static func copyCredentials(of invite: SIPMessage, to ack: inout SIPMessage) throws(SIPError) {
        for kind in DigestKind.allCases {
            ack.remove(kind.credentialsHeader)
            for value in invite.values(of: kind.credentialsHeader) { try ack.append(kind.credentialsHeader, value) }
        }
    }

    private struct Choice {
        var scope: DigestProtection.Scope
        var challenge: DigestChallenge
        var credentialsPlace: Int
    }

    /// For each realm the topmost challenge that can be answered; the refusal is for when there is none.
    private func choose(of response: SIPMessage) -> ([Choice], Refusal) {
        var (choices, refusal): ([Choice], Refusal) = ([], .notUnderstood)
        for kind in DigestKind.allCases {
            for value in response.values(of: kind.challengeHeader).prefix(DigestLimits.challengeCount) {
                guard let challenge = (try? AuthenticationValue(parsing: value)).flatMap({ DigestChallenge($0) }),
                    !refusesMD5 || challenge.algorithm.hash != .md5
                else { continue }
                let scope = DigestProtection.Scope(kind: kind, realm: challenge.realm)
                guard !choices.contains(where: { $0.scope == scope }) else { continue }
                let place = credentials.firstIndex {
                    $0.ha1(realm: scope.realm, hash: challenge.algorithm.hash) != nil
                }
                if let place {
                    choices.append(Choice(scope: scope, challenge: challenge, credentialsPlace: place))
                } else if refusal == .notUnderstood {
                    refusal = .noCredentials(realm: scope.realm.text)
                }
            }
        }
        return (Array(choices.prefix(DigestLimits.realmCount)), refusal)
    }

    private mutating func remember(_ item: Choice, challengedAt host: Bytes) {
        var protection = DigestProtection(item.scope.kind, item.challenge, credentialsPlace: item.credentialsPlace)
        protection.follow(protections.first { $0.scope == item.scope }, challengedAt: host)
        protections.removeAll { $0.scope == item.scope }
        protections.append(protection)
        protections.removeFirst(max(protections.count - DigestLimits.realmCount, 0))
    }

    private mutating func write(
        _ scopes: [DigestProtection.Scope],
        to request: inout SIPMessage,
        using generator: inout some RandomNumberGenerator
    ) throws(SIPError) {
        var authorized = request
        for kind in DigestKind.allCases { authorized.remove(kind.credentialsHeader) }
        for place in protections.indices where scopes.contains(protections[place].scope) {
            let known = credentials[protections[place].credentialsPlace]
            guard let value = protections[place].prove(known, in: request, using: &generator) else { continue }
            try authorized.append(protections[place].scope.kind.credentialsHeader, value)
        }
        request = authorized
    }

    /// The nonces that a request answers.
    private static func nonces(of request: SIPMessage) -> [DigestProtection.Scope: Bytes] {
        var nonces: [DigestProtection.Scope: Bytes] = [:]
        for kind in DigestKind.allCases {
            for value in (try? request.authentication(kind.credentialsHeader)) ?? [] {
                guard value.isDigest, let realm = value["realm"], let nonce = value["nonce"] else { continue }
                nonces[DigestProtection.Scope(kind: kind, realm: realm)] = nonce
            }
        }
        return nonces
    }
}

extension DigestClient: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String {
        "digest client of \(credentials.map(\.userName.excerpt).joined(separator: ", ")), \(realmCount) realms"
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
