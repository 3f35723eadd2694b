/// What a description says of keys and of the path, as it was written: crypto lines, fingerprints, roles, ICE.
///
/// Views are made when asked for. An attribute that is not understood is left out of its view, and stays in the list.
extension [SDPAttribute] {
    /// Keys of SRTP, in order of preference (RFC 4568).
    package var cryptoLines: [CryptoAttribute] { values("crypto").compactMap { CryptoAttribute(parsing: Bytes($0)) } }

    /// Fingerprints of the certificate; one of them has to fit (RFC 8122, section 5).
    package var fingerprints: [Fingerprint] { values("fingerprint").compactMap { Fingerprint(parsing: Bytes($0)) } }

    /// Which side opens the connection (RFC 4145, section 4).
    package var setupRole: SetupRole? {
        values("setup").first.flatMap { text in SetupRole.allCases.first { $0.rawValue.isNamed(text) } }
    }

    /// Whether a connection of before goes on (RFC 4145, section 5); nil when nothing is said.
    package var keepsConnection: Bool? {
        values("connection").first.flatMap { $0.isNamed("existing") ? true : $0.isNamed("new") ? false : nil }
    }

    /// What a side is asked for by ICE checks (RFC 8839, section 5.4); nil unless name and password are there.
    package var iceCredentials: (userFragment: String, password: String)? {
        guard let name = values("ice-ufrag").first, let password = values("ice-pwd").first else { return nil }
        return (name, password)
    }

    /// The words of ice-options, such as "trickle" and "ice2".
    package var iceOptions: [String] {
        values("ice-options").flatMap { $0.utf8.split(separator: 0x20).map { Bytes($0).text } }
    }

    /// Whether the side only answers ICE checks.
    package var isICELite: Bool { contains { $0.name.isNamed("ice-lite") } }

    /// Addresses found by ICE (RFC 8839, section 5.1).
    package var candidates: [CandidateAttribute] {
        values("candidate").compactMap { CandidateAttribute(parsing: Bytes($0)) }
    }

    /// The name by which groups call the medium (RFC 5888, section 4).
    package var mediaIdentifier: String? { values("mid").first }

    /// The values of the attributes `name`, in order.
    func values(_ name: String) -> [String] {
        compactMap { $0.name.isNamed(name) ? $0.value.flatMap { Bytes($0).trimmed?.text } : nil }
    }
}

/// A hash of a certificate.
package struct Fingerprint: Hashable, Sendable {
    /// The hash function, in lower case: "sha-256".
    package var hash: String
    package var bytes: [UInt8]

    /// A hash by the function `hash`, in lower case.
    package init(hash: String, bytes: [UInt8]) { (self.hash, self.bytes) = (hash, bytes) }

    init?(parsing value: Bytes) {
        var rest = value
        guard let hash = rest.takeField(), var digits = rest.takeField() else { return nil }
        self.hash = String(decoding: hash.map(\.lowercase), as: UTF8.self)
        bytes = []
        while !digits.isEmpty {
            let pair = digits.take(before: UInt8(ascii: ":"))
            guard pair.count == 2, pair.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0.lowercase }),
                let byte = UInt8(pair.text, radix: 16)
            else { return nil }
            bytes.append(byte)
        }
    }
}

/// Which side opens a connection.
package enum SetupRole: String, Sendable, CaseIterable {
    case active
    case passive
    /// Either, as the answer says.
    case activeOrPassive = "actpass"
    /// Not now.
    case holdConnection = "holdconn"
}

/// Media that belong together.
///
///     a=group:<semantics> <mid> ...
///
/// Source: RFC 5888, section 5; RFC 9143 (BUNDLE).
package struct MediaGroup: Hashable, Sendable {
    package var semantics: String
    package var identifiers: [String]

    init?(parsing value: Bytes) {
        var rest = value
        guard let semantics = rest.takeField() else { return nil }
        self.semantics = semantics.text
        identifiers = []
        while let identifier = rest.takeField() { identifiers.append(identifier.text) }
    }
}

extension SessionDescription {
    /// The groups of media, such as those of BUNDLE.
    package var groups: [MediaGroup] {
        sessionLines.compactMap { $0.value(ofAttribute: "group") }.compactMap(MediaGroup.init(parsing:))
    }
}

extension MediaDescription {
    /// What is said of keys and of the path for this medium: by it, or by the session where it is silent.
    package var keyingAttributes: [SDPAttribute] {
        let own = lines.filter(\.isOfKeying).compactMap(\.attribute)
        let common = sessionLines.filter(\.isOfKeying).compactMap(\.attribute)
        return common.filter { attribute in !own.contains { $0.name.isNamed(attribute.name) } } + own
    }
}

extension DescriptionLine {
    fileprivate var isOfKeying: Bool {
        guard let name = attributeName else { return false }
        return Self.keyingNames.contains { name.isNamed($0) }
    }

    /// The names of the attributes that belong here.
    private static let keyingNames: [StaticString] = [
        "crypto", "key-mgmt", "fingerprint", "setup", "connection", "tls-id", "ice-ufrag", "ice-pwd", "ice-options",
        "ice-lite", "ice-mismatch", "ice-pacing", "candidate", "remote-candidates", "end-of-candidates", "mid",
    ]
}
