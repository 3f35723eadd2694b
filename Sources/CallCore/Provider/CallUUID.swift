/// What a call is known by to its screen, from the push or the INVITE to the end.
///
/// Source: RFC 9562, section 5.4
public struct CallUUID: Hashable, Sendable {
    private let high, low: UInt64

    /// One that nobody else has.
    public init() {
        var generator = SystemRandomNumberGenerator()
        self.init(&generator)
    }

    init(_ generator: inout some RandomNumberGenerator) {
        high = generator.next() & ~0xF000 | 0x4000
        low = generator.next() & ~(0b11 << 62) | 0b10 << 62
    }
}

extension CallUUID: LosslessStringConvertible {
    /// As `0123abcd-...`, of any case; nil when it is no UUID.
    public init?(_ text: String) {
        let digits = text.utf8.filter { $0 != 0x2D }
        let dashes = text.utf8.enumerated().filter { $0.element == 0x2D }.map(\.offset)
        guard digits.count == 32, dashes == [8, 13, 18, 23],
            let high = UInt64(String(decoding: digits[..<16], as: UTF8.self), radix: 16),
            let low = UInt64(String(decoding: digits[16...], as: UTF8.self), radix: 16)
        else { return nil }
        (self.high, self.low) = (high, low)
    }

    /// In five groups of small hexadecimal digits.
    public var description: String {
        let digits = [high, low].map { word in
            let text = String(word, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        let all = Array(digits.joined().utf8)
        let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
        return groups.map { String(decoding: all[$0], as: UTF8.self) }.joined(separator: "-")
    }
}

extension CallUUID: Codable {
    /// Reads its text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let uuid = CallUUID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "It is no UUID.")
        }
        self = uuid
    }

    /// Writes its text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
