/// The two companding laws of telephony, as loops over whole packets.
///
/// A companded code is a tiny floating-point number: three bits of exponent and four of mantissa. So the loops let the
/// processor's own conversion find the exponent: the upper bits of a `Float` are the code, but for a constant. There is
/// neither table nor branch, and the compiler turns the loops into vector code.
/// Source: ITU-T G.711, tables 1a to 2b.
package enum G711 {
    /// In the bits of a `Float`, exponent 7 with an empty mantissa: what the smallest magnitude of segment 0 has.
    private static var segmentZero: UInt32 { (127 + 7) << 23 }
    /// Bits of a `Float`'s mantissa below the four that a code keeps.
    private static var droppedBitCount: UInt32 { 19 }
    /// Half a step: decoding answers the middle of a code's interval.
    private static var halfStep: UInt32 { 1 << 18 }
    /// Added to µ-law magnitudes so that the segments double in width.
    private static var muLawBias: Int32 { 132 }

    /// Writes the µ-law codes of `samples`.
    @_noAllocation @_noLocks
    package static func encodeMuLaw(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) {
        let count = min(samples.count, payload.count)
        for index in 0..<count {
            let sample = Int32(samples[index])
            let magnitude = min(sample < 0 ? 0 &- sample : sample, 32635) &+ muLawBias
            let code = (Float(magnitude).bitPattern &- segmentZero) &>> droppedBitCount
            let sign: UInt32 = sample < 0 ? 0x80 : 0
            payload[index] = ~UInt8(truncatingIfNeeded: code | sign)
        }
    }

    /// Writes the samples that µ-law codes stand for.
    @_noAllocation @_noLocks
    package static func decodeMuLaw(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) {
        let count = min(samples.count, payload.count)
        for index in 0..<count {
            let code = UInt32(~payload[index])
            let bits = (((code & 0x7F) &<< droppedBitCount) &+ segmentZero) | halfStep
            let magnitude = Int32(whole: Float(bitPattern: bits)) &- muLawBias
            samples[index] = Int16(truncatingIfNeeded: code & 0x80 != 0 ? 0 &- magnitude : magnitude)
        }
    }

    /// Writes the A-law codes of `samples`.
    @_noAllocation @_noLocks
    static func encodeALaw(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) {
        let count = min(samples.count, payload.count)
        for index in 0..<count {
            let sample = Int32(samples[index])
            let magnitude = sample ^ (sample &>> 31)
            let linear = UInt32(bitPattern: magnitude &>> 4)
            let curved = (Float(magnitude).bitPattern &- segmentZero) &>> droppedBitCount
            let code = magnitude < 256 ? linear : curved
            payload[index] = UInt8(truncatingIfNeeded: code) ^ (sample < 0 ? 0x55 : 0xD5)
        }
    }

    /// Writes the samples that A-law codes stand for.
    @_noAllocation @_noLocks
    static func decodeALaw(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) {
        let count = min(samples.count, payload.count)
        for index in 0..<count {
            let code = UInt32(payload[index] ^ 0xD5)
            let exponentAndMantissa = code & 0x7F
            let linear = Int32(bitPattern: (exponentAndMantissa &<< 4) | 8)
            let bits = ((exponentAndMantissa &<< droppedBitCount) &+ segmentZero) | halfStep
            let curved = Int32(whole: Float(bitPattern: bits))
            let magnitude = exponentAndMantissa < 16 ? linear : curved
            samples[index] = Int16(truncatingIfNeeded: code & 0x80 != 0 ? 0 &- magnitude : magnitude)
        }
    }
}

extension Int32 {
    /// A whole number from 0 to 2^23 - 1 that a `Float` holds exactly.
    ///
    /// Adding 2^23 moves the number into the lowest bits of the mantissa; the checked conversion would keep loops from
    /// becoming vector code.
    fileprivate init(whole value: Float) {
        self.init(bitPattern: (value + 8_388_608).bitPattern & 0x7F_FFFF)
    }
}
