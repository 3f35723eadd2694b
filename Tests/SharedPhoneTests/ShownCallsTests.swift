import CallCore
import Testing

@testable import SharedPhone

/// What a screen is told of an absence of its core.
@Suite struct ShownCallsTests {
    @Test func `one that is let in by a core that closes is away all the same, and told so once`() async {
        let (events, continuation) = AsyncStream.makeStream(of: ScreenClient.Event.self)
        let shown = ShownCalls(continuation)
        let snapshot = ScreenClient.Event.snapshot([], isAudioActive: false)
        for event in [snapshot, .interrupted, .interrupted, snapshot, .interrupted] { shown.tell(event) }
        shown.close()
        continuation.finish()
        var told: [ScreenClient.Event] = []
        for await event in events { told.append(event) }
        #expect(told == [snapshot, .interrupted, snapshot, .interrupted])
    }
}
