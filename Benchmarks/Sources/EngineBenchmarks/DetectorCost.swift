import CMeasure
import Glibc

@testable import MediaEngine

/// What listening for digits costs, beside spandsp's receiver on the same samples in the same run.
enum DetectorCost {
    private static let rate = 8000
    private static let keys = 60

    static func measure(_ options: Options) throws -> [Figure] {
        let samples = signal()
        let seconds = Double(samples.count) / Double(rate)
        var (ours, theirs) = (Double.infinity, Double.infinity)
        var (count, theirCount) = (0, Int64(0))
        for _ in 0..<options.repetitions * 2 {
            let measured = try detect(samples)
            ours = min(ours, measured.nanoseconds / 1000 / seconds)
            count = measured.digits
            let nanoseconds = measure_spandsp_dtmf(samples, Int32(samples.count), &theirCount)
            if nanoseconds >= 0 { theirs = min(theirs, Double(nanoseconds) / 1000 / seconds) }
        }
        let note = "\(count) of \(keys) digits between chirps"
        guard theirs.isFinite else {
            return [
                Figure("dtmf-detector: a second at 8 kHz", ours, "us", note: note + "; no libspandsp.so.2 to compare")
            ]
        }
        return [
            Figure("dtmf-detector: a second at 8 kHz", ours, "us", note: note),
            Figure(
                "dtmf-detector: CPU / spandsp's",
                ours / theirs,
                "",
                .atMost(1.3),
                note: "\(Report.number(ours)) / \(Report.number(theirs)) us; spandsp hears \(theirCount)"
            ),
        ]
    }

    /// A minute of chirps with pauses, a digit of 60 ms every second in place of what was there.
    private static func signal() -> [Int16] {
        var samples = TestSignal.samples(Double(keys), AudioFormat(sampleRate: rate))
        for key in 0..<keys {
            let digit = DTMFDigit.all[key % 16]
            let start = key * rate + 200
            for index in -400..<880 where start + index >= 0 && start + index < samples.count {
                let time = Double(index) / Double(rate)
                let sounds = (0..<480).contains(index)
                let value = sine(digit.lowFrequency * time) + sine(digit.highFrequency * time)
                samples[start + index] = sounds ? Int16(value * 6000) : 0
            }
        }
        return samples
    }

    private static func detect(_ samples: [Int16]) throws -> (nanoseconds: Double, digits: Int) {
        let detector = try DTMFDetector(sampleRate: rate)
        var digits = 0
        let start = measure_thread_cpu()
        var position = 0
        while position + 80 <= samples.count {
            detector.process(samples.span.extracting(position..<position + 80))
            while let detection = detector.nextDetection() { if detection.phase == .ended { digits += 1 } }
            position += 80
        }
        return (Double(measure_thread_cpu() - start), digits)
    }
}

/// The sine of so many turns.
private func sine(_ turns: Double) -> Double { sin(2 * .pi * turns) }
