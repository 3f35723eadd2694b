import Testing

@testable import SIP

@Suite struct SecretGeneratorTests {
    @Test func `the same seed gives the same numbers, another seed others, and none comes twice`() {
        func numbers(_ seed: UInt64) -> [UInt64] {
            var generator = SecretGenerator(seed: seed)
            return (0..<1000).map { _ in generator.next() }
        }
        #expect(numbers(1) == numbers(1))
        #expect(Set(numbers(1) + numbers(2)).count == 2000)
    }

    /// HMAC-SHA-256 of the counter 1 under the key 0, both of eight bytes, by Python's hmac.
    @Test func `the numbers are those of HMAC with SHA-256, the last of a hash first`() {
        var generator = SecretGenerator(seed: 0)
        let numbers = (0..<4).map { _ in generator.next() }
        #expect(numbers == Self.expected)
    }

    private static let expected: [UInt64] = [
        0x7A73D971923903D3, 0x74CD4259CBC224E3, 0xF3028035286C2C92, 0xA4A11CE5FBE8F96B,
    ]
}
