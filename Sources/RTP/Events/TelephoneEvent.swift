import CallBasics

/// The payload of a telephone-event packet: one key, held for so long, ended or not.
///
///     0                   1                   2                   3
///     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///    |     event     |E|R| volume    |          duration             |
///    +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
///
/// Units: `duration` in units of the RTP clock rate, `volume` in -dBm0.
/// Source: RFC 4733, sections 2.3 and 3.2
package struct TelephoneEvent: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of the payload.
    package static let byteCount = 4
    /// The event code of a hook flash.
    package static let flash: UInt8 = 16
    /// The loudest to the quietest volume, 0 to 63 dB below 1 mW.
    package static let maximumVolume: UInt8 = 63

    /// The event's code: 0 to 9 digits, 10 `*`, 11 `#`, 12 to 15 A to D, 16 flash.
    package var code: UInt8
    /// Whether the event has ended.
    package var isEnd: Bool
    /// The tone's power below 1 mW, in dB: 0 to 63.
    package var volume: UInt8
    /// How long the event, or this segment of it, has lasted.
    package var duration: UInt16

    /// A payload with the given fields.
    package init(code: UInt8, isEnd: Bool, volume: UInt8, duration: UInt16) {
        self.code = code
        self.isEnd = isEnd
        self.volume = min(volume, Self.maximumVolume)
        self.duration = duration
    }

    /// Reads the payload; bytes behind the first four are left alone.
    ///
    /// Throws: `truncated`, or `zeroDuration`, which says that nothing has happened yet.
    package init(parsing bytes: Span<UInt8>) throws(RTPError) {
        guard bytes.count >= Self.byteCount else {
            throw RTPError(.truncated, found: bytes.count, required: Self.byteCount)
        }
        let duration = bytes.uint16(at: 2)
        guard duration > 0 else { throw RTPError(.zeroDuration, found: 0, required: 1) }
        self.init(code: bytes[0], isEnd: bytes[1] & 0x80 != 0, volume: bytes[1] & 0x3F, duration: duration)
    }

    /// Writes the payload to the first 4 bytes; answers 4, or 0 when `bytes` is shorter.
    @discardableResult
    package func serialize(into bytes: inout MutableSpan<UInt8>) -> Int {
        guard bytes.count >= Self.byteCount else { return 0 }
        bytes[0] = code
        bytes[1] = (isEnd ? 0x80 : 0) | volume
        bytes.store(duration, at: 2)
        return Self.byteCount
    }

    /// The code of a key: "0" to "9", "*", "#", "A" to "D" in either case, and "!" for a flash; nil for others.
    package static func code(of key: Character) -> UInt8? {
        switch key {
        case "0"..."9": key.wholeNumberValue.map { UInt8($0) }
        case "*": 10
        case "#": 11
        case "A", "a": 12
        case "B", "b": 13
        case "C", "c": 14
        case "D", "d": 15
        case "!": flash
        default: nil
        }
    }

    /// The key of a code, "!" for a flash; nil for codes above 16.
    package static func key(of code: UInt8) -> Character? {
        switch code {
        case 0...9: Character(UnicodeScalar(0x30 + code))
        case 10: "*"
        case 11: "#"
        case 12...15: Character(UnicodeScalar(0x41 + code - 12))
        case flash: "!"
        default: nil
        }
    }
}
