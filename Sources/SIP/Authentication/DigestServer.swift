package import CallBasics
internal import Cryptography

/// Whom a request says that it comes from.
package enum DigestUser: Hashable, Sendable {
    case name(Bytes)
    /// `Credentials.userHash` of the user, by the hash function.
    case hash(Bytes, DigestHash)
}

/// The digest authentication of a registrar, a user agent or a proxy as a server, for one realm.
///
///     request without credentials ──verify──► missing ──challenges──► 401 or 407
///     request with credentials    ──verify──► accepted, stale, wrong, badRequest
///
/// Nonces are known again by a keyed hash; what is kept of them, once a right answer came, is which counts were used.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261, section 22; RFC 7616; RFC 8760, section 2.3
package struct DigestServer: Sendable {
    package struct Configuration: Hashable, Sendable {
        package var realm: String
        package var kind = DigestKind.server
        /// One challenge each, the best one first.
        package var algorithms = [DigestAlgorithm(.sha256), DigestAlgorithm(.md5)]
        package var qops = [DigestQop.auth]
        /// How long a nonce may be used.
        package var lifetime = Duration.seconds(300)
        /// How many nonces are remembered with what was used of them; the oldest ones become stale.
        package var nonceCapacity = 4096
        /// Whether clients may send a hash of their user's name.
        package var takesUserHash = false
        /// Whether answers without qop are taken, as clients of RFC 2069 send them; each then needs a nonce of its own.
        package var takesPlainForm = false
        /// Whether the URI that was hashed must be the Request-URI; not so behind proxies that change it.
        package var checksURI = true

        package init(realm: String) { self.realm = realm }
    }

    package enum Verdict: Hashable, Sendable {
        /// The user's name.
        case accepted(Bytes)
        /// No credentials are there for the realm with an algorithm that was offered: challenge.
        case missing
        /// The password is right and the nonce is not: challenge with stale.
        case stale
        /// User, password or what was hashed is wrong: challenge, or 403.
        case wrong
        /// The credentials cannot be understood: 400.
        case badRequest
    }

    package let configuration: Configuration
    private let realm: Bytes
    private let key: Secret
    private var madeCount: UInt64 = 0
    private var window: NonceWindow

    /// `key` makes the nonces: at least 16 bytes that nobody guesses, others at each start.
    package init(_ configuration: Configuration, key: [UInt8]) {
        precondition(key.count >= 16)
        var configuration = configuration
        configuration.algorithms.removeAll { !$0.hash.isAvailable }
        (self.configuration, realm, self.key) = (configuration, Bytes(configuration.realm), Secret(key[...]))
        window = NonceWindow(capacity: configuration.nonceCapacity)
    }

    /// How many nonces are remembered.
    package var nonceCount: Int { window.count }

    /// Challenges with a new nonce, one for each algorithm; each is the value of a `challengeHeader`.
    package mutating func challenges(isStale: Bool = false, at now: MediaTime) -> [AuthenticationValue] {
        let nonce = DigestNonce(time: now, number: madeCount)
        madeCount += 1
        let text = nonce.bytes(realm: realm, kind: configuration.kind, key: key)
        return configuration.algorithms.map { algorithm in
            var value = AuthenticationValue(scheme: "Digest")
            value.append("realm", realm, isQuoted: true)
            value.append("nonce", text, isQuoted: true)
            value.append("algorithm", Bytes(algorithm.description), isQuoted: false)
            value.append("qop", Bytes(configuration.qops.map(\.name).joined(separator: ",")), isQuoted: true)
            if isStale { value.append("stale", Bytes("true"), isQuoted: false) }
            if configuration.takesUserHash { value.append("userhash", Bytes("true"), isQuoted: false) }
            return value
        }
    }

    /// Says whether a request comes from whom it says; `find` gives what is known of a user, nil for a stranger.
    package mutating func verify(
        _ request: SIPMessage,
        at now: MediaTime,
        find: (DigestUser) -> Credentials?
    ) -> Verdict {
        window.forget(before: now - configuration.lifetime)
        for text in request.values(of: configuration.kind.credentialsHeader) {
            guard let value = try? AuthenticationValue(parsing: text) else { return .badRequest }
            guard value.isDigest, value["realm"] == realm,
                let algorithm = DigestAlgorithm(parsing: value["algorithm"] ?? Bytes("MD5")),
                configuration.algorithms.contains(algorithm)
            else { continue }
            guard let answer = DigestAnswer(value, algorithm, to: request), fits(answer, request) else {
                return .badRequest
            }
            return verify(answer, at: now, find: find)
        }
        return .missing
    }

    /// Whether the answer is one of those that were asked for.
    private func fits(_ answer: DigestAnswer, _ request: SIPMessage) -> Bool {
        if let qop = answer.input.qop {
            guard configuration.qops.contains(qop) else { return false }
        } else {
            guard configuration.takesPlainForm else { return false }
        }
        if case .hash = answer.user, !configuration.takesUserHash { return false }
        guard configuration.checksURI else { return true }
        guard let asked = try? request.requestURI(), let hashed = try? SIPURI(parsing: answer.input.uri) else {
            return false
        }
        return asked.isEquivalent(to: hashed)
    }

    private mutating func verify(
        _ answer: DigestAnswer,
        at now: MediaTime,
        find: (DigestUser) -> Credentials?
    ) -> Verdict {
        let found = find(answer.user)
        // For a stranger as much is computed as for a user.
        let known = found?.ha1(realm: realm, hash: answer.input.hash)
        let ha1 = known ?? Secret(answer.input.hash.hex(realm, answer.input.nonce))
        let isRight = isSameSecret(answer.expectedResponse(ha1), answer.response.bytes.map(\.lowercase))
        guard isRight, known != nil, let found else { return .wrong }
        guard
            let nonce = DigestNonce(parsing: answer.input.nonce, realm: realm, kind: configuration.kind, key: key),
            nonce.time <= now, now - nonce.time <= configuration.lifetime, window.use(answer.count, of: nonce)
        else { return .stale }
        return .accepted(found.userName)
    }
}

extension DigestServer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "digest server of \(realm.excerpt), \(nonceCount) nonces" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
