internal import MediaEngine

/// Takes the line's echo of what is played out of what is heard, as far as an adaptive filter can, for who listens for speech.
///
/// The canceller's blocks of 160 frames are 20 ms here: its filter covers 100 ms behind a delay of up to 1 s, and it finds that within
/// some 2 s of sound.
/// Shape: one channel; any multiple of 8000 Hz in, 8000 Hz out, 20 ms each.
/// Thread: one at a time.
final class LineEcho: @unchecked Sendable {
    /// Frames of 20 ms that are given.
    static var frameCount: Int { EchoCanceller.frameCount }

    private let canceller: EchoCanceller
    /// Frames of the sound for one that is given.
    private let step: Int
    /// What was played in the last 1.2 s, and what was heard in the last 40 ms.
    private var past = [Int16](repeating: 0, count: LineEcho.pastCount)
    private var recent = [Int16](repeating: 0, count: 2 * LineEcho.frameCount)

    /// A canceller that knows nothing of the line; nil for a rate that is no multiple of 8000 Hz.
    init?(sampleRate: Int) {
        guard sampleRate % 8000 == 0 else { return nil }
        step = sampleRate / 8000
        canceller = EchoCanceller(tail: .milliseconds(50), suppressesResidual: false)
    }

    /// What is left of 20 ms without the echo; nil for another length.
    func process(heard block: Span<Int16>, played reference: Span<Int16>) -> [Int16]? {
        guard block.count == Self.frameCount * step, reference.count == block.count else { return nil }
        let (heard, played) = (reduced(block), reduced(reference))
        past = past.dropFirst(played.count) + played
        recent = recent.dropFirst(heard.count) + heard
        var rest = [Int16](repeating: 0, count: Self.frameCount)
        var target = rest.mutableSpan
        canceller.process(captured: heard.span, reference: played.span, into: &target)
        return rest
    }

    /// Whether what was heard in the last 40 ms is what was played up to 150 ms before or after the time at which it should be, as when
    /// the line's delay has changed and the filter does not know yet.
    var hearsPlayed: Bool {
        guard let delay = canceller.statistics.delay else { return false }
        let size = recent.count
        let due = past.count - size - Int(delay / .microseconds(1)) * EchoCanceller.sampleRate / 1_000_000
        let lags = max(due - Self.reach, 0)...max(min(due + Self.reach, past.count - size), 0)
        let energy = recent.reduce(0) { $0 + Self.square($1) }
        let (sound, reference) = (recent.map(Float.init), past.map(Float.init))
        var power = past[lags.lowerBound..<(lags.lowerBound + size)].reduce(0) { $0 + Self.square($1) }
        for lag in lags {
            var product: Float = 0
            for index in 0..<size { product += sound[index] * reference[lag + index] }
            let likeness = Double(product) * Double(product)
            if product > 0, likeness > Self.likeness * Double(power) * Double(energy) { return true }
            guard lag + size < past.count else { break }
            power += Self.square(past[lag + size]) - Self.square(past[lag])
        }
        return false
    }

    private static func square(_ sample: Int16) -> Int { Int(sample) * Int(sample) }

    /// The longest delay that is found, and what lies around it.
    private static var pastCount: Int { 8192 + reach + 2 * frameCount }
    /// 150 ms.
    private static var reach: Int { 1200 }
    /// A correlation of 0.8, squared.
    private static let likeness = 0.64

    /// The means of neighbours, at 8000 Hz.
    private func reduced(_ block: Span<Int16>) -> [Int16] {
        var result = [Int16](repeating: 0, count: Self.frameCount)
        for index in result.indices {
            var sum = 0
            for place in (index * step)..<((index + 1) * step) { sum += Int(block[place]) }
            result[index] = Int16(truncatingIfNeeded: sum / step)
        }
        return result
    }
}
