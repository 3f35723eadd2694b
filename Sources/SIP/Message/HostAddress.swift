/// The binary form of a host that is an IP address, by which two ways to write it compare equal.
///
/// Source: RFC 5954, section 4; RFC 4291, section 2.2
package struct HostAddress: Hashable, Sendable {
    private let isIPv4: Bool
    private let high: UInt64
    private let low: UInt64

    /// Nil when `host` is a name, or an address that is not written by the rules; brackets are left out or not.
    package init?(_ host: Bytes) {
        if let address = Self.ipv4(host) {
            (isIPv4, high, low) = (true, 0, UInt64(address))
            return
        }
        let isBracketed = host.first == .openBracket && host.last == .closeBracket
        guard let (high, low) = Self.ipv6(isBracketed ? host.dropFirst().dropLast() : host) else { return nil }
        (isIPv4, self.high, self.low) = (false, high, low)
    }

    private static func ipv4(_ text: Bytes) -> UInt32? {
        guard text.count <= 15 else { return nil }
        let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard part.count <= 3, let value = part.decimal(UInt8.self) else { return nil }
            address = address << 8 | UInt32(value)
        }
        return address
    }

    private static func ipv6(_ text: Bytes) -> (UInt64, UInt64)? {
        guard text.count <= 45 else { return nil }
        var head: [UInt16] = []
        var tail: [UInt16] = []
        var isTail = false
        var parts = text.split(separator: .colon, omittingEmptySubsequences: false)
        guard parts.count >= 3 else { return nil }
        // A double colon at an end leaves two empty parts, in between one.
        if parts[0].isEmpty {
            guard parts[1].isEmpty else { return nil }
            parts.removeFirst()
        }
        if let last = parts.last, last.isEmpty {
            guard parts[parts.count - 2].isEmpty else { return nil }
            parts.removeLast()
        }
        for (offset, part) in parts.enumerated() {
            if part.isEmpty {
                guard !isTail else { return nil }
                isTail = true
                continue
            }
            var groups: [UInt16] = []
            if offset == parts.count - 1, let address = ipv4(part) {
                groups = [UInt16(truncatingIfNeeded: address >> 16), UInt16(truncatingIfNeeded: address)]
            } else {
                guard part.count <= 4 else { return nil }
                var value: UInt16 = 0
                for byte in part {
                    guard let digit = byte.hexadecimalValue else { return nil }
                    value = value << 4 | UInt16(digit)
                }
                groups = [value]
            }
            if isTail { tail += groups } else { head += groups }
        }
        let missing = 8 - head.count - tail.count
        guard isTail ? missing >= 1 : missing == 0 else { return nil }
        let all = head + Array(repeating: 0, count: missing) + tail
        let high = all[..<4].reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
        return (high, all[4...].reduce(UInt64(0)) { $0 << 16 | UInt64($1) })
    }
}

/// Whether two hosts are the same: as addresses in binary form, as names without case.
func isSameHost(_ one: Bytes, _ other: Bytes) -> Bool {
    if one.isNamed(other) { return true }
    guard let address = HostAddress(one) else { return false }
    return address == HostAddress(other)
}
