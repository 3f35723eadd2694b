import CMeasure

@testable import MediaEngine

/// What resampling costs beside SpeexDSP's in the same run: following a clock that drifts, and at fixed ratios.
///
/// SpeexDSP is the system's, of quality 4.
enum DriftResampling {
    /// 10 ms at 48 kHz.
    private static let blockCount = 480
    /// No pause in it, over which a resampler would skip.
    private static let sound = (0..<48_000).map { Int16(truncatingIfNeeded: $0 &* 7919) / 4 }

    static func measure(_ options: Options) throws -> [Figure] {
        [
            figure(options, from: 48005, to: 48000, .atMost(0.5), follow),
            figure(options, from: 48000, to: 16000, .atMost(1)) { convert(from: 48000, to: 16000) },
            figure(options, from: 8000, to: 48000, .atMost(1)) { convert(from: 8000, to: 48000) },
            figure(options, from: 44100, to: 48000, .atMost(0.5)) { convert(from: 44100, to: 48000) },
        ]
    }

    private static func figure(
        _ options: Options,
        from: Int,
        to: Int,
        _ limit: Figure.Limit,
        _ measured: () -> Double
    ) -> Figure {
        let name = "drift-resampler: ours / SpeexDSP quality 4, \(from) to \(to) Hz"
        var (ours, theirs) = (Double.infinity, Double.infinity)
        for _ in 0..<options.repetitions {
            ours = min(ours, measured())
            let nanoseconds = measure_speex_resampler(sound, 48_000, Int32(from), Int32(to), 4, Int32(from / 100))
            if nanoseconds >= 0 { theirs = min(theirs, Double(nanoseconds) / Double(48_000 / (from / 100))) }
        }
        guard theirs.isFinite else { return Figure(name, "no libspeexdsp.so.1 to compare") }
        let note = "\(Report.number(ours / 1000)) / \(Report.number(theirs / 1000)) us for 10 ms"
        return Figure(name, ours / theirs, "", limit, note: note)
    }

    /// CPU time of one block of output whose ratio changes every time.
    private static func follow() -> Double {
        let resampler = Resampler(from: 48000, to: 48000, quality: .low, followsDrift: true)
        var output = [Int16](repeating: 0, count: blockCount)
        let rounds = 20_000
        let start = measure_thread_cpu()
        for round in 0..<rounds {
            resampler.ppm = 100 + Double(round % 16)
            let need = resampler.inputFrameCount(forOutput: blockCount)
            let first = round &* blockCount % 40_000
            var target = output.mutableSpan
            _ = resampler.process(sound.span.extracting(first..<first + need), into: &target)
        }
        return Double(measure_thread_cpu() - start) / Double(rounds)
    }

    /// CPU time of 10 ms at a fixed ratio.
    private static func convert(from: Int, to: Int) -> Double {
        let resampler = Resampler(from: from, to: to)
        var output = [Int16](repeating: 0, count: to / 100)
        let count = from / 100
        let rounds = 5000
        let start = measure_thread_cpu()
        for round in 0..<rounds {
            let first = round &* count % 40_000
            var target = output.mutableSpan
            _ = resampler.process(sound.span.extracting(first..<first + count), into: &target)
        }
        return Double(measure_thread_cpu() - start) / Double(rounds)
    }
}
