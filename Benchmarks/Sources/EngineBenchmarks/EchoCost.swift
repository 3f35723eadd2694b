import CMeasure
@testable import CallBasics
import Glibc

@testable import MediaEngine

/// What taking an echo out costs, beside SpeexDSP's canceller with the same tail on the same samples in the same run.
enum EchoCost {
    private static let rate = EchoCanceller.sampleRate
    private static let frameCount = EchoCanceller.frameCount
    private static let seconds = 30
    /// 100 ms.
    private static let tail = rate / 10
    /// Where the echo lies, 40 ms behind what was played.
    private static let delay = rate / 25

    static func measure(_ options: Options) throws -> [Figure] {
        let played = signal()
        let captured = played.indices.map { $0 < delay ? 0 : played[$0 - delay] / 4 }
        var (ours, theirs) = (Double.infinity, Double.infinity)
        var reduction = 0.0
        for _ in 0..<options.repetitions {
            let measured = cancel(captured, played)
            ours = min(ours, measured.nanoseconds / 1000 / Double(seconds))
            reduction = measured.reduction
            let nanoseconds = measure_speex_echo(captured, played, Int32(captured.count), Int32(tail))
            if nanoseconds >= 0 { theirs = min(theirs, Double(nanoseconds) / 1000 / Double(seconds)) }
        }
        let figure = Figure(
            "echo: a second at 16 kHz",
            ours,
            "us",
            note: "\(Report.number(reduction)) dB less in the last 10 s"
        )
        guard theirs.isFinite else { return [figure] }
        let note = "\(Report.number(ours)) / \(Report.number(theirs)) us"
        return [figure, Figure("echo: CPU / SpeexDSP's", ours / theirs, note: note)]
    }

    /// Noise with the spectrum of speech, a second of it, then half a second of silence.
    private static func signal() -> [Int16] {
        var generator = SeededGenerator(seed: 1)
        var value = 0.0
        return (0..<(seconds * rate)).map { index in
            value = 0.9 * value + 900 * (2 * generator.nextUnit() - 1)
            return index % (3 * rate / 2) < rate ? Int16(clamping: Int(value)) : 0
        }
    }

    /// Takes the echo out in frames of 10 ms, and tells by how much less there is of it in the end.
    private static func cancel(_ captured: [Int16], _ played: [Int16]) -> (nanoseconds: Double, reduction: Double) {
        let canceller = EchoCanceller(tail: .milliseconds(100), suppressesResidual: false)
        var result = [Int16](repeating: 0, count: frameCount)
        var output: [Int16] = []
        output.reserveCapacity(captured.count)
        let start = measure_thread_cpu()
        for position in stride(from: 0, to: captured.count - frameCount + 1, by: frameCount) {
            let frame = position..<(position + frameCount)
            var span = result.mutableSpan
            canceller.process(
                captured: captured.span.extracting(frame),
                reference: played.span.extracting(frame),
                into: &span
            )
            output += result
        }
        let time = Double(measure_thread_cpu() - start)
        return (time, level(captured.suffix(10 * rate)) - level(output.suffix(10 * rate)))
    }

    /// The level in dB of a sample.
    private static func level(_ samples: ArraySlice<Int16>) -> Double {
        let energy = samples.reduce(1.0) { $0 + Double($1) * Double($1) }
        return 10 * log10(energy / Double(samples.count))
    }
}
