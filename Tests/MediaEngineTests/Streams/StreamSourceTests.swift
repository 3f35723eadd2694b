@testable import MediaEngine
import Testing

@Suite struct StreamSourceTests {
    private static let format = AudioFormat(sampleRate: 8000)

    /// A source that is heard in a sink, 10 ms a tick.
    private final class Rig {
        let source: StreamSource
        let sink: CollectingSink
        private let runner = GraphRunner()

        init(_ format: AudioFormat = StreamSourceTests.format, capacity: Duration = .seconds(2)) throws {
            source = StreamSource(format: format, capacity: capacity)
            sink = CollectingSink(format: format)
            var graph = Graph()
            try graph.connect(source.filter, to: sink)
            runner.install(try GraphPlan(graph))
        }

        func tick(_ count: Int = 1) {
            for _ in 0..<count {
                runner.tick(at: .zero)
                runner.drainEvents(of: source.filter) { source.handle($0) }
            }
        }

        /// All that was told; ends the source.
        func told() async -> [StreamSource.Event] {
            source.close()
            var events: [StreamSource.Event] = []
            for await event in source.events { events.append(event) }
            return events
        }
    }

    @Test func `what is written is heard once, in order, and starvation is told`() async throws {
        let rig = try Rig()
        let samples = (1...840).map { Int16($0) }
        #expect(rig.source.tryWrite(samples.span) == 840 && rig.source.queued == .milliseconds(105))
        rig.tick(13)
        #expect(Array(rig.sink.collected[..<840]) == samples)
        #expect(rig.sink.collected[840...].allSatisfy { $0 == 0 })
        #expect(rig.source.position == 840 && rig.source.queued == .zero)
        #expect(rig.source.tryWrite([1, 2].span) == 2)
        rig.tick(3)
        #expect(
            await rig.told() == [
                .resumed(position: 0), .starved(position: 840), .resumed(position: 840), .starved(position: 842),
            ]
        )
    }

    @Test func `no more waits than was asked for, and whoever writes more waits`() async throws {
        let rig = try Rig(capacity: .milliseconds(100))
        let samples = [Int16](repeating: 5, count: 3000)
        #expect(rig.source.tryWrite(samples.span) == 800)
        #expect(rig.source.tryWrite(samples.span) == 0)
        rig.tick(5)
        #expect(rig.source.tryWrite(samples.span) == 400)
        let source = rig.source
        let writing = Task { try await source.write((1...2000).map { Int16($0) }) }
        let isWritten = Task {
            try await writing.value
            return true
        }
        // Ticks only where something waits: the writer takes its turns meanwhile.
        while rig.source.position < 400 + 800 + 2000 {
            if rig.source.queued > .zero { rig.tick() }
            await Task.yield()
        }
        #expect(try await isWritten.value)
        let heard = rig.sink.collected.filter { $0 != 0 }
        #expect(Array(heard.suffix(2000)) == (1...2000).map { Int16($0) })
    }

    @Test func `a writer whose task is cancelled waits no longer`() async throws {
        let rig = try Rig(capacity: .milliseconds(100))
        let source = rig.source
        let writing = Task { try await source.write([Int16](repeating: 1, count: 100_000)) }
        while rig.source.queued == .zero { await Task.yield() }
        writing.cancel()
        await #expect(throws: CancellationError.self) { try await writing.value }
        #expect(rig.source.queued == .milliseconds(100))
    }

    @Test func `whoever writes is let go when the call ends`() async throws {
        let rig = try Rig(capacity: .milliseconds(100))
        let source = rig.source
        let writing = Task { try await source.write([Int16](repeating: 1, count: 100_000)) }
        while rig.source.queued == .zero { await Task.yield() }
        rig.source.close()
        try await writing.value
        try await rig.source.write([1, 2, 3])
        #expect(rig.source.queued == .milliseconds(100))
    }

    @Test func `flush is heard with the next packet, after a ramp of 5 ms, and drops what waits`() async throws {
        let rig = try Rig()
        let loud = [Int16](repeating: 10_000, count: 8000)
        rig.source.tryWrite(loud.span.extracting(first: 160))
        let early = try #require(rig.source.mark())
        rig.source.tryWrite(loud.span.extracting(first: 4000))
        let late = try #require(rig.source.mark())
        #expect(early.position == 160 && late.position == 4160 && late.number == early.number + 1)
        rig.tick(3)
        rig.source.flush()
        rig.tick()
        let tick = Array(rig.sink.collected[240..<320])
        #expect(tick[40...].allSatisfy { $0 == 0 })
        #expect(tick[0] < 10_000 && tick[0] > 9000 && tick[39] > 0 && tick[39] < 500)
        #expect(zip(tick, tick[1..<40]).allSatisfy { $0 > $1 && $0 - $1 < 300 })
        #expect(rig.source.queued == .zero && rig.source.position == 4160)
        // What is written behind it is heard in full.
        rig.source.tryWrite([7, 7, 7].span)
        let last = try #require(rig.source.mark())
        rig.tick(2)
        #expect(rig.sink.collected[320..<323].elementsEqual([7, 7, 7]))
        let told = await rig.told()
        let marks = told.filter { event in
            switch event {
            case .played, .dropped: true
            case .starved, .resumed, .ended: false
            }
        }
        #expect(marks == [.played(early), .dropped(late), .played(last)])
    }

    @Test func `what is paused stays, goes quiet and comes back by ramps of 5 ms, and is heard once`() async throws {
        let rig = try Rig()
        rig.source.tryWrite([Int16](repeating: 10_000, count: 400).span)
        let mark = try #require(rig.source.mark())
        rig.tick(2)
        rig.source.isPaused = true
        rig.tick(5)
        let pause = Array(rig.sink.collected[160..<560])
        #expect(pause[0] > 9000 && pause[39] > 0 && zip(pause, pause[1..<40]).allSatisfy { $0 > $1 })
        #expect(pause[40...].allSatisfy { $0 == 0 } && rig.source.position == 200)
        rig.source.isPaused = false
        rig.tick(4)
        let rest = Array(rig.sink.collected[560...])
        #expect(rest[0] > 0 && rest[0] < 500 && zip(rest, rest[1..<40]).allSatisfy { $0 < $1 })
        #expect(rest[40..<200].allSatisfy { $0 == 10_000 } && rest[200...].allSatisfy { $0 == 0 })
        #expect(await rig.told() == [.resumed(position: 0), .played(mark), .starved(position: 400)])
    }

    @Test func `what is flushed while it is paused is not heard, and what follows is heard in full`() throws {
        let rig = try Rig()
        rig.source.tryWrite([Int16](repeating: 10_000, count: 4000).span)
        rig.tick()
        rig.source.isPaused = true
        rig.tick()
        rig.source.flush()
        rig.source.isPaused = false
        rig.source.tryWrite([Int16](repeating: 7, count: 100).span)
        rig.tick(3)
        #expect(rig.sink.collected[120..<240].allSatisfy { $0 == 0 })
        #expect(rig.sink.collected[240..<340].allSatisfy { $0 == 7 } && rig.source.position == 4100)
        // One that begins paused, and is flushed so, too.
        rig.source.isPaused = true
        rig.source.tryWrite([Int16](repeating: 10_000, count: 4000).span)
        rig.tick(2)
        rig.source.flush()
        rig.tick(2)
        #expect(rig.sink.collected[400...].allSatisfy { $0 == 0 } && rig.source.queued == .zero)
    }

    @Test func `flush ends a write that waits, and the rest of it is never heard`() async throws {
        let rig = try Rig(capacity: .milliseconds(100))
        let source = rig.source
        let writing = Task { try await source.write([Int16](repeating: 1, count: 100_000)) }
        while rig.source.queued == .zero { await Task.yield() }
        rig.source.flush()
        try await writing.value
        rig.tick(20)
        #expect(rig.source.queued == .zero && rig.source.position == 800)
        try await source.write([2, 2])
        #expect(rig.source.queued > .zero)
    }

    @Test func `that there is room again is told although no place was free for it at first`() throws {
        let source = StreamSource(format: Self.format, capacity: .milliseconds(100))
        let runner = GraphRunner(eventCapacity: 4)
        var graph = Graph()
        try graph.connect(source.filter, to: CollectingSink(format: Self.format))
        runner.install(try GraphPlan(graph))
        source.tryWrite([Int16](repeating: 1, count: 80).span)
        for _ in 0..<6 { source.mark() }
        source.tryWrite([Int16](repeating: 1, count: 720).span)
        source.filter.askForRoom()
        // The marks take all places; half of the queue is free after five ticks.
        for _ in 0..<6 { runner.tick(at: .zero) }
        var rooms = 0
        func drain() {
            runner.drainEvents(of: source.filter) { if case .room = $0 { rooms += 1 } }
        }
        drain()
        #expect(rooms == 0)
        runner.tick(at: .zero)
        drain()
        #expect(rooms == 1)
        runner.tick(at: .zero)
        drain()
        #expect(rooms == 1)
    }

    @Test func `what is written between a flush and the tick is not thrown away`() throws {
        let rig = try Rig()
        rig.source.tryWrite([Int16](repeating: 1000, count: 800).span)
        rig.tick(2)
        rig.source.flush()
        rig.source.tryWrite([Int16](repeating: 2000, count: 80).span)
        rig.tick(3)
        let heard = rig.sink.collected[160...]
        #expect(heard.count { $0 == 2000 } == 80)
        #expect(!heard.contains(1000))
    }

    @Test func `the end is told when all is played, and nothing is taken behind it`() async throws {
        let rig = try Rig()
        rig.source.tryWrite([Int16](repeating: 3, count: 100).span)
        rig.source.finish()
        #expect(rig.source.tryWrite([1].span) == 0)
        rig.tick(4)
        #expect(await rig.told() == [.resumed(position: 0), .ended(position: 100)])
    }

    @Test func `positions are frames, whatever the channels`() async throws {
        let rig = try Rig(AudioFormat(sampleRate: 16_000, channelCount: 2))
        #expect(rig.source.tryWrite([Int16](repeating: 4, count: 640).span) == 320)
        let mark = try #require(rig.source.mark())
        #expect(mark.position == 320)
        rig.tick(3)
        #expect(rig.sink.collected.prefix(640).allSatisfy { $0 == 4 } && rig.source.position == 320)
        #expect(await rig.told() == [.resumed(position: 0), .played(mark), .starved(position: 320)])
    }
}
