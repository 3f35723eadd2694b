@testable import MediaEngine
import Testing

/// Every mark is told once as played or dropped, whatever happens to the events, the stream and the call.
@Suite struct StreamMarkTests {
    private static let format = AudioFormat(sampleRate: 8000)

    /// A source whose events have few places.
    private final class Rig {
        let source = StreamSource(format: StreamMarkTests.format)
        private let runner: GraphRunner

        init(eventCapacity: Int) throws {
            runner = GraphRunner(eventCapacity: eventCapacity)
            var graph = Graph()
            try graph.connect(source.filter, to: CollectingSink(format: StreamMarkTests.format))
            runner.install(try GraphPlan(graph))
        }

        func write(_ frameCount: Int) {
            source.tryWrite([Int16](repeating: 100, count: frameCount).span)
        }

        /// Ticks; the events wait until `drain`.
        func tick(_ count: Int = 1) {
            for _ in 0..<count { runner.tick(at: .zero) }
        }

        func drain() {
            runner.drainEvents(of: source.filter) { source.handle($0) }
        }

        /// All that was told; ends the source.
        func told() async -> [StreamSource.Event] {
            source.close()
            return await events(of: source)
        }
    }

    private static func events(of source: StreamSource) async -> [StreamSource.Event] {
        var events: [StreamSource.Event] = []
        for await event in source.events { events.append(event) }
        return events
    }

    private static func isMark(_ event: StreamSource.Event) -> Bool {
        switch event {
        case .played, .dropped: true
        case .starved, .resumed, .ended: false
        }
    }

