/// Walks through the bytes of a JSON text, value by value, without building a tree of it.
///
/// It never traps: what is no JSON, or ends too early, is an error that says where.
/// Source: RFC 8259
struct JSONScanner {
    /// Where the text is wrong, and why.
    struct Failure: Error {
        let position: Int
        let message: String
    }

    private let bytes: [UInt8]
    private(set) var position = 0

    private static let deepestNesting = 32
    private static let longestNumber = 40
    private static let longestString = 1 << 16

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads an object: `body` gets each key, and must read the value or `skip` it.
    mutating func object(_ body: (String, inout JSONScanner) throws(Failure) -> Void) throws(Failure) {
        try expect(UInt8(ascii: "{"))
        guard !takes(UInt8(ascii: "}")) else { return }
        while true {
            let key = try string()
            try expect(UInt8(ascii: ":"))
            try body(key, &self)
            if takes(UInt8(ascii: "}")) { return }
            try expect(UInt8(ascii: ","))
        }
    }

    /// Reads an array: `body` gets the index of each element, and must read it or `skip` it.
    mutating func array(_ body: (Int, inout JSONScanner) throws(Failure) -> Void) throws(Failure) {
        try expect(UInt8(ascii: "["))
        guard !takes(UInt8(ascii: "]")) else { return }
        var index = 0
        while true {
            try body(index, &self)
            index += 1
            if takes(UInt8(ascii: "]")) { return }
            try expect(UInt8(ascii: ","))
        }
    }

    /// Reads a number.
    mutating func number() throws(Failure) -> Double {
        skipBlanks()
        let start = position
        while position < bytes.count, position - start <= Self.longestNumber, Self.isOfNumber(bytes[position]) {
            position += 1
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let value = Double(text), value.isFinite else {
            // What is cut off within a number or a word is cut off, not wrong.
            position = position == bytes.count || bytes.count - start < 5 ? bytes.count : start
            throw failure("a number was expected")
        }
        return value
    }

    /// Reads `null` if it is there, and answers whether it was.
    mutating func takesNull() throws(Failure) -> Bool { try takesWord("null") }

    /// Reads a whole number in `range`.
    mutating func integer(in range: ClosedRange<Int>) throws(Failure) -> Int {
        let start = position
        let value = try number()
        guard value.rounded() == value, value >= Double(range.lowerBound), value <= Double(range.upperBound) else {
            position = start
            throw failure("a whole number from \(range.lowerBound) to \(range.upperBound) was expected")
        }
        return Int(value)
    }

    /// Reads a string.
    mutating func string() throws(Failure) -> String {
        try expect(UInt8(ascii: "\""))
        var text: [UInt8] = []
        while position < bytes.count, text.count < Self.longestString {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text += try escaped()
            case 0..<0x20: throw failure("a string holds a control character")
            default: text.append(byte)
            }
        }
        throw failure("a string does not end")
    }

    /// Steps over a value of any kind.
    mutating func skip() throws(Failure) {
        try skip(depth: 0)
    }

    /// Makes sure that nothing but blanks follows.
    mutating func end() throws(Failure) {
        skipBlanks()
        guard position == bytes.count else { throw failure("something follows the end") }
    }

    func failure(_ message: String) -> Failure {
        Failure(position: position, message: position < bytes.count ? message : message + ", but the text ends")
    }

    // MARK: Parts

    private mutating func skip(depth: Int) throws(Failure) {
        guard depth < Self.deepestNesting else { throw failure("values are nested too deeply") }
        skipBlanks()
        guard position < bytes.count else { throw failure("a value was expected") }
        switch bytes[position] {
        case UInt8(ascii: "{"):
            try object { _, scanner throws(Failure) in try scanner.skip(depth: depth + 1) }
        case UInt8(ascii: "["):
            try array { _, scanner throws(Failure) in try scanner.skip(depth: depth + 1) }
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "t") where try takesWord("true"): break
        case UInt8(ascii: "f") where try takesWord("false"): break
        case UInt8(ascii: "n") where try takesWord("null"): break
        default: _ = try number()
        }
    }

    private mutating func takesWord(_ word: StaticString) throws(Failure) -> Bool {
        skipBlanks()
        let count = word.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        for index in 0..<count where bytes[position + index] != word.utf8Start[index] { return false }
        position += count
        return true
    }

    private mutating func escaped() throws(Failure) -> [UInt8] {
        guard position < bytes.count else { throw failure("a string does not end") }
        let byte = bytes[position]
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [8]
        case UInt8(ascii: "f"): return [12]
        case UInt8(ascii: "n"): return [10]
        case UInt8(ascii: "r"): return [13]
        case UInt8(ascii: "t"): return [9]
        case UInt8(ascii: "u"): break
        default: throw failure("a string holds an escape that is none")
        }
        let unit = try hexadecimal()
        guard 0xD800...0xDBFF ~= unit else { return Self.utf8(unit) }
        let isPair = bytes.count - position >= 6 && bytes[position] == UInt8(ascii: "\\")
        guard isPair, bytes[position + 1] == UInt8(ascii: "u") else { return Self.utf8(0xFFFD) }
        position += 2
        let low = try hexadecimal()
        guard 0xDC00...0xDFFF ~= low else { return Self.utf8(0xFFFD) }
        return Self.utf8(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func hexadecimal() throws(Failure) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard position < bytes.count, let digit = Character(UnicodeScalar(bytes[position])).hexDigitValue else {
                throw failure("four hexadecimal digits were expected")
            }
            value = value * 16 + UInt32(digit)
            position += 1
        }
        return value
    }

    private static func utf8(_ value: UInt32) -> [UInt8] {
        Array(String(Character(UnicodeScalar(value) ?? "\u{FFFD}")).utf8)
    }

    private mutating func expect(_ byte: UInt8) throws(Failure) {
        guard takes(byte) else { throw failure("'\(Character(UnicodeScalar(byte)))' was expected") }
    }

    private mutating func takes(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipBlanks() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}
