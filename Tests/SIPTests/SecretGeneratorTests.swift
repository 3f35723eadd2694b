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

    /// By Python's hmac and the command `openssl enc -aes-256-ctr`.
    @Test func `the numbers are those of AES-256 in counter mode, the last of a batch first`() {
        var generator = SecretGenerator(seed: 0)
        let numbers = (0..<34).map { _ in generator.next() }
        #expect(numbers[0..<2] == Self.expected[0..<2])
        #expect(numbers[31...] == Self.expected[2...])
    }

    private static let expected: [UInt64] = [
        0xBE78C860DCA2A7E9, 0x89C7B7AF7C1EDC9B, 0x8C8DEBD43314CF41, 0x752E0FA125166F7A,
        0xAE28F462DA01312A,
    ]
}
