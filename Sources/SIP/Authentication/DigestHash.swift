internal import Cryptography

/// The hash functions of digest authentication.
///
/// Source: RFC 7616, section 3.2
package enum DigestHash: Hashable, Sendable, CaseIterable {
    case md5, sha256, sha512_256

    /// Whether the library offers it; in FIPS mode it has no MD5.
    package var isAvailable: Bool { function.isAvailable }

    /// How many hexadecimal digits a hash has.
    package var digitCount: Int { self == .md5 ? 32 : 64 }

    /// The hash of the parts with colons between them, in lower-case hexadecimal digits.
    ///
    /// To ask for one that is not available is a mistake of the caller.
    package func hex(_ parts: Bytes...) -> Bytes {
        function.hash(Array(parts.joined(separator: [.colon]))).hexadecimal
    }

    private var function: HashFunction {
        switch self {
        case .md5: .md5
        case .sha256: .sha256
        case .sha512_256: .sha512_256
        }
    }
}

extension Sequence where Element == UInt8 {
    /// Two lower-case digits for each byte.
    var hexadecimal: Bytes {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * underestimatedCount)
        for byte in self {
            digits.append(.hexadecimalDigit(byte >> 4))
            digits.append(.hexadecimalDigit(byte & 15))
        }
        return digits[...]
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    /// All lower-case digits, the highest first.
    var hexadecimal: Bytes {
        var digits: [UInt8] = []
        digits.append(hexadecimal: self)
        return digits[...]
    }
}

extension [UInt8] {
    /// Appends all lower-case digits, the highest first.
    mutating func append<Number: FixedWidthInteger & UnsignedInteger>(hexadecimal number: Number) {
        reserveCapacity(count + Number.bitWidth / 4)
        for shift in stride(from: Number.bitWidth - 4, through: 0, by: -4) {
            append(.hexadecimalDigit(UInt8(truncatingIfNeeded: number >> shift) & 15))
        }
    }
}

extension ArraySlice<UInt8> {
    /// The number that hexadecimal digits of its full width write; nil when they are fewer, more, or others.
    func hexadecimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type = Number.self) -> Number? {
        guard count == Number.bitWidth / 4 else { return nil }
        var value: Number = 0
        for byte in self {
            guard let digit = byte.hexadecimalValue else { return nil }
            value = value << 4 | Number(digit)
        }
        return value
    }
}

extension UInt8 {
    fileprivate static func hexadecimalDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
