internal import MediaEngine

/// Samples of 16 bits, little endian, as bytes.
enum LinearSound {
    static func bytes(_ samples: some Collection<Int16>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(2 * samples.count)
        for sample in samples {
            bytes.append(UInt8(truncatingIfNeeded: sample))
            bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
        }
        return bytes
    }

    /// Of an even number of bytes.
    static func samples(_ bytes: ArraySlice<UInt8>) -> [Int16] {
        stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { place in
            Int16(bitPattern: UInt16(bytes[place]) | UInt16(bytes[place + 1]) << 8)
        }
    }
}

/// The same in pieces that end anywhere: an odd byte at the end of one belongs to the next one.
struct LinearSoundStream: Sendable {
    private var oddByte: UInt8?

    mutating func samples(_ bytes: [UInt8]) -> [Int16] {
        let whole = (oddByte.map { [$0] } ?? []) + bytes
        oddByte = whole.count % 2 == 1 ? whole.last : nil
        return LinearSound.samples(whole.prefix(whole.count / 2 * 2))
    }

    /// What comes next begins a sample.
    mutating func reset() { oddByte = nil }
}

/// Samples as bytes of u-law.
enum MuLawSound {
    static func bytes(_ samples: [Int16]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: samples.count)
        var room = bytes.mutableSpan
        G711.encodeMuLaw(samples.span, into: &room)
        return bytes
    }

    static func samples(_ bytes: [UInt8]) -> [Int16] {
        var samples = [Int16](repeating: 0, count: bytes.count)
        var room = samples.mutableSpan
        G711.decodeMuLaw(bytes.span, into: &room)
        return samples
    }
}
