import Foundation
@testable import MediaEngine
import Testing

@Suite struct ResamplerTests {
    private func resample(_ input: [Int16], _ resampler: Resampler, chunk: Int) -> [Int16] {
        var result: [Int16] = []
        var buffer = [Int16](repeating: 0, count: 512)
        var position = 0
        while position < input.count {
            let end = min(position + chunk, input.count)
            var output = buffer.mutableSpan
            let counts = resampler.process(input.span.extracting(position..<end), into: &output)
            position += counts.consumed * resampler.channelCount
            result += buffer.prefix(counts.produced * resampler.channelCount)
        }
        while true {
            var output = buffer.mutableSpan
            let count = resampler.drain(into: &output)
            guard count > 0 else { return result }
            result += buffer.prefix(count * resampler.channelCount)
        }
    }

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
        let output = resample(input, Resampler(from: from, to: to, skipsDelay: true), chunk: 333)
        #expect(output.count == to)
        let peak = output.indices.max { output[$0] < output[$1] } ?? 0
        #expect(abs(Double(peak) - Double(centre) * Double(to) / Double(from)) <= 1)
    }

    @Test func `without skipping, the delay that is reported is the delay`() {
        let resampler = Resampler(from: 16_000, to: 48_000, skipsDelay: false)
        var input = [Int16](repeating: 0, count: 1600)
        for index in 780..<820 { input[index] = Int16(10_000 * (1 - abs(Double(index - 800)) / 20)) }
        let delay = resampler.delayFrameCount
        let output = resample(input, resampler, chunk: 160)
        #expect(delay > 0 && output.count == 4800 + delay)
        let peak = output.indices.max { output[$0] < output[$1] } ?? 0
        #expect(abs(peak - (2400 + delay)) <= 2)
    }

    @Test func `the size of the pieces does not change the result, and reset forgets the past`() {
        let input = (0..<8000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        let resampler = Resampler(from: 44_100, to: 48_000, channelCount: 2, skipsDelay: true)
        let first = resample(input, resampler, chunk: 2)
        resampler.reset()
        #expect(resample(input, resampler, chunk: 1000) == first)
        #expect(first.count == (4000 * 48_000 + 44_099) / 44_100 * 2)
    }
}
