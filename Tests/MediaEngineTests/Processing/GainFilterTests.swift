@testable import MediaEngine
import Testing

@Suite struct GainFilterTests {
    private func run(
        _ filter: Filter,
        ticks: Int = 2,
        constant: Int16? = nil,
        change: () -> Void = {}
    ) throws -> [Int16] {
        let format = AudioFormat(sampleRate: 8000)
        let source: Filter =
            constant.map { ConstantSource(format: format, value: $0) } ?? CountingSource(format: format)
        let sink = CollectingSink(format: format)
        var graph = Graph()
        try graph.connect(source, to: filter)
        try graph.connect(filter, to: sink)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        change()
        for _ in 0..<ticks { runner.tick(at: .zero) }
        return sink.collected
    }

    @Test func `unity leaves every sample as it is`() throws {
        #expect(try run(GainFilter(format: AudioFormat(sampleRate: 8000))) == (0..<160).map(Int16.init))
    }

    @Test(arguments: [(6.0, 1.9953), (-20.0, 0.1), (20.0, 10.0), (-60.0, 0.001)]) func `decibels are of amplitude`(
        decibels: Double,
        factor: Double
    ) throws {
        let filter = GainFilter(format: AudioFormat(sampleRate: 8000), gain: Decibels(decibels))
        for value: Int16 in [1000, -1000, 3000] {
            let sample = try #require(try run(filter, ticks: 1, constant: value).first)
            #expect(abs(Double(sample) - Double(value) * factor) <= max(1, abs(Double(value)) * factor * 0.001))
        }
    }

    @Test func `what leaves 16 bits is clipped, not wrapped`() throws {
        let filter = GainFilter(format: AudioFormat(sampleRate: 8000), gain: Decibels(30))
        #expect(try run(filter, ticks: 1, constant: 30000).allSatisfy { $0 == 32767 })
        #expect(try run(filter, ticks: 1, constant: -30000).allSatisfy { $0 == -32768 })
    }

    @Test func `mute fades over one tick without a step`() throws {
        let control = GainControl()
        let filter = GainFilter(format: AudioFormat(sampleRate: 8000), control)
        let samples = try run(filter, constant: 8000) { control.set(.muted, true) }
        #expect(samples[80...].allSatisfy { $0 == 0 })
        #expect(zip(samples, samples.dropFirst()).allSatisfy { abs(Int($0) - Int($1)) <= 101 })
    }

    @Test func `a gain that is no number is silence`() throws {
        let control = GainControl()
        let filter = GainFilter(format: AudioFormat(sampleRate: 8000), control)
        let samples = try run(filter, constant: 8000) { control.gain = Decibels(.nan) }
        #expect(samples[80...].allSatisfy { $0 == 0 })
    }

    @Test func `gain and reasons for silence can be read, and none of them is lost`() {
        let control = GainControl(Decibels(-6))
        #expect(control.gain == Decibels(-6) && control.isOn)
        control.set(.muted, true)
        control.set(.held, true)
        control.set(.muted, false)
        #expect(!control.isOn && control.holds(.held) && !control.holds(.muted))
        control.gain = Decibels(3)
        control.set(.held, false)
        #expect(control.isOn && control.gain == Decibels(3))
    }

    @Test func `what was set last holds, however often it was set while ticks went on`() async throws {
        let format = AudioFormat(sampleRate: 8000)
        let control = GainControl()
        let filter = GainFilter(format: format, control)
        let sink = CollectingSink(format: format)
        var graph = Graph()
        try graph.connect(ConstantSource(format: format, value: 1000), to: filter)
        try graph.connect(filter, to: sink)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        for round in 0..<50 {
            let isSilent = round % 2 == 0
            let writer = Task.detached {
                for number in 0..<200 {
                    control.gain = Decibels(Double(number % 7))
                    control.set(.muted, number % 2 == 0)
                }
                control.gain = .unity
                control.set(.muted, isSilent)
            }
            for _ in 0..<20 { runner.tick(at: .zero) }
            await writer.value
            for _ in 0..<2 { runner.tick(at: .zero) }
            #expect(sink.collected.last == (isSilent ? 0 : 1000))
        }
    }

    @Test func `a full-scale sine is at 0 dB, silence at the floor`() throws {
        let meter = LevelMeterFilter(format: AudioFormat(sampleRate: 8000))
        _ = try run(meter, ticks: 100, constant: 23170)
        // A constant of 1/√2 has the power of a full-scale sine.
        #expect(abs(meter.currentLevel.rms.value) < 0.1)
        #expect(abs(meter.currentLevel.peak.value + 3.01) < 0.1)
        let quiet = LevelMeterFilter(format: AudioFormat(sampleRate: 8000))
        _ = try run(quiet, ticks: 100, constant: 0)
        #expect(quiet.currentLevel.rms == .silence)
    }
}

/// Gives the same value in every sample.
final class ConstantSource: Filter, @unchecked Sendable {
    private let value: Int16

    init(format: AudioFormat, value: Int16) {
        self.value = value
        super.init(FilterDescription(name: "constant", purpose: "gives one value", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in samples.indices { samples[index] = value }
    }
}
