/// Numbers that tell nothing of those before and behind them: HMAC with SHA-256 of a counter, under a key from a seed.
///
/// Tags, branches and Call-IDs are shown to everybody who is called; nobody may learn from them those of other calls. The same
/// seed gives the same numbers.
/// Source: RFC 3261, section 19.3; RFC 2104
struct SecretGenerator: RandomNumberGenerator, Sendable {
    private let key: [UInt8]
    private var counter: UInt64 = 0
    /// What is left of the last hash, which gives four numbers.
    private var numbers: [UInt64] = []

    init(seed: UInt64) { key = Self.bytes(seed) }

    mutating func next() -> UInt64 {
        if let number = numbers.popLast() { return number }
        counter += 1
        let hash = keyedHash(of: Self.bytes(counter), key: key)
        numbers = stride(from: 0, to: 32, by: 8).map { start in
            hash[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return numbers.removeLast()
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
