internal import COpenSSL

/// A master key with its salt.
///
/// It is wiped when nobody has it any more, and no description shows it.
///
/// Source: RFC 3711, section 3.2.1.
package final class SRTPMasterKey: Sendable, CustomStringConvertible, CustomReflectable {
    package let suite: SRTPSuite
    /// The key, and the salt behind it; written by nobody after `init`.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

    /// Takes key and salt as SDES and DTLS put them: one behind the other.
    ///
    /// - Returns: nil when their length is not that of the suite.
    package init?(_ suite: SRTPSuite, keyAndSalt: some Collection<UInt8>) {
        guard keyAndSalt.count == suite.keyByteCount + suite.saltByteCount else { return nil }
        self.suite = suite
        bytes = .allocate(byteCount: keyAndSalt.count, alignment: 16)
        bytes.copyBytes(from: keyAndSalt)
    }

    /// A new one.
    package init(_ suite: SRTPSuite, using generator: inout some RandomNumberGenerator) {
        self.suite = suite
        bytes = .allocate(byteCount: suite.keyByteCount + suite.saltByteCount, alignment: 16)
        for place in bytes.indices { bytes[place] = UInt8.random(in: .min ... .max, using: &generator) }
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        bytes.deallocate()
    }

    package var description: String { "a key for \(suite.rawValue)" }
    package var customMirror: Mirror { Mirror(self, children: ["suite": suite.rawValue]) }

    /// Whether both are the same key; takes as long whatever differs.
    package func equals(_ other: SRTPMasterKey) -> Bool {
        suite == other.suite && CRYPTO_memcmp(bytes.baseAddress, other.bytes.baseAddress, bytes.count) == 0
    }

    /// A copy for the description that tells the key to the other side.
    var keyAndSalt: [UInt8] { Array(bytes) }

    /// Calls `body` with the key and with the salt, lengthened by zeros to 14 bytes (RFC 7714, section 11).
    func withKeyAndSalt<Result>(_ body: (UnsafeRawBufferPointer, UInt128) -> Result) -> Result {
        var salt: UInt128 = 0
        for place in 0..<14 {
            salt <<= 8
            if place < suite.saltByteCount { salt |= UInt128(bytes[suite.keyByteCount + place]) }
        }
        return body(UnsafeRawBufferPointer(rebasing: bytes[..<suite.keyByteCount]), salt)
    }
}
