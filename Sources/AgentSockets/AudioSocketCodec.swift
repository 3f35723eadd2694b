/// Asterisk's AudioSocket: kind, length, content.
///
///     01 00 10 uuid │ 10 01 40 sound, 16 bits, little endian │ 03 00 01 key │ 00 00 00 hang up
///
/// Agents send sound, and hang up. There is no mark and no clear: what was sent is played.
/// Source: Asterisk, res_audiosocket; notes of the protocol in its documentation.
package struct AudioSocketCodec: AgentCodec {
    package static let canClear = false
    package let sampleRate: Int
    package private(set) var malformedCount = 0
    private let soundKind: UInt8
    private let identifier: [UInt8]

    /// Sound of `sampleRate`, for a call that is told as `identifier`; nil where the format has no such rate.
    ///
    /// - Parameters:
    ///   - sampleRate: 8000, 12000, 16000, 24000, 32000, 44100, 48000, 96000 or 192000 Hz; older agents know the first alone.
    ///   - identifier: A UUID, of 128 bits.
    package init?(sampleRate: Int, identifier: UInt128) {
        guard let place = Self.rates.firstIndex(of: sampleRate) else { return nil }
        (self.sampleRate, soundKind) = (sampleRate, Self.firstSoundKind + UInt8(place))
        self.identifier = withUnsafeBytes(of: identifier.bigEndian) { Array($0) }
    }

    package mutating func encode(_ notice: AgentNotice) -> [AgentFrame] {
        switch notice {
        case .begin: [Self.frame(.identifier, identifier)]
        case .sound(let samples): stride(from: 0, to: samples.count, by: Self.soundLimit).map { frame(samples[$0...]) }
        case .key(let key): key.asciiValue.map { [Self.frame(.key, [$0])] } ?? []
        case .mark, .waiting, .speech, .cleared, .transferFailed: []
        case .end: [Self.frame(.hangUp, [])]
        }
    }

    private func frame(_ samples: ArraySlice<Int16>) -> AgentFrame {
        Self.frame(soundKind, LinearSound.bytes(samples.prefix(Self.soundLimit)))
    }

    package mutating func decode(_ frame: AgentFrame) -> [AgentRequest] {
        guard case .binary(let bytes) = frame, bytes.count >= 3, bytes.count - 3 == Int(bytes[1]) << 8 | Int(bytes[2])
        else {
            malformedCount += 1
            return []
        }
        switch bytes[0] {
        case Kind.hangUp.rawValue: return [.hangUp]
        // It says what has gone wrong with it; what follows from that it does itself.
        case Kind.error.rawValue: return []
        case soundKind where bytes.count > 3 && bytes.count % 2 == 1:
            return [.sound(LinearSound.samples(bytes[3...]))]
        default:
            malformedCount += 1
            return []
        }
    }

    private enum Kind: UInt8 {
        case hangUp = 0x00
        case identifier = 0x01
        case key = 0x03
        case error = 0xFF
    }

    private static func frame(_ kind: Kind, _ content: [UInt8]) -> AgentFrame { frame(kind.rawValue, content) }

    private static func frame(_ kind: UInt8, _ content: [UInt8]) -> AgentFrame {
        .binary(
            [kind, UInt8(truncatingIfNeeded: content.count >> 8), UInt8(truncatingIfNeeded: content.count)] + content
        )
    }

    private static let firstSoundKind: UInt8 = 0x10
    private static let rates = [8000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000, 96_000, 192_000]
    /// Samples in a frame, whose length has 16 bits.
    private static let soundLimit = 32_767
}
