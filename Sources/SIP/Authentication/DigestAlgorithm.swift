/// What the parameter algorithm names: a hash function, and whether its first hash serves a whole session.
///
/// Source: RFC 7616, section 3.3; RFC 8760, section 2
package struct DigestAlgorithm: Hashable, Sendable, CustomStringConvertible {
    package var hash: DigestHash
    /// Whether the name ends in `-sess`.
    package var isSession: Bool

    package init(_ hash: DigestHash, isSession: Bool = false) {
        (self.hash, self.isSession) = (hash, isSession)
    }

    /// The algorithm of a name, in whatever case; nil when it is not known, or not available here.
    package init?(parsing name: Bytes) {
        let hasSuffix = name.suffix(5).isNamed("-sess")
        let base = hasSuffix ? name.dropLast(5) : name
        guard let hash = DigestHash.allCases.first(where: { base.isNamed(Bytes($0.name)) }), hash.isAvailable
        else { return nil }
        self.init(hash, isSession: hasSuffix)
    }

    /// The name as it is written.
    package var description: String { isSession ? hash.name + "-sess" : hash.name }
}

extension DigestHash {
    fileprivate var name: String {
        switch self {
        case .md5: "MD5"
        case .sha256: "SHA-256"
        case .sha512_256: "SHA-512-256"
        }
    }
}

/// What a digest protects: the request's method and URI, or its body, too.
package enum DigestQop: Hashable, Sendable {
    case auth, authInt

    package init?(parsing name: Bytes) {
        guard let qop = [DigestQop.auth, .authInt].first(where: { name.isNamed(Bytes($0.name)) }) else { return nil }
        self = qop
    }

    /// The name as it is written.
    package var name: String { self == .auth ? "auth" : "auth-int" }
}

/// Who asks for credentials; what was said to one is not said to the other, though the realm is the same.
///
/// Source: RFC 3261, section 22.2 and 22.3
package enum DigestKind: Hashable, Sendable, CaseIterable {
    /// A registrar or a user agent, by 401.
    case server
    /// A proxy, by 407.
    case proxy

    package var statusCode: Int { self == .server ? 401 : 407 }
    package var challengeHeader: HeaderName { self == .server ? .wwwAuthenticate : .proxyAuthenticate }
    package var credentialsHeader: HeaderName { self == .server ? .authorization : .proxyAuthorization }
    /// The header of a response that tells the next nonce (RFC 7615).
    var infoHeader: String { self == .server ? "Authentication-Info" : "Proxy-Authentication-Info" }
}
