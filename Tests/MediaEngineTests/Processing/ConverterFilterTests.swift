import Foundation
@testable import MediaEngine
import Testing

@Suite struct ConverterFilterTests {
    private func convert(_ samples: [Int16], from: AudioFormat, to: AudioFormat, ticks: Int) throws -> [Int16] {
        let sink = CollectingSink(format: to)
        var graph = Graph()
        graph.converterFactory = ConverterFilter.factory
        try graph.connect(SamplePlayerFilter(samples, format: from), to: sink, converting: true)
        #expect(graph.converters.count == 1)
        #expect(try graph.text().contains("(inserted)"))
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        for _ in 0..<ticks { runner.tick(at: .zero) }
        return sink.collected
    }

    @Test(arguments: [(8000, 48000), (48000, 8000), (44100, 48000), (48000, 16000), (16000, 44100)])
    func `a sine keeps its level and frequency`(from: Int, to: Int) throws {
        let sine = (0..<from).map { Int16(8000 * sin(2 * .pi * 1000 * Double($0) / Double(from))) }
        let output = try convert(sine, from: AudioFormat(sampleRate: from), to: AudioFormat(sampleRate: to), ticks: 100)
        #expect(output.count == to)
        let steady = output[(to / 4)..<(to * 3 / 4)]
        let rms = (steady.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(steady.count)).squareRoot()
        #expect(abs(rms - 8000 / 2.squareRoot()) < 60)
        let crossings = zip(steady, steady.dropFirst()).filter { $0 < 0 && $1 >= 0 }.count
        #expect(abs(crossings - 500) <= 1)
    }

    @Test func `stereo is averaged into mono, and mono goes to both sides`() throws {
        let mono = AudioFormat(sampleRate: 8000)
        let stereo = AudioFormat(sampleRate: 8000, channelCount: 2)
        let mixed = try convert([100, 300, -50, 50, 32767, 32767], from: stereo, to: mono, ticks: 1)
        #expect(mixed.prefix(4) == [200, 0, 32767, 0])
        let spread = try convert([7, -9], from: mono, to: stereo, ticks: 1)
        #expect(spread.prefix(6) == [7, 7, -9, -9, 0, 0])
    }
}
