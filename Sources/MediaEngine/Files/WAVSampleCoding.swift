/// How the samples of a WAV file are written, and how each becomes 16 bits.
///
/// Source: Microsoft, "Multiple channel audio data and WAVE files"; format tags of RFC 2361.
package enum WAVSampleCoding: Hashable, Sendable, CustomStringConvertible {
    /// Whole numbers: unsigned in one byte, signed little-endian in two to four.
    case integer(byteCount: Int)
    /// IEEE 754 numbers, full scale 1.0, in four or eight bytes.
    case float(byteCount: Int)
    /// G.711 µ-law.
    case muLaw
    /// G.711 A-law.
    case aLaw

    /// Bytes of one sample.
    package var byteCount: Int {
        switch self {
        case .integer(let byteCount), .float(let byteCount): byteCount
        case .muLaw, .aLaw: 1
        }
    }

    /// "16-bit integer", "32-bit float", "µ-law" or "A-law".
    package var description: String {
        switch self {
        case .integer(let byteCount): "\(byteCount * 8)-bit integer"
        case .float(let byteCount): "\(byteCount * 8)-bit float"
        case .muLaw: "µ-law"
        case .aLaw: "A-law"
        }
    }

    /// Decodes the samples at the start of `bytes` into all of `target`.
    ///
    /// Longer samples are rounded to the nearest 16-bit value; what exceeds full scale is clipped, and a float that is
    /// not a number becomes silence.
    func decode(_ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableBufferPointer<Int16>) {
        precondition(bytes.count >= target.count * byteCount)
        switch self {
        case .integer(1):
            for index in target.indices { target[index] = Int16(Int(bytes[index]) - 128) << 8 }
        case .integer(2):
            for index in target.indices {
                target[index] = Int16(
                    littleEndian: bytes.loadUnaligned(fromByteOffset: index &* 2, as: Int16.self)
                )
            }
        case .integer(3):
            for index in target.indices {
                let at = index &* 3
                let low = Int32(bytes[at]) | Int32(bytes[at &+ 1]) << 8
                let value = low | Int32(Int8(bitPattern: bytes[at &+ 2])) << 16
                target[index] = Int16(clamping: (value &+ 0x80) >> 8)
            }
        case .integer:
            for index in target.indices {
                let value = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: index &* 4, as: Int32.self))
                target[index] = Int16(clamping: (Int64(value) &+ 0x8000) >> 16)
            }
        case .float(4):
            for index in target.indices {
                let bits = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
                target[index] = Self.int16(Double(Float(bitPattern: bits)))
            }
        case .float:
            for index in target.indices {
                let bits = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index &* 8, as: UInt64.self))
                target[index] = Self.int16(Double(bitPattern: bits))
            }
        case .muLaw:
            for index in target.indices { target[index] = Self.expandMuLaw(bytes[index]) }
        case .aLaw:
            for index in target.indices { target[index] = Self.expandALaw(bytes[index]) }
        }
    }

    private static func int16(_ value: Double) -> Int16 {
        guard !value.isNaN else { return 0 }
        return Int16(min(max(value * 32768, -32768), 32767).rounded())
    }

    /// Source: ITU-T G.711, table 2a, scaled from 14 to 16 bits.
    private static func expandMuLaw(_ code: UInt8) -> Int16 {
        let bits = Int(~code)
        let magnitude = (((bits & 0x0F) << 3) + 0x84) << ((bits & 0x70) >> 4) - 0x84
        return Int16(bits & 0x80 != 0 ? -magnitude : magnitude)
    }

    /// Source: ITU-T G.711, table 1a, scaled from 13 to 16 bits.
    private static func expandALaw(_ code: UInt8) -> Int16 {
        let bits = Int(code ^ 0x55)
        let exponent = (bits & 0x70) >> 4
        let mantissa = (bits & 0x0F) << 4 + 8
        let magnitude = exponent == 0 ? mantissa : (mantissa + 0x100) << (exponent - 1)
        return Int16(bits & 0x80 != 0 ? magnitude : -magnitude)
    }
}
