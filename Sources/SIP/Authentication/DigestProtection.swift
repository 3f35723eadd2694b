/// What a client knows of one realm that has asked it: the last nonce, and how often it was used.
struct DigestProtection: Sendable {
    /// What a nonce is for; 401 and 407 are apart.
    struct Scope: Hashable, Sendable {
        var kind: DigestKind
        var realm: Bytes
    }

    private let kind: DigestKind
    /// With the nonce that is next.
    private(set) var challenge: DigestChallenge
    /// Which of the client's credentials it is for.
    let credentialsPlace: Int
    /// The hosts of the Request-URIs that were challenged, the last one at the end.
    var hosts: [Bytes] = []
    var usedCount: UInt32 = 0
    private var cnonce: Bytes = []
    /// The hash that a session begins with; the next nonces do not change it.
    private var sessionKey: Secret?

    init(_ kind: DigestKind, _ challenge: DigestChallenge, credentialsPlace: Int) {
        (self.kind, self.challenge, self.credentialsPlace) = (kind, challenge, credentialsPlace)
    }

    var scope: Scope { Scope(kind: kind, realm: challenge.realm) }
    var nonce: Bytes { challenge.nonce }

    /// Whether a request to `host` is to carry credentials unasked: a proxy sees all requests, a server those to it.
    func serves(_ host: Bytes) -> Bool {
        usedCount < .max && (kind == .proxy || hosts.contains { isSameHost($0, host) })
    }

    /// Takes over what an earlier one of the same scope knows: hosts, and the count of a nonce that came again.
    mutating func follow(_ earlier: DigestProtection?, challengedAt host: Bytes) {
        hosts = (earlier?.hosts ?? []).filter { !isSameHost($0, host) }.suffix(DigestLimits.hostCount - 1) + [host]
        guard let earlier, earlier.nonce == nonce, earlier.challenge.algorithm == challenge.algorithm else { return }
        (usedCount, cnonce, sessionKey) = (earlier.usedCount, earlier.cnonce, earlier.sessionKey)
    }

    /// Takes the nonce that the server told before it had to refuse the old one.
    mutating func advance(to next: Bytes) {
        guard next.count <= DigestLimits.valueByteCount, next.unquoted != nonce else { return }
        (challenge.quotedNonce, usedCount) = (next.detached, 0)
    }

    /// The value that proves `credentials` in a request, with the next count of the nonce; nil when it can be used no more.
    ///
    /// Source: RFC 7616, section 3.4
    mutating func prove(
        _ credentials: Credentials,
        in request: SIPMessage,
        using generator: inout some RandomNumberGenerator
    ) -> AuthenticationValue? {
        let hash = challenge.algorithm.hash
        guard usedCount < .max, var key = credentials.ha1(realm: challenge.realm, hash: hash) else { return nil }
        usedCount += 1
        if sessionKey == nil { cnonce = (generator.next().hexadecimal + generator.next().hexadecimal).detached }
        if challenge.algorithm.isSession {
            key = sessionKey ?? DigestInput.sessionKey(hash, ha1: key, nonce: nonce, cnonce: cnonce)
            sessionKey = key
        }
        let input = DigestInput(
            hash: hash,
            key: key,
            nonce: nonce,
            qop: challenge.qop,
            nonceCount: usedCount.hexadecimal,
            cnonce: cnonce,
            method: Bytes(request.method?.name ?? ""),
            uri: request.startBytes,
            body: request.bodyBytes
        )
        return value(of: input, credentials)
    }

    private func value(of input: DigestInput, _ credentials: Credentials) -> AuthenticationValue {
        var value = AuthenticationValue(scheme: "Digest")
        let user =
            challenge.hidesUser
            ? credentials.userHash(realm: challenge.realm, hash: input.hash) : credentials.userName
        value.append("username", user, isQuoted: true)
        value.append("realm", challenge.quotedRealm, isQuoted: false)
        value.append("nonce", challenge.quotedNonce, isQuoted: false)
        value.append("uri", input.uri, isQuoted: true)
        value.append("response", input.response(), isQuoted: true)
        if challenge.isAlgorithmNamed {
            value.append("algorithm", Bytes(challenge.algorithm.description), isQuoted: false)
        }
        if let qop = input.qop {
            value.append("qop", Bytes(qop.name), isQuoted: false)
            value.append("nc", input.nonceCount, isQuoted: false)
            value.append("cnonce", input.cnonce, isQuoted: true)
        }
        if let opaque = challenge.quotedOpaque { value.append("opaque", opaque, isQuoted: false) }
        if challenge.hidesUser { value.append("userhash", Bytes("true"), isQuoted: false) }
        return value
    }
}
