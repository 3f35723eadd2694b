@testable import MediaEngine
import Testing

/// Events of the media thread that find no room.
@Suite struct LostEventTests {
    private static let format = AudioFormat(sampleRate: 8000)

    private static func report(_ pair: CallPair) -> CallReport {
        CallReport(
            codec: "PCMU",
            mode: .virtual,
            seconds: 0.1,
            legs: [pair.caller.report()],
            ticks: pair.engine.tickReport
        )
    }

    @Test func `events that are lost are in the report, and logged once`() async throws {
        let log = LogCapture()
        var configuration = CallEngineConfiguration.virtual()
        configuration.logger = log.logger
        let engine = try CallEngine(configuration)
        let pair = try await CallPair(
            saying: .filter(EventSource(count: 5000, format: Self.format)),
            engine: engine
        )
        #expect(engine.tickReport.lostEvents == 0)
        try pair.advance(100)
        let report = Self.report(pair)
        // The ring has room for 4096.
        #expect(report.ticks.lostEvents >= 904 && report.ticks.lostEvents < 1000)
        #expect(report.table.contains(", \(report.ticks.lostEvents) events lost\n"))
        try OpenMetricsGrammar.check(report.openMetrics)
        #expect(report.openMetrics.contains("\nmedia_lost_events_total \(report.ticks.lostEvents)\n"))
        try pair.advance(100)
        #expect(log.lines.count { $0.contains("media lost \(report.ticks.lostEvents) events") } == 1)
        #expect(log.lines.count { $0.contains(" events, for nobody took") } == 1)
    }

    @Test func `where all are taken nothing is lost, logged or shown`() async throws {
        let log = LogCapture()
        var configuration = CallEngineConfiguration.virtual()
        configuration.logger = log.logger
        let voice = StreamSource(format: Self.format)
        let pair = try await CallPair(saying: .stream(voice), engine: try CallEngine(configuration))
        for _ in 0..<1024 { voice.mark() }
        try pair.advance(100)
        let report = Self.report(pair)
        #expect(report.ticks.lostEvents == 0 && !report.table.contains("events lost"))
        #expect(report.openMetrics.contains("\nmedia_lost_events_total 0\n"))
        #expect(!log.lines.contains { $0.contains("events, for") })
    }

    @Test func `the end of a source, and of a key, is told once there is room`() throws {
        try TestFiles.withTemporaryPath { path in
            let samples = [Int16](repeating: 1, count: 160)
            try WAVFile.write(path, format: Self.format, samples: samples)
            let player = SamplePlayerFilter(samples, format: Self.format)
            let file = try FilePlayerFilter(path: path, format: Self.format)
            let tones = ToneFilter(format: Self.format)
            let runner = GraphRunner(eventCapacity: 8)
            var graph = Graph()
            for source in [EventSource(count: 100, format: Self.format), player, file, tones] {
                try graph.connect(source, to: CollectingSink(format: Self.format))
            }
            runner.install(try GraphPlan(graph))
            runner.tick(at: .zero)
            let lost = runner.droppedEventCount
            runner.send(.play(DTMFDigit.all[1], duration: 40_000_000, gap: 0, requestedAt: .zero), to: tones)
            for _ in 0..<20 { runner.tick(at: .zero) }
            #expect(player.isFinished && file.isFinished)
            runner.drainEvents { _ in }
            for _ in 0..<3 { runner.tick(at: .zero) }
            var (ends, keyEnds) = (0, 0)
            runner.drainEvents { event in
                if event.filter == player.id || event.filter == file.id { ends += 1 }
                guard event.filter == tones.id else { return }
                if case .digitEnded = event.message.load(as: ToneFilter.Event.self) { keyEnds += 1 }
            }
            #expect(ends == 2 && keyEnds == 1 && runner.droppedEventCount == lost)
        }
    }

    @Test func `what is told again until it finds room is not counted`() throws {
        let source = StreamSource(format: Self.format)
        let runner = GraphRunner(eventCapacity: 2)
        var graph = Graph()
        try graph.connect(source.filter, to: CollectingSink(format: Self.format))
        runner.install(try GraphPlan(graph))
        for _ in 0..<20 { source.mark() }
        for _ in 0..<5 { runner.tick(at: .zero) }
        #expect(runner.droppedEventCount == 0)
    }
}
