import Logging
@testable import MediaEngine
import Synchronization
import TestSupport
import Testing

/// The start of a media thread that the system does not schedule as asked.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct MediaLoopRealTimeTests {
    @Test func `who hears that real time was refused may use the loop`() async throws {
        let stopper = LoopStopper()
        // There is no such priority.
        let timebase = try EngineTimebase(priority: 1000, logger: Logger(label: "test") { _ in stopper })
        let loop = MediaLoop(tickDuration: .milliseconds(10), timebase: timebase, name: "test")
        stopper.loop.withLock { $0 = loop }
        try await loop.start()
        #expect(stopper.loop.withLock { $0 } == nil && loop.scheduling == nil, "it has been stopped")
        timebase.shutDown()
    }
}

/// Stops a loop when anything is logged.
private final class LoopStopper: LogHandler, Sendable {
    let loop = Mutex<MediaLoop?>(nil)

    var logLevel: Logger.Level {
        get { .info }
        set {}
    }

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) { loop.withLock { $0.take() }?.stop() }
}
