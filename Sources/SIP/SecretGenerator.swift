internal import Cryptography

/// Numbers that tell nothing of those before and behind them: AES-256 in counter mode, under a key from a seed.
///
/// Tags, branches and Call-IDs are shown to everybody who is called; nobody may learn from them those of other calls. The same
/// seed gives the same numbers.
/// Source: RFC 3261, section 19.3; NIST SP 800-38A, section 6.5
struct SecretGenerator: RandomNumberGenerator, Sendable {
    /// How many numbers are made at once.
    private static let batchCount = 32

    private let key: [UInt8]
    /// How many blocks of 16 bytes were used.
    private var blockCount: UInt64 = 0
    /// What is left of those that were made last.
    private var numbers: [UInt64] = []

    init(seed: UInt64) { key = HashFunction.sha256.keyedHash(of: Self.bytes(seed), key: []) }

    mutating func next() -> UInt64 {
        if let number = numbers.popLast() { return number }
        let stream = BlockCipher.stream(key: key, from: UInt128(blockCount), byteCount: Self.batchCount * 8)
        blockCount += UInt64(Self.batchCount / 2)
        numbers = stride(from: 0, to: stream.count, by: 8).map { start in
            stream[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return numbers.removeLast()
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
