/// How lines of keys of one description go together with those of the other (SDES).
///
///     offer     a=crypto:1 AEAD_AES_128_GCM inline:<key A>      a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:<key B>
///     answer    a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:<key C>
///               who offered sends by B and receives by C
///
/// How long a key lasts is its sender's to keep: whoever goes on beyond it is heard all the same.
/// Source: RFC 4568, sections 5 to 7.
extension CryptoAttribute {
    /// The line as an attribute.
    var line: SDPAttribute { SDPAttribute("crypto", value) }

    /// The line that answers `offer`; nil when none of its lines can be used with one of our own keys.
    ///
    /// The offer's order counts; a line that leaves RTCP unencrypted is taken only where nothing else fits.
    static func answer(to offer: [CryptoAttribute], with own: [CryptoAttribute]) -> CryptoAttribute? {
        let fitting = offer.compactMap { line in own.first(where: line.fits).map { (line, $0.keys[0].keyAndSalt) } }
        guard let (line, key) = fitting.first(where: { $0.0.encryptsControl == true }) ?? fitting.first else {
            return nil
        }
        return CryptoAttribute(
            tag: line.tag,
            suite: line.suite,
            key: Key(keyAndSalt: key, identifier: line.keys[0].identifier),
            parameters: line.encryptsControl == true ? [] : [Self.unencryptedControl]
        )
    }

    /// The line of `offer` that `answer` takes; nil when it takes none, or in another way than it was offered.
    static func taken(of offer: [CryptoAttribute], by answer: [CryptoAttribute]) -> CryptoAttribute? {
        guard let line = answer.first, let own = offer.first(where: { $0.tag == line.tag }), line.fits(own),
            line.encryptsControl == own.encryptsControl
        else { return nil }
        return own
    }

    /// Whether RTCP is encrypted; nil when the line asks for what is not understood, and is to be passed over.
    ///
    /// Source: RFC 4568, sections 6.3 and 7.1.2.
    package var encryptsControl: Bool? {
        var encryptsControl = true
        for parameter in parameters.map({ $0.uppercased() }) where !parameter.hasPrefix("-") {
            let parts = parameter.split(separator: "=", maxSplits: 1).map(String.init)
            switch (parts.first, parts.dropFirst().first.flatMap { Int($0) }) {
            case (Self.unencryptedControl, nil): encryptsControl = false
            case ("KDR", 0?): break
            case ("WSH", let size?) where size >= 64: break
            default: return nil
            }
        }
        return encryptsControl
    }

    /// The suite in the spelling of RFC 6188; some write AES_CM_256_...
    package var usualSuite: String {
        let name = suite.uppercased()
        let other = "AES_CM_256_"
        return name.hasPrefix(other) ? "AES_256_CM_" + name.dropFirst(other.count) : name
    }

    /// Whether the line has one key, as long as that of `own` of the same suite, and asks for nothing that is not understood.
    private func fits(_ own: CryptoAttribute) -> Bool {
        keys.count == 1 && encryptsControl != nil && usualSuite == own.usualSuite
            && keys[0].byteCount == own.keys.first?.byteCount
    }

    private static let unencryptedControl = "UNENCRYPTED_SRTCP"
}

extension CryptoAttribute.Key {
    /// Bytes of key and salt; nil when they are not written in Base64.
    fileprivate var byteCount: Int? {
        let digits = keyAndSalt.utf8.prefix { $0 != UInt8(ascii: "=") }
        let isBase64 = digits.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
        return isBase64 && digits.count % 4 != 1 ? digits.count * 6 / 8 : nil
    }
}

/// The keys of both sides of a medium, as lines of the descriptions agree on them: each protects what its side sends.
///
/// Whoever reads the descriptions has the keys: they belong into messages by TLS alone.
package struct AgreedKeys: Hashable, Sendable {
    package let local: CryptoAttribute
    package let remote: CryptoAttribute

    /// The pair that an exchange has come to, by the tag that the answer names; nil when there is none.
    init?(_ local: [CryptoAttribute], _ remote: [CryptoAttribute], isOfferer: Bool) {
        let (offer, answer) = isOfferer ? (local, remote) : (remote, local)
        guard let taken = CryptoAttribute.taken(of: offer, by: answer) else { return nil }
        (self.local, self.remote) = isOfferer ? (taken, answer[0]) : (answer[0], taken)
    }
}
