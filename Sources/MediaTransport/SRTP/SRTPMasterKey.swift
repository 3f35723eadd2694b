internal import Cryptography

/// A master key with its salt.
///
/// It is wiped when nobody has it any more, and no description shows it.
/// Source: RFC 3711, section 3.2.1.
package struct SRTPMasterKey: Sendable {
    package let suite: SRTPSuite
    /// The key, and the salt behind it.
    private let secret: SecretBytes

    /// Takes key and salt as SDES and DTLS put them: one behind the other.
    ///
    /// - Returns: nil when their length is not that of the suite.
    package init?(_ suite: SRTPSuite, keyAndSalt: some Collection<UInt8>) {
        guard keyAndSalt.count == suite.keyByteCount + suite.saltByteCount else { return nil }
        (self.suite, secret) = (suite, SecretBytes(keyAndSalt))
    }

    /// A new one.
    package init(_ suite: SRTPSuite, using generator: inout some RandomNumberGenerator) {
        self.suite = suite
        secret = SecretBytes(count: suite.keyByteCount + suite.saltByteCount) { bytes in
            for place in bytes.indices { bytes[place] = UInt8.random(in: .min ... .max, using: &generator) }
        }
    }

    /// Whether both are the same key; takes as long whatever differs.
    package func equals(_ other: SRTPMasterKey) -> Bool {
        suite == other.suite && isSameSecret(secret.bytes, other.secret.bytes)
    }

    /// A copy for the description that tells the key to the other side.
    var keyAndSalt: [UInt8] { Array(secret.bytes) }

    /// The key alone; it lives as long as the master key.
    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: secret.bytes[..<suite.keyByteCount]) }

    /// The salt, lengthened by zeros to 14 bytes (RFC 7714, section 11).
    var salt: UInt128 {
        let salt = secret.bytes[suite.keyByteCount...].reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
        return salt << UInt128(8 * (14 - suite.saltByteCount))
    }
}
