@testable import MediaEngine

/// What the legs say.
enum Speech {
    static func name(_ options: Options) -> String { options.speechPath ?? "chirps with pauses (TestSignal)" }

    /// The speech at the rate of `format`, at most 30 s.
    static func samples(_ options: Options, _ format: AudioFormat) throws -> [Int16] {
        guard let path = options.speechPath else { return TestSignal.samples(10, format) }
        let reader = try WAVReader(path: path)
        guard reader.format.channelCount == 1 else { throw Options.Wrong(description: "\(path) is not mono") }
        var samples: [Int16] = []
        var buffer = [Int16](repeating: 0, count: 4800)
        while samples.count < 30 * reader.format.sampleRate {
            var span = buffer.mutableSpan
            let count = try reader.read(into: &span)
            guard count > 0 else { break }
            samples += buffer.prefix(count)
        }
        guard reader.format.sampleRate != format.sampleRate else { return samples }
        return try resampled(samples, from: reader.format, to: format)
    }

    private static func resampled(_ samples: [Int16], from: AudioFormat, to: AudioFormat) throws -> [Int16] {
        let tick = Duration.milliseconds(10)
        var graph = Graph(tickDuration: tick)
        let converter = try ConverterFilter.factory(from, to, tick)
        let collector = Collector(format: to, capacity: samples.count / from.sampleRate * to.sampleRate)
        try graph.connect(LoopingSource(SharedSamples(samples), format: from, offset: 0), to: converter)
        try graph.connect(converter, to: collector)
        let runner = GraphRunner()
        runner.install(try GraphPlan(graph))
        for index in 0..<(samples.count / (from.sampleRate / 100)) {
            runner.tick(at: MediaTime(nanoseconds: Int64(index) * 10_000_000))
        }
        return collector.collected
    }
}

/// Samples in memory that several sources read.
final class SharedSamples: Sendable {
    nonisolated(unsafe) let samples: UnsafePointer<Int16>
    let count: Int

    init(_ samples: [Int16]) {
        let copy = UnsafeMutablePointer<Int16>.allocate(capacity: max(samples.count, 1))
        for (index, sample) in samples.enumerated() { (copy + index).initialize(to: sample) }
        self.samples = UnsafePointer(copy)
        count = samples.count
    }

    deinit {
        samples.deallocate()
    }
}

/// Says the same again and again, from memory.
final class LoopingSource: Filter, @unchecked Sendable {
    private let speech: SharedSamples
    private var position: Int

    init(_ speech: SharedSamples, format: AudioFormat, offset: Int) {
        self.speech = speech
        position = offset % max(speech.count, 1)
        super.init(FilterDescription(name: "speech", purpose: "repeats itself", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var target = block.mutableSamples
        if position &+ target.count > speech.count { position = 0 }
        let source = speech.samples + position
        let count = min(target.count, speech.count)
        for index in 0..<count { target[index] = source[index] }
        position &+= count
    }
}

/// Keeps what it is given, up to a capacity.
final class Collector: Filter, @unchecked Sendable {
    private let samples: UnsafeMutableBufferPointer<Int16>
    private var count = 0

    init(format: AudioFormat, capacity: Int) {
        samples = .allocate(capacity: max(capacity, 1))
        super.init(FilterDescription(name: "collector", purpose: "keeps samples", inputs: [.audio(format)]))
    }

    deinit {
        samples.deallocate()
    }

    var collected: [Int16] { Array(samples.prefix(count)) }

    override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        let source = block.samples
        for index in 0..<min(source.count, samples.count &- count) {
            samples.initializeElement(at: count, to: source[index])
            count &+= 1
        }
    }
}
