internal import Cryptography
package import SDP

/// The keys of one medium, as lines of the descriptions agree on them: each side says which key protects what it sends.
///
///     offer     a=crypto:1 AEAD_AES_128_GCM inline:<key A>      a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:<key B>
///     answer    a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:<key C>
///               who offered sends by B and receives by C
///
/// It is kept for as long as the medium lives: an offer anew, as for a hold, has the keys of before.
/// Whoever reads the descriptions has the keys: they travel by TLS alone.
/// Source: RFC 4568, sections 5 to 7.
package struct SDESExchange: Sendable {
    /// What protects both directions.
    package struct Agreement: Sendable {
        package let suite: SRTPSuite
        package let sending: SRTPKeys
        package let receiving: SRTPKeys
    }

    /// What is offered, the preferred one first.
    ///
    /// Short tags are answered only.
    package static let offeredSuites: [SRTPSuite] = [.aes128GCM, .aes128CM80, .aes256GCM, .aes256CM80]

    /// One for each suite that was offered or answered.
    private var ownKeys: [SRTPSuite: SRTPMasterKey] = [:]

    package init() {}

    /// The lines of an offer.
    ///
    /// - Parameter generator: What makes keys, once for each suite.
    /// - Returns: One line for each of `offeredSuites`.
    package mutating func offer(using generator: inout some RandomNumberGenerator) -> [CryptoAttribute] {
        Self.offeredSuites.enumerated().map { index, suite in
            let key = CryptoAttribute.Key(keyAndSalt: Base64.encode(ownKey(suite, using: &generator).keyAndSalt))
            return CryptoAttribute(tag: UInt32(index + 1), suite: suite.rawValue, key: key)
        }
    }

    /// What the answer to `offer` agrees on; nil when it has no line of those, or one that cannot be used.
    package func accept(_ answer: [CryptoAttribute]) -> Agreement? {
        guard let line = answer.first, let usable = UsableLine(line),
            Self.offeredSuites.firstIndex(of: usable.suite).map({ UInt32($0 + 1) }) == line.tag,
            usable.encryptsControl, let own = ownKeys[usable.suite]
        else { return nil }
        return agreement(usable, own: own, identifier: [])
    }

    /// The line that answers `offer`, with what it agrees on; nil when none of its lines can be used.
    ///
    /// The offer's order counts; a line that leaves RTCP unencrypted only where nothing else fits.
    package mutating func answer(
        _ offer: [CryptoAttribute],
        using generator: inout some RandomNumberGenerator
    ) -> (line: CryptoAttribute, agreement: Agreement)? {
        let lines = offer.compactMap { line in UsableLine(line).map { (line, $0) } }
        guard let (line, usable) = lines.first(where: { $0.1.encryptsControl }) ?? lines.first else { return nil }
        let own = ownKey(usable.suite, using: &generator)
        let key = CryptoAttribute.Key(keyAndSalt: Base64.encode(own.keyAndSalt), identifier: line.keys[0].identifier)
        let parameters = usable.encryptsControl ? [] : [UsableLine.unencryptedControl]
        let answered = CryptoAttribute(tag: line.tag, suite: line.suite, key: key, parameters: parameters)
        return (answered, agreement(usable, own: own, identifier: usable.identifier))
    }

    private func agreement(_ peer: UsableLine, own: SRTPMasterKey, identifier: [UInt8]) -> Agreement {
        Agreement(
            suite: peer.suite,
            sending: SRTPKeys(own, identifier: identifier, encryptsControl: peer.encryptsControl),
            receiving: SRTPKeys(peer.key, identifier: peer.identifier, encryptsControl: peer.encryptsControl)
        )
    }

    private mutating func ownKey(
        _ suite: SRTPSuite,
        using generator: inout some RandomNumberGenerator
    ) -> SRTPMasterKey {
        if let key = ownKeys[suite] { return key }
        let key = SRTPMasterKey(suite, using: &generator)
        ownKeys[suite] = key
        return key
    }
}

/// A crypto line whose key and parameters are understood.
///
/// How long a key lasts is its sender's to keep: whoever goes on beyond it is heard all the same.
struct UsableLine {
    let suite: SRTPSuite
    let key: SRTPMasterKey
    let identifier: [UInt8]
    let encryptsControl: Bool

    static let unencryptedControl = "UNENCRYPTED_SRTCP"

    /// nil for a line that is to be passed over (RFC 4568, sections 6.3 and 7.1.2).
    init?(_ line: CryptoAttribute) {
        guard let suite = SRTPSuite(named: line.suite), line.keys.count == 1,
            let bytes = Base64.decode(line.keys[0].keyAndSalt),
            let key = SRTPMasterKey(suite, keyAndSalt: bytes)
        else { return nil }
        var encryptsControl = true
        for parameter in line.parameters.map({ $0.uppercased() }) where !parameter.hasPrefix("-") {
            let parts = parameter.split(separator: "=", maxSplits: 1).map(String.init)
            switch (parts[0], parts.dropFirst().first.flatMap { Int($0) }) {
            case (Self.unencryptedControl, nil): encryptsControl = false
            case ("KDR", 0?): break
            case ("WSH", let size?) where size >= 64: break
            default: return nil
            }
        }
        (self.suite, self.key, self.encryptsControl) = (suite, key, encryptsControl)
        identifier =
            line.keys[0].identifier.map { identifier in
                (0..<Int(identifier.byteCount)).reversed().map { place in
                    place < 8 ? UInt8(truncatingIfNeeded: identifier.value >> UInt64(place * 8)) : 0
                }
            } ?? []
    }
}