    @Test func `marks that find no place among the events are told later, in order`() async throws {
        let rig = try Rig(eventCapacity: 4)
        rig.write(80)
        let early = try (0..<10).map { _ in try #require(rig.source.mark()) }
        rig.write(80)
        let late = try #require(rig.source.mark())
        rig.tick(5)
        for _ in 0..<5 {
            rig.drain()
            rig.tick()
        }
        rig.drain()
        #expect(await rig.told().filter(Self.isMark) == (early + [late]).map { .played($0) })
    }

    @Test func `what became of a mark stays so, however late it is told`() async throws {
        let rig = try Rig(eventCapacity: 2)
        rig.write(80)
        let played = try (0..<4).map { _ in try #require(rig.source.mark()) }
        rig.write(800)
        let dropped = try (0..<4).map { _ in try #require(rig.source.mark()) }
        rig.tick()
        rig.source.flush()
        rig.tick()
        rig.write(80)
        let last = try #require(rig.source.mark())
        for _ in 0..<8 {
            rig.tick()
            rig.drain()
        }
        #expect(
            await rig.told().filter(Self.isMark)
                == played.map { .played($0) } + dropped.map { .dropped($0) } + [.played(last)]
        )
    }

    @Test func `a mark behind a flush is played, and one before it dropped, at the same place`() async throws {
        let rig = try Rig(eventCapacity: 64)
        rig.write(800)
        let before = try #require(rig.source.mark())
        rig.source.flush()
        let after = try #require(rig.source.mark())
        #expect(before.position == 800 && after.position == 800)
        rig.tick()
        rig.drain()
        #expect(await rig.told().filter(Self.isMark) == [.dropped(before), .played(after)])
    }

    @Test func `the end is told behind all marks, also where a place becomes free in between`() throws {
        let rig = try Rig(eventCapacity: 2)
        rig.write(80)
        for _ in 0..<4 { _ = try #require(rig.source.mark()) }
        rig.source.finish()
        // Two marks take all places.
        rig.tick()
        var told: [StreamSourceFilter.Event] = []
        var refusals = 1
        func tell() {
            rig.source.filter.tell(played: 0, of: 80, mayEnd: true) { event in
                if refusals > 0 {
                    refusals -= 1
                    return false
                }
                told.append(event)
                return true
            }
        }
        func isEnd(_ event: StreamSourceFilter.Event) -> Bool { if case .ended = event { true } else { false } }
        tell()
        let isEarly = told.contains(where: isEnd)
        tell()
        let endPlace = told.firstIndex(where: isEnd)
        // Two marks, that sound began, and the end.
        #expect(!isEarly && told.count == 4 && endPlace == 3)
    }

    @Test func `sound that begins, stops and ends is told although no place was free at first`() async throws {
        let rig = try Rig(eventCapacity: 2)
        rig.write(80)
        let marks = try (0..<2).map { _ in try #require(rig.source.mark()) }
        // The marks take all places; the next tick tells that sound has begun, and that it is over.
        rig.tick()
        rig.drain()
        rig.tick()
        rig.drain()
        rig.write(80)
        let later = try (0..<2).map { _ in try #require(rig.source.mark()) }
        rig.tick()
        rig.source.finish()
        rig.tick(3)
        rig.drain()
        for _ in 0..<3 {
            rig.tick()
            rig.drain()
        }
        #expect(
            await rig.told() == [
                .played(marks[0]), .played(marks[1]), .resumed(position: 0), .starved(position: 80),
                .played(later[0]), .played(later[1]), .ended(position: 160),
            ]
        )
    }

    @Test func `marks that wait when the call ends are dropped, and those whose sound was played are not`()
        async throws
    {
        let rig = try Rig(eventCapacity: 2)
        rig.write(80)
        let played = try (0..<5).map { _ in try #require(rig.source.mark()) }
        rig.write(8000)
        let waiting = try (0..<3).map { _ in try #require(rig.source.mark()) }
        rig.tick(2)
        rig.drain()
        #expect(
            await rig.told().filter(Self.isMark) == played.map { .played($0) } + waiting.map { .dropped($0) }
        )
        #expect(rig.source.mark() == nil)
    }

    @Test func `no more than 1024 marks wait, and all of them are told`() async throws {
        let rig = try Rig(eventCapacity: 2)
        rig.write(80)
        for _ in 0..<1024 { #expect(rig.source.mark() != nil) }
        #expect(rig.source.mark() == nil)
        // Those that were reached and not told count, too.
        rig.tick(3)
        var added = 0
        while rig.source.mark() != nil { added += 1 }
        #expect(added <= 4)
        rig.drain()
        let told = await rig.told().filter(Self.isMark)
        #expect(told.count == 1024 + added)
        #expect(told.enumerated().allSatisfy { $1 == .played(StreamMark(number: UInt64($0), position: 80)) })
    }

    @Test func `the end of a call tells its marks`() async throws {
        let voice = StreamSource(format: Self.format)
        let pair = try await CallPair(saying: .stream(voice))
        voice.tryWrite([Int16](repeating: 100, count: 800).span)
        let early = try #require(voice.mark())
        voice.tryWrite([Int16](repeating: 100, count: 8000).span)
        let late = try #require(voice.mark())
        try pair.advance(200)
        try await pair.caller.end()
        #expect(await Self.events(of: voice) == [.resumed(position: 0), .played(early), .dropped(late)])
    }

    @Test func `that somebody speaks is told although no place was free for it at first`() async throws {
        let tone = (0..<8000).map { Int16($0 % 20 < 10 ? 8000 : -8000) }
        let samples = [Int16](repeating: 0, count: 800) + tone + [Int16](repeating: 0, count: 8000)
        let sink = StreamSink(format: Self.format)
        let runner = GraphRunner(eventCapacity: 2)
        var graph = Graph()
        let noise = EventSource(count: 2, format: Self.format)
        try graph.connect(noise, to: CollectingSink(format: Self.format))
        try graph.connect(SamplePlayerFilter(samples, format: Self.format), to: sink.filter)
        runner.install(try GraphPlan(graph))
        for tick in 0..<210 {
            runner.tick(at: .zero)
            if tick >= 50 { runner.drainEvents(of: sink.filter) { sink.handle($0) } }
        }
        sink.close()
        var events: [StreamSink.SpeechEvent] = []
        for await event in sink.speech { events.append(event) }
        #expect(events == [.started(position: 800), .stopped(position: 8800)])
    }
}
