/// Reads a header's value from front to back; it never moves past the end.
struct FieldScanner {
    private let bytes: Bytes
    private(set) var index: Int

    init(_ bytes: Bytes) {
        self.bytes = bytes
        index = bytes.startIndex
    }

    /// The byte that comes next; nil at the end.
    var next: UInt8? { index < bytes.endIndex ? bytes[index] : nil }
    var isAtEnd: Bool { index == bytes.endIndex }
    /// What was not read yet.
    var rest: Bytes { bytes[index...] }

    mutating func skipBlanks() {
        while index < bytes.endIndex, bytes[index].isBlank { index += 1 }
    }

    /// Takes `byte` if it comes next.
    mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    /// Takes `byte` and the blanks around it, if it comes next; else takes nothing but blanks.
    mutating func takeSeparator(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard take(byte) else { return false }
        skipBlanks()
        return true
    }

    /// Takes the bytes as long as `isTaken` holds; nil when there is none.
    mutating func take(while isTaken: (UInt8) -> Bool) -> Bytes? {
        let start = index
        index += bytes[start...].withUnsafeBufferPointer { rest in
            var count = 0
            while count < rest.count, isTaken(rest[count]) { count += 1 }
            return count
        }
        return start < index ? bytes[start..<index] : nil
    }

    mutating func takeToken() -> Bytes? { take { $0.isToken } }

    /// Takes a quoted string with its quotes; nil when none comes next, or its second quote is missing.
    mutating func takeQuotedString() -> Bytes? {
        guard next == .quote else { return nil }
        var end = index + 1
        while end < bytes.endIndex {
            switch bytes[end] {
            case .quote:
                defer { index = end + 1 }
                return bytes[index...end]
            case .backslash: end += 2
            default: end += 1
            }
        }
        return nil
    }

    /// Takes a host: a name, an IPv4 address, or an IPv6 address in brackets, which are part of it.
    mutating func takeHost() -> Bytes? {
        guard next == .openBracket else {
            return take { $0.isAlphanumeric || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F }
        }
        let start = index
        var end = index + 1
        while end < bytes.endIndex, bytes[end].hexadecimalValue != nil || bytes[end] == .colon || bytes[end] == 0x2E {
            end += 1
        }
        guard end > start + 2, end < bytes.endIndex, bytes[end] == .closeBracket else { return nil }
        index = end + 1
        return bytes[start...end]
    }
}

extension Bytes {
    /// The text of a value that may be a quoted string: without quotes and backslashes.
    var unquoted: Bytes {
        guard count >= 2, first == .quote, last == .quote else { return self }
        let inner = dropFirst().dropLast()
        guard inner.contains(.backslash) else { return inner }
        var plain: [UInt8] = []
        var index = inner.startIndex
        while index < inner.endIndex {
            if inner[index] == .backslash, index + 1 < inner.endIndex { index += 1 }
            plain.append(inner[index])
            index += 1
        }
        return plain[...]
    }

    /// The bytes as a quoted string.
    var quoted: Bytes {
        var text: [UInt8] = [.quote]
        for byte in self {
            if byte == .quote || byte == .backslash || byte == 0 { text.append(.backslash) }
            text.append(byte)
        }
        text.append(.quote)
        return text[...]
    }

    /// The pieces between commas that stand outside of quotes and angle brackets, without blanks around them.
    ///
    /// Nil when a quote or a bracket is not closed, for nobody knows then where a value ends.
    func listValues() -> [Bytes]? {
        var values: [Bytes] = []
        var start = startIndex
        var index = startIndex
        var isBracketed = false
        while index < endIndex {
            switch self[index] {
            case .quote where !isBracketed:
                var scanner = FieldScanner(self[index...])
                guard scanner.takeQuotedString() != nil else { return nil }
                index = scanner.index
                continue
            case .less: isBracketed = true
            case .greater: isBracketed = false
            case .comma where !isBracketed:
                values.append(self[start..<index].trimmed)
                start = index + 1
            default: break
            }
            index += 1
        }
        guard !isBracketed else { return nil }
        values.append(self[start...].trimmed)
        return values
    }
}
