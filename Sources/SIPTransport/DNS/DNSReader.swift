internal import SIP

/// Reads the fields of a DNS message; it never reads beyond the bytes, and follows pointers to earlier places alone.
struct DNSReader {
    private let bytes: [UInt8]
    private(set) var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The same message, read from `index` on.
    func moved(to index: Int) -> DNSReader {
        var reader = self
        reader.index = index
        return reader
    }

    mutating func skip(_ count: Int) -> Bool {
        guard count <= bytes.count - index else { return false }
        index += count
        return true
    }

    mutating func number16() -> UInt16? { number(2).map { UInt16(truncatingIfNeeded: $0) } }
    mutating func number32() -> UInt32? { number(4).map { UInt32(truncatingIfNeeded: $0) } }
    mutating func number64() -> UInt64? { number(8) }

    private mutating func number(_ count: Int) -> UInt64? {
        let start = index
        guard skip(count) else { return nil }
        return bytes[start..<index].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A character string: one byte tells its length (RFC 1035, section 3.3).
    mutating func text() -> String? {
        guard index < bytes.count else { return nil }
        let start = index + 1
        guard skip(1 + Int(bytes[index])) else { return nil }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// Passes over a name, whatever its pointer leads to.
    mutating func skipName() -> Bool {
        while index < bytes.count {
            let count = Int(bytes[index])
            if count >= 0xC0 { return skip(2) }
            guard count < 0x40, skip(1 + count) else { return false }
            if count == 0 { return true }
        }
        return false
    }

    /// A name, put together where pointers lead (RFC 1035, section 4.1.4); nil when it is none that a host can have.
    mutating func name() -> DNSName? {
        var text: [UInt8] = []
        var (place, lowest) = (index, index)
        guard skipName() else { return nil }
        while place < bytes.count {
            let count = Int(bytes[place])
            if count >= 0xC0 {
                guard place + 1 < bytes.count else { return nil }
                let target = (count & 0x3F) << 8 | Int(bytes[place + 1])
                // Each pointer leads further to the front, so that none leads in a circle.
                guard target < lowest else { return nil }
                (place, lowest) = (target, target)
                continue
            }
            guard count < 0x40, place + count < bytes.count else { return nil }
            if count == 0 { return DNSName(text.isEmpty ? [0x2E] : text) }
            let label = bytes[(place + 1)...(place + count)]
            guard text.count + count < 256, !label.contains(0x2E) else { return nil }
            if !text.isEmpty { text.append(0x2E) }
            text += label
            place += 1 + count
        }
        return nil
    }
}
