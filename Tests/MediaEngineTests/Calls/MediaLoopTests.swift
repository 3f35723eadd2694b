@testable import MediaEngine
import Testing

/// How the media thread is started.
@Suite struct MediaLoopTests {
    @Test func `the thread is waited for off the concurrency pool`() async throws {
        let loop = MediaLoop(
            tickDuration: .milliseconds(10),
            timebase: EngineTimebase(logger: LogCapture().logger),
            name: "test"
        )
        let isInTask = LatestValue(true)
        @Sendable func makePacer() -> any TickPacer {
            isInTask.publish(withUnsafeCurrentTask { $0 != nil })
            return DeadlinePacer()
        }
        try await loop.start(pacer: makePacer())
        #expect(!isInTask.value)
        // The second time nothing is to be done.
        isInTask.publish(true)
        try await loop.start(pacer: makePacer())
        #expect(isInTask.value)
        loop.stop()
    }
}
