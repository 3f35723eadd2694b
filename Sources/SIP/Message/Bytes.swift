/// A piece of a message; it shares the memory of the whole.
package typealias Bytes = ArraySlice<UInt8>

extension UInt8 {
    static var carriageReturn: UInt8 { 0x0D }
    static var lineFeed: UInt8 { 0x0A }
    static var space: UInt8 { 0x20 }
    static var quote: UInt8 { 0x22 }
    static var percent: UInt8 { 0x25 }
    static var comma: UInt8 { 0x2C }
    static var slash: UInt8 { 0x2F }
    static var colon: UInt8 { 0x3A }
    static var semicolon: UInt8 { 0x3B }
    static var less: UInt8 { 0x3C }
    static var equals: UInt8 { 0x3D }
    static var greater: UInt8 { 0x3E }
    static var questionMark: UInt8 { 0x3F }
    static var at: UInt8 { 0x40 }
    static var openBracket: UInt8 { 0x5B }
    static var backslash: UInt8 { 0x5C }
    static var closeBracket: UInt8 { 0x5D }

    /// A space or a tab.
    var isBlank: Bool { self == 0x20 || self == 0x09 }
    var isDigit: Bool { 0x30...0x39 ~= self }
    var isAlphanumeric: Bool { isDigit || 0x61...0x7A ~= self | 0x20 }

    /// A byte of a token: a letter, a digit, or one of `-.!%*_+`'~` (RFC 3261, section 25.1).
    var isToken: Bool {
        switch self {
        case 0x21, 0x25, 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5F, 0x60, 0x7E: true
        default: isAlphanumeric
        }
    }

    /// The value of a hexadecimal digit; nil when it is none.
    var hexadecimalValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }

    /// The same letter in lower case, where it is an ASCII letter.
    var lowercase: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }
}

extension [UInt8] {
    /// Appends a number in decimal digits.
    mutating func append(decimal number: some UnsignedInteger & FixedWidthInteger) {
        var (unit, rest): (UInt64, UInt64) = (1, UInt64(number))
        while rest / unit >= 10 { unit *= 10 }
        while unit > 0 {
            append(0x30 + UInt8(truncatingIfNeeded: rest / unit))
            (rest, unit) = (rest % unit, unit / 10)
        }
    }
}

extension ArraySlice<UInt8> {
    package init(_ text: some StringProtocol) { self = Array(text.utf8)[...] }

    /// The decimal digits of a number.
    init(decimal number: some UnsignedInteger & FixedWidthInteger) {
        var digits: [UInt8] = []
        digits.append(decimal: number)
        self = digits[...]
    }

    /// The bytes as text; what is not UTF-8 is replaced.
    package var text: String { String(decoding: self, as: UTF8.self) }

    /// The bytes without blanks at either end.
    var trimmed: Bytes {
        var (start, end) = (startIndex, endIndex)
        while start < end, self[start].isBlank { start += 1 }
        while start < end, self[end - 1].isBlank { end -= 1 }
        return self[start..<end]
    }

    /// Whether all bytes are those of a token, and there is one.
    var isToken: Bool { !isEmpty && allSatisfy(\.isToken) }

    /// The number that the bytes write in decimal digits and nothing else; nil when it does not fit.
    func decimal<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        guard !isEmpty else { return nil }
        var value: Number = 0
        for byte in self {
            guard byte.isDigit else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Number(byte - 0x30))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }

    /// Whether the bytes write `name`, in whatever case of its ASCII letters.
    func isNamed(_ name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount else { return false }
        return name.withUTF8Buffer { other in
            for offset in 0..<other.count {
                guard self[startIndex + offset].lowercase == other[offset].lowercase else { return false }
            }
            return true
        }
    }

    /// Whether the bytes are the same, in whatever case of their ASCII letters.
    func isNamed(_ other: some Collection<UInt8>) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.lowercase == $1.lowercase }
    }

    /// Whether CR, LF or NUL is among the bytes: they would end the line that they are written to.
    ///
    /// A quoted string may have a NUL behind a backslash (RFC 3261, section 25.1; RFC 4475, section 3.1.1.2).
    var wouldEndLine: Bool {
        let hasControl = withUnsafeBufferPointer { bytes in
            // All are looked at without a branch, so that many are looked at at once.
            var found: UInt8 = 0
            for byte in bytes { found |= byte == .carriageReturn || byte == .lineFeed || byte == 0 ? 1 : 0 }
            return found != 0
        }
        return hasControl && !isEachControlQuoted
    }

    private var isEachControlQuoted: Bool {
        var (isQuoted, isEscaped) = (false, false)
        for byte in self {
            if byte == .carriageReturn || byte == .lineFeed || byte == 0 && !isEscaped { return false }
            if byte == .quote, !isEscaped { isQuoted.toggle() }
            isEscaped = byte == .backslash && isQuoted && !isEscaped
        }
        return !isQuoted
    }

    /// The bytes for a message: cut, and without control characters, since they come from outside.
    var excerpt: String {
        let shown = prefix(60).map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }
        return String(decoding: shown, as: UTF8.self) + (count > 60 ? "..." : "")
    }

    /// A copy that does not keep the whole message in memory.
    var detached: Bytes { Array(self)[...] }
}
