import NIOCore
import NIOEmbedded
import Testing

@testable import LocalMessaging

/// When an event loop stays awake for an answer.
struct BusyPollingTests {
    private let eventLoop = EmbeddedEventLoop()
    private let polling: BusyPolling

    init() {
        polling = BusyPolling(eventLoop)
    }

    /// Writes prompt frames, `count` of them, to which nothing comes; answers after how many of them it polled.
    private func polls(after count: Int) -> Int {
        (0..<count).count { _ in
            polling.begin()
            defer { eventLoop.advanceTime(by: .microseconds(100)) }
            return polling.isPolling
        }
    }

    @Test func `it ends 50 us after the last prompt frame`() {
        polling.begin()
        eventLoop.advanceTime(by: .microseconds(40))
        polling.begin()
        eventLoop.advanceTime(by: .microseconds(49))
        #expect(polling.isPolling)
        eventLoop.advanceTime(by: .microseconds(2))
        #expect(!polling.isPolling)
    }

    @Test func `it ends when something comes`() {
        polling.begin()
        eventLoop.advanceTime(by: .microseconds(5))
        polling.note()
        eventLoop.advanceTime(by: .microseconds(1))
        #expect(!polling.isPolling)
    }

    @Test func `what was in vain many times is done less and less, down to once in 65`() {
        #expect(polls(after: 8) == 8)
        // The ninth, and then one after pauses of 2, 4, 8, 16 and 32.
        #expect(polls(after: 1 + 3 + 5 + 9 + 17 + 33) == 6)
        #expect(polls(after: 650) == 10)
    }

    @Test func `one answer in time, and it is tried each time again`() {
        while polls(after: 65) > 1 {}
        var frames = 0
        repeat {
            polling.begin()
            frames += 1
        } while !polling.isPolling && frames < 100
        polling.note()
        eventLoop.advanceTime(by: .microseconds(1))
        #expect(polls(after: 8) == 8)
    }
}
