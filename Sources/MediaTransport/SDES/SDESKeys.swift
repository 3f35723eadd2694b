internal import Cryptography
package import SDP

/// The own keys of one medium, one for each suite, as lines for its descriptions.
///
/// They are kept for as long as the medium lives: an offer anew, as for a hold, has the keys of before. What is agreed on by
/// them says SDP; `SDESAgreement` makes keys of it.
/// Whoever reads the descriptions has the keys: they travel by TLS alone.
/// Source: RFC 4568, sections 5 to 7.
package struct SDESKeys: Sendable {
    /// What is offered, the preferred one first.
    package let offered: [CryptoAttribute]
    /// What answers only: short tags.
    package let answering: [CryptoAttribute]

    /// New keys.
    ///
    /// - Parameter generator: What makes them: the system's, but for tests.
    package init(using generator: inout some RandomNumberGenerator) {
        let lines = (Self.offeredSuites + Self.answeredSuites).enumerated().map { index, suite in
            CryptoAttribute(SRTPMasterKey(suite, using: &generator), tag: index + 1)
        }
        offered = Array(lines.prefix(Self.offeredSuites.count))
        answering = Array(lines.dropFirst(Self.offeredSuites.count))
    }

    /// A new key for a stream that is announced, and not agreed on: of the suite that everybody knows.
    ///
    /// Whoever listens has no key for what it would send back.
    package static func announcement(
        using generator: inout some RandomNumberGenerator
    ) -> (line: CryptoAttribute, sending: SRTPKeys) {
        let key = SRTPMasterKey(.aes128CM80, using: &generator)
        return (CryptoAttribute(key, tag: 1), SRTPKeys(key))
    }

    static let offeredSuites: [SRTPSuite] = [.aes128GCM, .aes128CM80, .aes256GCM, .aes256CM80]
    private static let answeredSuites: [SRTPSuite] = [.aes128CM32, .aes256CM32]
}

extension MediaConfiguration {
    /// Has the medium secured by keys in its descriptions, and by nothing else: it is never offered or taken in the clear.
    package mutating func secure(by keys: SDESKeys) {
        protocols = [.rtpSAVP, .rtpSAVPF]
        (self.keys, answeringKeys) = (keys.offered, keys.answering)
    }
}

/// What protects both directions of a medium.
package struct SDESAgreement: Sendable {
    package let suite: SRTPSuite
    package let sending: SRTPKeys
    package let receiving: SRTPKeys

    /// The keys that descriptions have agreed on; nil for a suite or a key that is not known.
    package init?(_ keys: AgreedKeys) {
        guard let suite = SRTPSuite(rawValue: keys.remote.usualSuite),
            let encryptsControl = keys.remote.encryptsControl,
            let own = SRTPMasterKey(suite, of: keys.local), let other = SRTPMasterKey(suite, of: keys.remote)
        else { return nil }
        self.suite = suite
        sending = SRTPKeys(own, identifier: keys.local.identifierBytes, encryptsControl: encryptsControl)
        receiving = SRTPKeys(other, identifier: keys.remote.identifierBytes, encryptsControl: encryptsControl)
    }
}

extension SRTPMasterKey {
    fileprivate init?(_ suite: SRTPSuite, of line: CryptoAttribute) {
        guard line.keys.count == 1, let bytes = Base64.decode(line.keys[0].keyAndSalt) else { return nil }
        self.init(suite, keyAndSalt: bytes)
    }
}

extension CryptoAttribute {
    fileprivate init(_ key: SRTPMasterKey, tag: Int) {
        self.init(
            tag: UInt32(tag),
            suite: key.suite.rawValue,
            key: Key(keyAndSalt: Base64.encode(key.keyAndSalt))
        )
    }

    /// The master key identifier as each packet has it; empty for none.
    fileprivate var identifierBytes: [UInt8] {
        keys[0].identifier.map { identifier in
            (0..<Int(identifier.byteCount)).reversed().map { place in
                place < 8 ? UInt8(truncatingIfNeeded: identifier.value >> UInt64(place * 8)) : 0
            }
        } ?? []
    }
}
