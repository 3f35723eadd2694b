/// A piece of a description; it shares the memory of the whole.
typealias Bytes = ArraySlice<UInt8>

extension UInt8 {
    /// A space or a tab.
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// Printable ASCII other than the space.
    var isVisible: Bool { 0x21...0x7E ~= self }

    /// The same letter in lower case, where it is an ASCII letter.
    var lowercase: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }
}

extension ArraySlice<UInt8> {
    init(_ text: some StringProtocol) { self = Array(text.utf8)[...] }

    /// The bytes as text; what is not UTF-8 is replaced.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// The bytes without blanks at the front.
    var withoutLeadingBlanks: Bytes { drop { $0.isBlank } }

    /// The bytes without blanks at either end; nil when nothing is left.
    var trimmed: Bytes? {
        let start = withoutLeadingBlanks
        guard let last = start.lastIndex(where: { !$0.isBlank }) else { return nil }
        return start[...last]
    }

    /// Takes the next field, which stands between blanks, off the front; nil when there is none.
    mutating func takeField() -> Bytes? {
        let rest = withoutLeadingBlanks
        let end = rest.firstIndex { $0.isBlank } ?? rest.endIndex
        self = rest[end...]
        return end == rest.startIndex ? nil : rest[..<end]
    }

    /// Takes what stands before `separator` off the front, and the separator; all when there is none.
    mutating func take(before separator: UInt8) -> Bytes {
        guard let end = firstIndex(of: separator) else {
            defer { self = self[endIndex...] }
            return self
        }
        defer { self = self[(end + 1)...] }
        return self[..<end]
    }

    /// The number that the bytes write in decimal digits and nothing else; nil when it does not fit.
    func decimal<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        guard !isEmpty else { return nil }
        var value: Number = 0
        for byte in self {
            guard 0x30...0x39 ~= byte else { return nil }
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
}

extension String {
    /// Whether the text is `name`, in whatever case of its ASCII letters.
    func isNamed(_ name: String) -> Bool {
        guard utf8.count == name.utf8.count else { return false }
        return self == name || zip(utf8, name.utf8).allSatisfy { $0.lowercase == $1.lowercase }
    }

    /// The text for a message: cut, and without control characters, since it may come from outside.
    var excerpt: String {
        let bytes = utf8.prefix(60).map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }
        return String(decoding: bytes, as: UTF8.self) + (utf8.count > 60 ? "..." : "")
    }
}
