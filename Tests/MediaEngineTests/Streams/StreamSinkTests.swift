@testable import MediaEngine
import Testing

@Suite struct StreamSinkTests {
    private static let format = AudioFormat(sampleRate: 8000)

    private final class Rig {
        let sink: StreamSink
        private let runner = GraphRunner()

        init(_ source: Filter, capacity: Duration = .seconds(2)) throws {
            sink = StreamSink(format: StreamSinkTests.format, capacity: capacity)
            var graph = Graph()
            try graph.connect(source, to: sink.filter)
            runner.install(try GraphPlan(graph))
        }

        func tick(_ count: Int = 1) {
            for _ in 0..<count {
                runner.tick(at: .zero)
                runner.drainEvents(of: sink.filter) { sink.handle($0) }
            }
        }
    }

    @Test func `what is heard comes in blocks, with the frames before each`() throws {
        let rig = try Rig(CountingSource(format: Self.format))
        #expect(rig.sink.tryRead() == nil)
        rig.tick(7)
        for block in 0..<3 {
            let read = try #require(rig.sink.tryRead())
            #expect(read.position == block * 160)
            #expect(read.samples == (block * 160..<block * 160 + 160).map { Int16($0) })
        }
        #expect(rig.sink.tryRead() == nil && rig.sink.lostFrameCount == 0)
    }

    @Test func `what nobody takes is bounded, left out and counted, and positions go on`() throws {
        let rig = try Rig(CountingSource(format: Self.format), capacity: .milliseconds(100))
        for _ in 0..<3 {
            rig.tick(100)
            while let block = rig.sink.tryRead() {
                // The source counts, so a sample tells where it comes from; a block may have a gap within.
                #expect(block.samples.first == Int16(truncatingIfNeeded: block.position))
            }
        }
        #expect(rig.sink.lostFrameCount > 300 * 80 / 2)
        rig.tick(4)
        let last = try #require(rig.sink.tryRead())
        #expect(last.position >= 300 * 80 - 160)
    }

    @Test func `that a block is there is told although no place was free for it at first`() throws {
        let sink = StreamSink(format: Self.format)
        let runner = GraphRunner(eventCapacity: 4)
        let noise = EventSource(count: 8, format: Self.format)
        var graph = Graph()
        try graph.connect(noise, to: sink.filter)
        runner.install(try GraphPlan(graph))
        sink.filter.ask(for: 160)
        for _ in 0..<3 { runner.tick(at: .zero) }
        var blocks = 0
        func drain() {
            runner.drainEvents(of: sink.filter) { if case .ready = $0 { blocks += 1 } }
        }
        drain()
        #expect(blocks == 0)
        for _ in 0..<3 {
            runner.tick(at: .zero)
            drain()
        }
        #expect(blocks == 1)
    }

    @Test func `who reads waits for the next block, until the call ends`() async throws {
        let rig = try Rig(CountingSource(format: Self.format))
        let sink = rig.sink
        let reading = Task {
            var positions: [Int] = []
            for await block in sink { positions.append(block.position) }
            return positions
        }
        for _ in 0..<20 {
            rig.tick()
            await Task.yield()
        }
        rig.sink.close()
        #expect(await reading.value == (0..<10).map { $0 * 160 })
        #expect(await rig.sink.read() == nil)
    }

    @Test func `a reader whose task is cancelled waits no longer`() async throws {
        let rig = try Rig(CountingSource(format: Self.format))
        let sink = rig.sink
        let reading = Task { await sink.read() }
        await Task.yield()
        reading.cancel()
        #expect(await reading.value == nil)
    }

    @Test func `speech is told with the frames at which it begins and ends`() async throws {
        // 300 ms of silence, 500 ms of a tone, silence.
        let tone = (0..<4000).map { Int16($0 % 20 < 10 ? 8000 : -8000) }
        let samples = [Int16](repeating: 0, count: 2400) + tone + [Int16](repeating: 0, count: 8000)
        let rig = try Rig(SamplePlayerFilter(samples, format: Self.format))
        rig.tick(180)
        rig.sink.close()
        var events: [StreamSink.SpeechEvent] = []
        for await event in rig.sink.speech { events.append(event) }
        #expect(events == [.started(position: 2400), .stopped(position: 6400)])
    }
}
