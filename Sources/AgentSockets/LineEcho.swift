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

    private let canceller = EchoCanceller(tail: .milliseconds(50), suppressesResidual: false)
    /// Frames of the sound for one that is given.
    private let step: Int

    /// A canceller that knows nothing of the line; nil for a rate that is no multiple of 8000 Hz.
    init?(sampleRate: Int) {
        guard sampleRate % 8000 == 0 else { return nil }
        step = sampleRate / 8000
    }

    /// What is left of 20 ms without the echo; nil for another length.
    func process(heard block: Span<Int16>, played reference: Span<Int16>) -> [Int16]? {
        guard block.count == Self.frameCount * step, reference.count == block.count else { return nil }
        let (heard, played) = (reduced(block), reduced(reference))
        var rest = [Int16](repeating: 0, count: Self.frameCount)
        var target = rest.mutableSpan
        canceller.process(captured: heard.span, reference: played.span, into: &target)
        return rest
    }

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
