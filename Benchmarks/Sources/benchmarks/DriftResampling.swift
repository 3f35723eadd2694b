import CMeasure

@testable import MediaEngine

/// What it costs to follow a clock that drifts: our polyphase resampler against SpeexDSP at the same ratio.
enum DriftResampling {
    private static let blockCount = 480

    static func measure(_ options: Options) throws -> [Figure] {
        let sound = TestSignal.samples(1, AudioFormat(sampleRate: 48000))
        var (ours, speex, fixed) = (Double.infinity, Double.infinity, Double.infinity)
        for _ in 0..<options.repetitions {
            ours = min(ours, polyphase(sound))
            speex = min(speex, speexDSP(sound, from: 48005, to: 48000))
            fixed = min(fixed, speexDSP(sound, from: 48000, to: 16000))
        }
        return [
            Figure(
                "drift-resampler: ours / SpeexDSP quality 4, 48005 to 48000 Hz",
                ours / speex,
                "",
                .atMost(0.5),
                note: "\(Report.number(ours / 1000)) / \(Report.number(speex / 1000)) us for 10 ms"
            ),
            Figure(
                "drift-resampler: ours / SpeexDSP quality 4, 48000 to 16000 Hz",
                ours / fixed,
                "",
                note: "\(Report.number(ours / 1000)) / \(Report.number(fixed / 1000)) us for 10 ms"
            ),
        ]
    }

    /// CPU time of one block of output whose ratio changes every time.
    private static func polyphase(_ sound: [Int16]) -> Double {
        let resampler = PolyphaseResampler(from: 48000, to: 48000)
        var output = [Int16](repeating: 0, count: blockCount)
        let rounds = 20_000
        let start = measure_thread_cpu()
        for round in 0..<rounds {
            resampler.ppm = 100 + Double(round % 16)
            let need = resampler.inputFrameCount(forOutput: blockCount)
            let first = round &* 480 % 40_000
            var target = output.mutableSpan
            _ = resampler.process(sound.span.extracting(first..<first + need), into: &target)
        }
        return Double(measure_thread_cpu() - start) / Double(rounds)
    }

    private static func speexDSP(_ sound: [Int16], from: Int, to: Int) -> Double {
        let resampler = Resampler(from: from, to: to, quality: 4, skipsDelay: false)
        var output = [Int16](repeating: 0, count: blockCount + 8)
        let rounds = 5000
        let start = measure_thread_cpu()
        for round in 0..<rounds {
            let first = round &* 480 % 40_000
            var target = output.mutableSpan
            _ = resampler.process(sound.span.extracting(first..<first + blockCount), into: &target)
        }
        return Double(measure_thread_cpu() - start) / Double(rounds)
    }
}
