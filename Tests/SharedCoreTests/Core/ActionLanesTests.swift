import CallBasics
import Testing

@testable import SharedCore

@Suite struct ActionLanesTests {
    private var lanes = ActionLanes()
    private let start = MediaTime.zero

    @Test mutating func `what failed rests, twice as long each time, up to 15 minutes`() {
        for (failures, seconds) in [(1, 15), (2, 30), (3, 60), (7, 900), (1000, 900)] {
            lanes.begin("a")
            #expect(lanes.isBusy && lanes.closed == ["a"])
            lanes.end("a", failures: failures, at: start)
            #expect(!lanes.isBusy && lanes.closed == ["a"])
            let end = start + .seconds(seconds)
            #expect(lanes.deadline == end)
            lanes.handleTimeout(at: end - .nanoseconds(1))
            #expect(lanes.closed == ["a"])
            lanes.handleTimeout(at: end)
            #expect(lanes.closed.isEmpty && lanes.deadline == nil)
        }
    }

    @Test mutating func `what is over is free, and nothing rests when all are to be tried again`() {
        lanes.begin("a")
        lanes.begin("b")
        lanes.end("a", failures: nil, at: start)
        #expect(lanes.closed == ["b"])
        lanes.end("b", failures: 1, at: start)
        lanes.hurry()
        #expect(lanes.closed.isEmpty)
    }

    @Test mutating func `so many are tried at the same time and no more`() {
        for number in 0..<ActionLanes.limit {
            #expect(!lanes.isFull)
            lanes.begin("\(number)")
        }
        #expect(lanes.isFull)
    }
}
