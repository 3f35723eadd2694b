import Foundation
import Glibc
@testable import MediaEngine
import MediaEngineTesting

/// A far end that speaks into a room, and a canceller that listens there, 16 kHz, 10 ms at a time.
final class EchoRig {
    /// What the microphone heard.
    private(set) var captured: [Int16] = []
    /// What the canceller gave.
    private(set) var output: [Int16] = []

    let path: AcousticPath
    let canceller: EchoCanceller
    /// Changes what the microphone heard before the canceller gets it.
    var capture: (([Int16]) -> [Int16])?
    private let far: [Int16]
    private let near: [Int16]
    private var tick = 0

    init(
        _ room: AcousticPathConfiguration = AcousticPathConfiguration(),
        canceller: EchoCanceller = EchoCanceller(),
        far: [Int16],
        near: [Int16] = []
    ) {
        path = AcousticPath(room)
        self.canceller = canceller
        self.far = far
        self.near = near
    }

    /// Where the next tick begins, in seconds.
    var time: Double { Double(tick) / 100 }

    /// Runs until `seconds`.
    func run(until seconds: Double) {
        while time < seconds {
            let range = tick * 160..<tick * 160 + 160
            let played = Self.part(of: far, range)
            var heard = [Int16](repeating: 0, count: 160)
            var microphone = heard.mutableSpan
            path.process(played: played.span, near: Self.part(of: near, range).span, into: &microphone)
            if let capture { heard = capture(heard) }
            var result = [Int16](repeating: 0, count: 160)
            var samples = result.mutableSpan
            canceller.process(captured: heard.span, reference: played.span, into: &samples)
            captured += heard
            output += result
            tick += 1
        }
    }

    /// By how many dB less comes out than goes in between two instants, in seconds.
    func reduction(_ from: Double, _ to: Double) -> Double {
        let range = Int(from * 16000)..<Int(to * 16000)
        return 10 * log10((Self.energy(captured[range]) + 1) / (Self.energy(output[range]) + 1))
    }

    static func energy(_ samples: ArraySlice<Int16>) -> Double {
        samples.reduce(0) { $0 + Double($1) * Double($1) }
    }

    private static func part(of samples: [Int16], _ range: Range<Int>) -> [Int16] {
        (0..<range.count).map { range.lowerBound + $0 < samples.count ? samples[range.lowerBound + $0] : 0 }
    }

    /// `seconds` of the shipped speech at 16 kHz, again and again, from `start` on; another `pitch` makes it faster and
    /// higher, or slower and lower: another voice.
    static func speech(_ seconds: Double, from start: Double = 0, gain: Double = 1, pitch: Double = 1) throws -> [Int16]
    {
        let path = TestFiles.folder.appendingPathComponent("../../Examples/Resources/speech.wav").standardizedFileURL
            .path
        let bytes = try TestFiles.bytes(path).dropFirst(44)
        let samples = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
            Double(Int16(bitPattern: UInt16(bytes[index]) | UInt16(bytes[index + 1]) << 8)) * gain
        }
        let first = start * 16000
        return (0..<Int(seconds * 16000)).map { index in
            let place = first + Double(index) * pitch
            let (before, share) = (Int(place), place - place.rounded(.down))
            let (left, right) = (samples[before % samples.count], samples[(before + 1) % samples.count])
            return Int16(clamping: Int(left + (right - left) * share))
        }
    }
}
