@testable import MediaEngine
import Testing

struct DTMFSequenceTests {
    /// ITU-T Q.23, table 1; RFC 4733, table 3.
    @Test(arguments: [
        ("1", 1, 697.0, 1209.0), ("2", 2, 697, 1336), ("3", 3, 697, 1477), ("A", 12, 697, 1633),
        ("4", 4, 770, 1209), ("5", 5, 770, 1336), ("6", 6, 770, 1477), ("B", 13, 770, 1633),
        ("7", 7, 852, 1209), ("8", 8, 852, 1336), ("9", 9, 852, 1477), ("C", 14, 852, 1633),
        ("*", 10, 941, 1209), ("0", 0, 941, 1336), ("#", 11, 941, 1477), ("D", 15, 941, 1633),
    ])
    func `each key has its frequencies and event code`(key: String, code: Int, low: Double, high: Double) throws {
        let digit = try #require(DTMFDigit(Character(key)))
        #expect(digit.eventCode == code)
        #expect(DTMFDigit(eventCode: UInt8(code)) == digit)
        #expect(digit.lowFrequency == low)
        #expect(digit.highFrequency == high)
        #expect(digit.description == key)
    }

    @Test func `event codes above 15 are no digits`() {
        #expect(DTMFDigit(eventCode: 16) == nil)
        #expect(DTMFDigit(eventCode: 255) == nil)
    }

    @Test func `commas pause for 2 s and blanks mean nothing`() throws {
        let sequence = try DTMFSequence(parsing: "15 9#,,A")
        #expect(sequence.description == "159#,,A")
        #expect(sequence.elements[4] == .pause(.seconds(2)))
        #expect(sequence.digits.map(\.description).joined() == "159#A")
        #expect(try DTMFSequence(parsing: "").elements.isEmpty)
    }

    @Test(arguments: [
        ("12a", "a", 3), ("x", "x", 1), ("1 2!", "!", 4), ("1\n", "\n", 2), ("٣", "٣", 1), ("1👍", "👍", 2),
    ])
    func `anything else is refused with its position`(text: String, character: String, position: Int) {
        let error = #expect(throws: ToneError.self) { try DTMFSequence(parsing: text) }
        #expect(error?.code == .invalidDigit)
        #expect(error?.message.contains("'\(character)' at position \(position) ") == true)
    }
}
