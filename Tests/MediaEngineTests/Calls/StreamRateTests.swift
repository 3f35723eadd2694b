import Foundation
@testable import MediaEngine
import Testing

/// Programs as ends of a call give and take samples at any rate, also where 10 ms are no whole number of frames.
@Suite struct StreamRateTests {
    private static let rates = [8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000]
    private static let amplitude = 8000.0
    private static let frequency = 500.0

    /// A second of a tone.
    private static func tone(_ rate: Int) -> [Int16] {
        (0..<rate).map { Int16(amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
    }

    /// A call over a perfect network whose callee is heard at `rate`.
    private static func call(saying source: CallSource, heardAt rate: Int) async throws -> (CallPair, StreamSink) {
        let ears = StreamSink(format: AudioFormat(sampleRate: rate))
        let pair = try await CallPair(saying: source, codec: "L16") { _, called in
            called.sink = .stream(ears)
            called.stream.playoutDelay = .fixed(.milliseconds(60))
        }
        return (pair, ears)
    }

    /// What `ears` heard in 1.6 s is the tone, a second long, at its pitch, and positions count every frame.
    private static func check(_ ears: StreamSink, _ rate: Int) throws {
        var heard: [Int16] = []
        while let block = ears.tryRead() {
            #expect(block.position == heard.count)
            heard += block.samples
        }
        #expect(abs(heard.count - rate * 16 / 10) <= rate / 50 + 2)
        let first = try #require(heard.firstIndex { abs(Int($0)) > 400 })
        let last = try #require(heard.lastIndex { abs(Int($0)) > 400 })
        #expect(abs(last - first - rate) <= rate / 200, "\(last - first) frames of \(rate)")
        let fitted = FittedSine(heard[(first + rate / 4)..<(first + rate * 3 / 4)], frequency, rate: rate)
        #expect(abs(fitted.amplitude - amplitude) < amplitude * 0.02)
        #expect(fitted.signalToNoise > 45)
    }

    @Test(arguments: rates) func `a tone that is written is heard at its pitch and for its length`(rate: Int)
        async throws
    {
        let voice = StreamSource(format: AudioFormat(sampleRate: rate))
        let (pair, ears) = try await Self.call(saying: .stream(voice), heardAt: rate)
        #expect(voice.tryWrite(Self.tone(rate).span) == rate)
        voice.finish()
        try pair.advance(1600)
        try Self.check(ears, rate)
        #expect(pair.caller.isSourceEnded && voice.position == rate)
        try await pair.caller.end()
        var told: [StreamSource.Event] = []
        for await event in voice.events { told.append(event) }
        #expect(told == [.resumed(position: 0), .ended(position: rate)])
    }

    @Test(arguments: rates) func `samples in memory are played at their pitch and for their length`(rate: Int)
        async throws
    {
        let source = CallSource.samples(Self.tone(rate), AudioFormat(sampleRate: rate))
        let (pair, ears) = try await Self.call(saying: source, heardAt: 48_000)
        try pair.advance(900)
        #expect(!pair.caller.isSourceEnded)
        try pair.advance(700)
        #expect(pair.caller.isSourceEnded)
        try Self.check(ears, 48_000)
    }

    @Test(arguments: rates) func `marks are told with their frames, and flush is heard at once`(rate: Int) throws {
        let format = AudioFormat(sampleRate: rate)
        let source = StreamSource(format: format)
        let sink = CollectingSink(format: format.portFormat)
        let runner = GraphRunner()
        var graph = Graph()
        try graph.connect(source.filter, to: sink)
        runner.install(try GraphPlan(graph))
        func tick(_ count: Int) {
            for _ in 0..<count { runner.tick(at: .zero) }
        }
        let tone = Self.tone(rate)
        source.tryWrite(tone.span.extracting(first: rate / 2))
        let middle = try #require(source.mark())
        source.tryWrite(tone.span.extracting((rate / 2)...))
        let end = try #require(source.mark())
        #expect(middle.position == rate / 2 && end.position == rate && source.queued == .seconds(1))
        var told: [StreamSource.Event] = []
        func drain() {
            runner.drainEvents(of: source.filter) { event in
                if case .played(let mark) = event { told.append(.played(mark)) }
                if case .dropped(let mark) = event { told.append(.dropped(mark)) }
            }
        }
        tick(49)
        drain()
        #expect(told.isEmpty)
        tick(1)
        drain()
        #expect(told == [.played(middle)] && abs(source.position - rate / 2) <= 1)
        source.flush()
        tick(1)
        drain()
        #expect(told == [.played(middle), .dropped(end)] && source.position == rate && source.queued == .zero)
        tick(2)
        let heard = sink.collected
        let perTick = format.portFormat.sampleRate / 100
        #expect(heard.count == 53 * perTick && heard.suffix(perTick).allSatisfy { $0 == 0 })
        #expect(heard[(49 * perTick)..<(50 * perTick)].contains { $0 > 7000 })
    }

    @Test func `channels stay apart, and frames are counted`() throws {
        let format = AudioFormat(sampleRate: 22_050, channelCount: 2)
        let (source, sink) = (StreamSource(format: format), StreamSink(format: format))
        let runner = GraphRunner()
        var graph = Graph()
        try graph.connect(source.filter, to: sink.filter)
        runner.install(try GraphPlan(graph))
        let samples: [Int16] = (0..<44_100).map { $0 % 2 == 0 ? 1000 : -2000 }
        #expect(source.tryWrite(samples.span) == 22_050)
        for _ in 0..<50 { runner.tick(at: .zero) }
        #expect(source.position == 11_025)
        var (heard, frames): ([Int16], Int) = ([], 0)
        while let block = sink.tryRead() {
            #expect(block.position == frames)
            heard += block.samples
            frames += block.samples.count / 2
        }
        #expect(abs(frames - 11_025) < 450)
        let settled = heard[4410...]
        #expect(settled.enumerated().allSatisfy { abs(Int($1) - ($0 % 2 == 0 ? 1000 : -2000)) <= 2 })
    }

    @Test(arguments: [11_025, 22_050]) func `speech is told with the frames at which it begins and ends`(rate: Int)
        async throws
    {
        let format = AudioFormat(sampleRate: 48_000)
        let tone = (0..<24_000).map { Int16($0 % 120 < 60 ? 8000 : -8000) }
        let samples = [Int16](repeating: 0, count: 14_400) + tone + [Int16](repeating: 0, count: 48_000)
        let sink = StreamSink(format: AudioFormat(sampleRate: rate))
        let runner = GraphRunner()
        var graph = Graph()
        try graph.connect(SamplePlayerFilter(samples, format: format), to: sink.filter)
        runner.install(try GraphPlan(graph))
        for _ in 0..<180 {
            runner.tick(at: .zero)
            runner.drainEvents(of: sink.filter) { sink.handle($0) }
        }
        sink.close()
        var events: [StreamSink.SpeechEvent] = []
        for await event in sink.speech { events.append(event) }
        guard events.count == 2, case .started(let start) = events[0], case .stopped(let end) = events[1] else {
            Issue.record("\(events)")
            return
        }
        // To a tick and the filter's delay.
        let tick = rate / 100
        #expect(abs(start - rate * 3 / 10) <= 2 * tick && abs(end - rate * 8 / 10) <= 2 * tick)
    }
}
