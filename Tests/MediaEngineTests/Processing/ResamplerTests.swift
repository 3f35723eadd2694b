import Foundation
@testable import MediaEngine
import TestSupport
import Testing

/// Ratios, counts, delay, ends, and what does not change the sound.
///
/// `ResamplerQualityTests` has the bands.
@Suite struct ResamplerTests {
    private static let rates = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]
    private static let pairs = rates.flatMap { from in rates.filter { $0 != from }.map { (from, $0) } }

    private func resample(_ input: [Int16], _ resampler: Resampler, chunk: Int) -> [Int16] {
        var result = process(input, resampler, chunk: chunk)
        var buffer = [Int16](repeating: 0, count: 512)
        while true {
            var output = buffer.mutableSpan
            let count = resampler.drain(into: &output)
            guard count > 0 else { return result }
            result += buffer.prefix(count * resampler.channelCount)
        }
    }

    private func process(_ input: [Int16], _ resampler: Resampler, chunk: Int) -> [Int16] {
        var result: [Int16] = []
        var buffer = [Int16](repeating: 0, count: 512)
        var position = 0
        var produced = 0
        while position < input.count || produced > 0 {
            let end = min(position + chunk, input.count)
            var output = buffer.mutableSpan
            let counts = resampler.process(input.span.extracting(position..<end), into: &output)
            position += counts.consumed * resampler.channelCount
            produced = counts.produced
            result += buffer.prefix(produced * resampler.channelCount)
        }
        return result
    }

    /// A tone that repeats after 40 ms, which is a whole number of frames at every rate, under a hill of that length.
    private func hill(_ rate: Int) -> [Int16] {
        (0..<rate / 25).map { frame in
            let angle = 2 * Double.pi * Double(frame) / Double(rate / 25)
            return Int16((9000 * (1 - cos(angle)) * sin(20 * angle)).rounded())
        }
    }

    // MARK: Ratios

    @Test(arguments: pairs)
    func `any two rates keep their ratio to the frame and the bit, for an hour`(from: Int, to: Int) {
        let resampler = Resampler(from: from, to: to)
        let length = from / 25 + 2 * resampler.delayFrameCount
        let sound = hill(from) + [Int16](repeating: 0, count: length - from / 25)
        let first = process(sound, resampler, chunk: 480)
        #expect(first.count == (length * to + from - 1) / from)
        #expect(first.contains { $0 > 10_000 })
        // Silence to a whole second, and then to the hour.
        var silent = 0
        let silence = [Int16](repeating: 0, count: from / 25)
        var buffer = [Int16](repeating: 0, count: 2 * to / 25)
        func beSilent(_ frameCount: Int) {
            var output = buffer.mutableSpan
            silent += resampler.process(silence.span.extracting(0..<frameCount), into: &output).produced
        }
        let lead = from - length
        for _ in 0..<lead / (from / 25) { beSilent(from / 25) }
        beSilent(lead % (from / 25))
        for _ in 0..<(thorough(3599, quick: 9) * 25) { beSilent(from / 25) }
        #expect(first.count + silent == to * thorough(3600, quick: 10))
        #expect(process(sound, resampler, chunk: 160) == first)
    }

    @Test(arguments: [(48_000, 44_101), (10_000, 10_001), (96_000, 8001)])
    func `rates with hardly a common divisor keep their ratio as well`(from: Int, to: Int) {
        let resampler = Resampler(from: from, to: to)
        let input = (0..<from).map { Int16(10_000 * sin(2 * .pi * 1000 * Double($0) / Double(from))) }
        let first = process(input, resampler, chunk: 480)
        let second = process(input, resampler, chunk: 480)
        #expect(first.count == to && second.count == to)
        // Whole periods in a second: what follows the delay repeats to the bit.
        let start = resampler.delayFrameCount * 2 * to / from
        #expect(first[start...] == second[start...])
    }

    @Test(arguments: [(8000, 48_000), (48_000, 8000), (44_100, 48_000), (48_000, 44_100), (16_000, 44_100)])
    func `each tick gives a tick`(from: Int, to: Int) {
        let resampler = Resampler(from: from, to: to, channelCount: 2, maximumFrameCount: from / 100)
        let input = [Int16](repeating: 100, count: from / 50)
        var output = [Int16](repeating: 0, count: to / 50)
        for _ in 0..<100 {
            var span = output.mutableSpan
            #expect(resampler.process(input.span, into: &span) == (from / 100, to / 100))
        }
        #expect(output.allSatisfy { $0 == 100 })
    }

    @Test func `resamplers of one ratio share their filters`() {
        let ratio = Resampler.Ratio(44_100, 48_000)
        let table = ResamplerTable.shared(ratio, .standard, isDense: false)
        #expect(table === ResamplerTable.shared(Resampler.Ratio(88_200, 96_000), .standard, isDense: false))
        #expect(table !== ResamplerTable.shared(ratio, .high, isDense: false))
        #expect(table !== ResamplerTable.shared(ratio, .standard, isDense: true))
        #expect(table.rowCount == 160 && table.tapCount == 64)
        // Many others come and go, more than are kept.
        weak let unused = ResamplerTable.shared(Resampler.Ratio(1, 3), .low, isDense: true)
        for input in 2..<120 { _ = ResamplerTable.shared(Resampler.Ratio(input, 119), .standard, isDense: true) }
        #expect(table === ResamplerTable.shared(ratio, .standard, isDense: false))
        #expect(unused == nil)
        // The rates of a file are whatever it says.
        let odd = ResamplerTable.shared(Resampler.Ratio(95_001, 1000), .low, isDense: false)
        #expect(odd.isDense && odd.rowCount == 256)
    }

    // MARK: Delay and ends

    @Test(arguments: [(8000, 48_000), (48_000, 8000), (44_100, 48_000), (48_000, 44_100), (11_025, 16_000)])
    func `with the delay skipped, a pulse stays at its instant and the length is right`(from: Int, to: Int) {
        var input = [Int16](repeating: 0, count: from)
        let centre = from / 2
        // A pulse with no content above the lower Nyquist frequency.
        let width = Double(from) / 1000
        for index in input.indices {
            let x = Double(index - centre) / width
            input[index] = Int16(20_000 * exp(-x * x))
        }
        let resampler = Resampler(from: from, to: to, skipsDelay: true)
        #expect(resampler.delayFrameCount == 0)
        let output = resample(input, resampler, chunk: 333)
        #expect(output.count == to)
        let peak = output.indices.max { output[$0] < output[$1] } ?? 0
        #expect(abs(Double(peak) - Double(centre) * Double(to) / Double(from)) <= 1)
    }

    @Test(
        arguments: [(16_000, 48_000), (48_000, 16_000), (48_000, 44_100), (44_100, 48_000)],
        [Resampler.Quality.low, .speech, .standard, .high]
    )
    func `the delay that is told is the delay`(rates: (from: Int, to: Int), quality: Resampler.Quality) {
        let (from, to) = rates
        let resampler = Resampler(from: from, to: to, quality: quality)
        let frequency = 200.0
        let input = (0..<from / 10).map {
            Int16((16_000 * sin(2 * .pi * frequency * Double($0) / Double(from))).rounded())
        }
        let output = process(input, resampler, chunk: 160)
        // From 50 ms on ten periods: their phase against the input's.
        let tone = FittedSine(output[(to / 20)..<(to / 10)], frequency, rate: to)
        let late = Double(resampler.delayFrameCount) / Double(from)
        let phase = 2 * Double.pi * frequency * (0.05 - late)
        let error = remainder(tone.phase - phase, 2 * .pi) / (2 * .pi * frequency) * Double(from)
        #expect(abs(error) < 0.001, "\(error) frames")
        // Frames of the lower rate; going down, rounded up to an even number of vectors.
        let lower = Double(resampler.delayFrameCount) * Double(min(from, to)) / Double(from)
        #expect(lower >= Double(quality.rawValue) && lower < Double(quality.rawValue) + 4)
    }

    @Test func `without skipping, the drained output is longer by the delay`() {
        let resampler = Resampler(from: 16_000, to: 48_000)
        var input = [Int16](repeating: 0, count: 1600)
        for index in 780..<820 { input[index] = Int16(10_000 * (1 - abs(Double(index - 800)) / 20)) }
        let output = resample(input, resampler, chunk: 160)
        #expect(resampler.delayFrameCount == 32)
        #expect(output.count == 4800 + 96)
        let peak = output.indices.max { output[$0] < output[$1] } ?? 0
        #expect(abs(peak - (2400 + 96)) <= 2)
    }

    @Test func `a full output keeps what waits, also at the end`() {
        let input = (0..<3000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        let whole = resample(input, Resampler(from: 8000, to: 48_000, skipsDelay: true), chunk: 3000)
        let resampler = Resampler(from: 8000, to: 48_000, skipsDelay: true, maximumFrameCount: 16)
        var (result, position) = ([Int16](), 0)
        var buffer = [Int16](repeating: 0, count: 7)
        while true {
            var output = buffer.mutableSpan
            let counts = resampler.process(input.span.extracting(position...), into: &output)
            position += counts.consumed
            result += buffer.prefix(counts.produced)
            if counts.produced == 0 { break }
        }
        while true {
            var output = buffer.mutableSpan
            let count = resampler.drain(into: &output)
            if count == 0 { break }
            result += buffer.prefix(count)
        }
        #expect(result == whole && whole.count == 18_000)
    }

    @Test func `the size of the pieces does not change the result, and reset forgets the past`() {
        let input = (0..<8000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        let resampler = Resampler(from: 44_100, to: 48_000, channelCount: 2, skipsDelay: true)
        let first = resample(input, resampler, chunk: 2)
        resampler.reset()
        #expect(resample(input, resampler, chunk: 1000) == first)
        #expect(first.count == (4000 * 48_000 + 44_099) / 44_100 * 2)
    }

    @Test func `channels do not touch each other`() {
        let left = (0..<4410).map { Int16(9000 * sin(Double($0) / 7)) }
        let right = (0..<4410).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        let both = zip(left, right).flatMap { [$0, $1] }
        let output = resample(both, Resampler(from: 44_100, to: 16_000, channelCount: 2), chunk: 200)
        let alone = [left, right].map { resample($0, Resampler(from: 44_100, to: 16_000), chunk: 100) }
        #expect(stride(from: 0, to: output.count, by: 2).map { output[$0] } == alone[0])
        #expect(stride(from: 1, to: output.count, by: 2).map { output[$0] } == alone[1])
    }

    @Test(arguments: [(48_000, 8000), (8000, 48_000)])
    func `full scale is clipped, not wrapped`(from: Int, to: Int) {
        let half = from / 400
        let input = (0..<from / 10).map { $0 / half % 2 == 0 ? Int16.max : Int16.min }
        let output = process(input, Resampler(from: from, to: to), chunk: 480)
        let delay = Resampler(from: from, to: to).delayFrameCount
        // Half a frame of the lower rate away from an edge the sign is known, and it is there that the filter overshoots.
        let margin = max(1, Double(from) / Double(to)) / 2
        var checked = 0
        for index in output.indices {
            // An edge lies between two samples.
            let place = Double(index) * Double(from) / Double(to) - Double(delay) + 0.5
            let (period, distance) = (
                Int((place / Double(half)).rounded(.down)), place.remainder(dividingBy: Double(half))
            )
            guard period >= 2, abs(distance) > margin else { continue }
            checked += 1
            #expect(period % 2 == 0 ? output[index] > 16_000 : output[index] < -16_000)
        }
        #expect(checked > output.count / 2 && output.contains(.max) && output.contains(.min))
    }
}
