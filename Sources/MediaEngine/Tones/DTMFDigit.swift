/// One of the sixteen keys of a push-button telephone: 0 to 9, `*`, `#`, A to D.
///
/// Source: ITU-T Q.23 for the frequencies; RFC 4733, section 3.2 (table 3) for the event codes.
public struct DTMFDigit: Hashable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// The telephone event of RFC 4733: 0 to 9 for the digits, 10 for `*`, 11 for `#`, 12 to 15 for A to D.
    package let eventCode: UInt8

    /// The digit with the RFC 4733 event code `eventCode`, or nil above 15.
    package init?(eventCode: UInt8) {
        guard eventCode < 16 else { return nil }
        self.eventCode = eventCode
    }

    /// The digit written as `character`, or nil when there is none.
    ///
    /// Only capital A to D: ITU-T Q.23 writes them so, and a lower-case letter in a digit string is more often a
    /// slip than a fourth-column key.
    public init?(_ character: Character) {
        guard let ascii = character.asciiValue, let code = Self.characters.firstIndex(of: ascii) else { return nil }
        eventCode = UInt8(code)
    }

    /// The key in row `row` and column `column` of the keypad, each 0 to 3 from the top left.
    init(row: Int, column: Int) {
        // Event codes as hexadecimal digits, the last row first, each row read from the right.
        let keypad: UInt64 = 0xFB0A_E987_D654_C321
        eventCode = UInt8((keypad >> UInt64(((row & 3) &* 4 &+ (column & 3)) &* 4)) & 0xF)
    }

    /// All sixteen, in the order of their event codes.
    public static let all: [DTMFDigit] = (0..<16).compactMap { DTMFDigit(eventCode: $0) }

    /// The row's frequency in Hz: 697, 770, 852 or 941.
    package var lowFrequency: Double {
        switch eventCode {
        case 1, 2, 3, 12: Self.lowFrequencies.0
        case 4, 5, 6, 13: Self.lowFrequencies.1
        case 7, 8, 9, 14: Self.lowFrequencies.2
        default: Self.lowFrequencies.3
        }
    }

    /// The column's frequency in Hz: 1209, 1336, 1477 or 1633.
    package var highFrequency: Double {
        switch eventCode {
        case 1, 4, 7, 10: Self.highFrequencies.0
        case 2, 5, 8, 0: Self.highFrequencies.1
        case 3, 6, 9, 11: Self.highFrequencies.2
        default: Self.highFrequencies.3
        }
    }

    /// The key's label.
    public var character: Character { Character(Unicode.Scalar(Self.characters[Int(eventCode)])) }

    /// The key's label.
    public var description: String { String(character) }

    static var lowFrequencies: (Double, Double, Double, Double) { (697, 770, 852, 941) }
    static var highFrequencies: (Double, Double, Double, Double) { (1209, 1336, 1477, 1633) }

    private static let characters = Array("0123456789*#ABCD".utf8)
}
