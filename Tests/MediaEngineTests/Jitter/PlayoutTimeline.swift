@testable import MediaEngine

/// A stream of 20 ms packets through a buffer: arrivals above, playout below, one character for 10 ms.
///
///     arrivals   the last digit of the packet that arrives in this tick, `.` for none, a letter for an event that takes
///                the number of its place in the alphabet, a capital for a packet that nothing decodes; what stands in
///                brackets arrives in one tick
///     playout    the last digit of the packet that is heard, `-` invented, `r` recovered, ` ` silence
struct PlayoutTimeline {
    /// What is heard, tick by tick.
    private(set) var heard = ""
    /// What the playout counted.
    let statistics: PlayoutStatistics

    /// Plays `arrivals`.
    ///
    /// - Parameters:
    ///   - arrivals: What comes when.
    ///   - delay: How long packets are held back.
    ///   - payload: A packet's payload; its second byte is 1 for one with a copy, 99 for one that is corrupt.
    ///   - timestamp: A packet's time stamp, of a clock at 8 kHz.
    ///   - isMarked: Whether a packet bears the marker.
    init(
        _ arrivals: String,
        delay: PlayoutDelay,
        payload: (Int) -> [UInt8] = Self.plain,
        timestamp: (Int) -> UInt32 = { UInt32($0 * 160) },
        isMarked: (Int) -> Bool = { _ in false }
    ) {
        let playout = Playout(NumberDecoder(), delay: delay)
        var block = [Int16](repeating: 0, count: 80)
        var highest = 0
        var now = MediaTime.zero
        var isBurst = false
        for character in arrivals {
            if character == "[" || character == "]" { isBurst = character == "[" }
            if character.isLetter {
                let number = Int(character.asciiValue ?? 65) % 32 - 1
                highest = max(highest, number)
                var header = PacketHeader(sequenceNumber: Self.sequence(number), isNumberOnly: true, arrival: now)
                header.isUndecodable = character.isUppercase
                let nothing: [UInt8] = []
                playout.insert(header, payload: nothing.span)
            }
            if let digit = character.wholeNumberValue {
                // The nearest number that ends so.
                let number = highest + (digit - highest % 10 + 15) % 10 - 5
                highest = max(highest, number)
                let header = PacketHeader(
                    rtpTimestamp: timestamp(number),
                    sequenceNumber: Self.sequence(number),
                    isMarked: isMarked(number),
                    arrival: now
                )
                playout.insert(header, payload: payload(number).span)
            }
            guard !isBurst else { continue }
            var samples = block.mutableSpan
            playout.play(into: &samples, at: now)
            heard += Self.symbol(block[0])
            now += .milliseconds(10)
        }
        statistics = playout.statistics
    }

    /// The payload of a packet that holds no other.
    static func plain(_ number: Int) -> [UInt8] { [UInt8(number % 250), 0] }

    /// The payload of a packet that holds a copy of the one before.
    static func withCopy(_ number: Int) -> [UInt8] { [UInt8(number % 250), 1] }

    /// Numbers wrap soon.
    private static func sequence(_ number: Int) -> UInt16 { UInt16(truncatingIfNeeded: 65534 + number) }

    private static func symbol(_ sample: Int16) -> String {
        switch sample {
        case 0: " "
        case 10: "-"
        case 20: "r"
        default: "\((sample - 100) % 10)"
        }
    }
}

extension Playout {
    /// A playout of one codec, whose time stamps count at `clockRate`.
    convenience init(_ decoder: any AudioDecoder, delay: PlayoutDelay, clockRate: Int = 8000) {
        self.init([Codec(payloadType: 0, decoder: decoder, clockRate: clockRate)], delay: delay)
    }
}

/// A decoder whose packets hold one number, which is the value of every sample; 10 concealed, 20 recovered from FEC.
final class NumberDecoder: AudioDecoder {
    let format = AudioFormat(sampleRate: 8000)

    func frameCount(of payload: Span<UInt8>) -> Int { payload.count == 2 ? 160 : 0 }

    func decode(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        for index in 0..<160 { samples[index] = 100 + Int16(payload[0]) }
        return payload[1] == 99 ? 0 : 160
    }

    func decodeFEC(in next: Span<UInt8>, frameCount: Int, into samples: inout MutableSpan<Int16>) -> Int {
        guard next[1] == 1 else { return 0 }
        for index in 0..<frameCount { samples[index] = 20 }
        return frameCount
    }

    func carriesFEC(_ payload: Span<UInt8>) -> Bool { payload[1] == 1 }

    func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        for index in 0..<frameCount { samples[index] = 10 }
    }

    func reset() {}
}
