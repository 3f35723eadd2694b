/// What one challenge asks for, as far as it is understood.
///
///     Digest realm="...", nonce="...", algorithm=SHA-256, qop="auth,auth-int", opaque="...", stale=true, userhash=true
///
/// Source: RFC 7616, section 3.3; RFC 3261, section 22.4
package struct DigestChallenge: Hashable, Sendable {
    package let algorithm: DigestAlgorithm
    /// Auth before auth-int; nil when the challenge has no qop.
    package let qop: DigestQop?
    /// Whether the nonce alone was refused, not the password.
    package let isStale: Bool
    /// Whether the user's name is to be sent as a hash.
    package let hidesUser: Bool
    /// With their quotes, to be sent back as they came.
    let quotedRealm: Bytes
    /// The last one that the server told.
    var quotedNonce: Bytes
    let quotedOpaque: Bytes?
    /// Whether the challenge named it; else it is MD5, and the answer does not name it.
    let isAlgorithmNamed: Bool

    package var realm: Bytes { quotedRealm.unquoted }
    package var nonce: Bytes { quotedNonce.unquoted }

    /// Nil when it is no digest, lacks something, is too long, or asks for what is not known here.
    package init?(_ value: AuthenticationValue) {
        guard value.isDigest, let realm = value.quoted("realm"), let nonce = value.quoted("nonce"),
            let algorithm = DigestAlgorithm(parsing: value["algorithm"] ?? Bytes("MD5"))
        else { return nil }
        let opaque = value.quoted("opaque")
        guard [realm, nonce, opaque ?? []].allSatisfy({ $0.count <= DigestLimits.valueByteCount }) else { return nil }
        let offered = (value["qop"] ?? []).split { $0 == .comma || $0.isBlank }
        let known = offered.compactMap { DigestQop(parsing: $0) }
        // Without qop there is no cnonce either, which a session needs.
        guard offered.isEmpty ? !algorithm.isSession : !known.isEmpty else { return nil }
        qop = known.contains(.auth) ? .auth : known.first
        self.algorithm = algorithm
        isAlgorithmNamed = value["algorithm"] != nil
        (quotedRealm, quotedNonce, quotedOpaque) = (realm.detached, nonce.detached, opaque?.detached)
        isStale = value["stale"]?.isNamed("true") ?? false
        hidesUser = value["userhash"]?.isNamed("true") ?? false
    }
}

/// What is more than this in digest authentication is passed over, or forgotten.
package enum DigestLimits {
    /// Of a realm, a nonce or an opaque, with its quotes.
    package static let valueByteCount = 1024
    /// Challenges of one kind that are looked at in one response.
    package static let challengeCount = 16
    /// Realms, of both kinds together, that a client has nonces of.
    package static let realmCount = 16
    /// Hosts that a client sends the credentials of one realm to unasked.
    package static let hostCount = 8
    /// How often one request may be sent to one server with new credentials.
    package static let roundCount = 3
}

extension AuthenticationValue {
    /// The value of a parameter as it came, in quotes even if it had none; nil when there is none.
    func quoted(_ name: StaticString) -> Bytes? {
        guard let value = rawValue(name) else { return nil }
        return value.first == .quote ? value : value.quoted
    }
}
