/// What a client knows of one realm, so that the next process of the same phone is let in at once; it proves no password.
///
/// One that is out of date costs a challenge, as if there were none.
package struct DigestMemory: Hashable, Sendable, Codable {
    /// Whether a proxy has asked, and not a server.
    let isProxy: Bool
    /// The challenge, with the nonce that is next.
    let challenge: String
    /// The hosts that the credentials are for.
    let hosts: [String]
    /// How often the nonce was used.
    let usedCount: UInt32
}

extension DigestClient {
    /// What is to be remembered; realms whose proof lives in one process alone are not.
    package var memories: [DigestMemory] { protections.compactMap(\.memory) }

    /// Goes on where another client of the same user has ended.
    package mutating func recall(_ memories: [DigestMemory]) {
        for memory in memories.prefix(DigestLimits.realmCount) {
            guard let protection = DigestProtection(memory, credentials) else { continue }
            protections.removeAll { $0.scope == protection.scope }
            protections.append(protection)
        }
    }
}

extension DigestProtection {
    fileprivate var memory: DigestMemory? {
        guard !challenge.algorithm.isSession else { return nil }
        var parts = [
            "realm=\(challenge.quotedRealm.text)", "nonce=\(challenge.quotedNonce.text)",
        ]
        if challenge.isAlgorithmNamed { parts.append("algorithm=\(challenge.algorithm)") }
        if let qop = challenge.qop { parts.append("qop=\"\(qop.name)\"") }
        if let opaque = challenge.quotedOpaque { parts.append("opaque=\(opaque.text)") }
        if challenge.hidesUser { parts.append("userhash=true") }
        return DigestMemory(
            isProxy: scope.kind == .proxy,
            challenge: "Digest \(parts.joined(separator: ", "))",
            hosts: hosts.map(\.text),
            usedCount: usedCount
        )
    }

    /// Nil when it is none of the user's realms any more, or cannot be understood.
    fileprivate init?(_ memory: DigestMemory, _ credentials: [Credentials]) {
        guard let value = try? AuthenticationValue(parsing: Bytes(memory.challenge)),
            let challenge = DigestChallenge(value),
            let known = credentials.firstIndex(where: {
                $0.ha1(realm: challenge.realm, hash: challenge.algorithm.hash) != nil
            })
        else { return nil }
        self.init(memory.isProxy ? .proxy : .server, challenge, credentialsPlace: known)
        hosts = memory.hosts.prefix(DigestLimits.hostCount).map { Bytes($0) }
        usedCount = memory.usedCount
    }
}
