import Testing

@testable import MediaEngine

@Suite struct FrameQueueTests {
    private static func block(_ first: Int16) -> [Int16] { (0..<4).map { first + $0 } }

    @Test func `what is left out counts as passed`() {
        let queue = FrameQueue(frameCount: 8, channelCount: 1)
        for first: Int16 in [0, 4, 8, 12] { queue.put(Self.block(first).span) }
        #expect(queue.lostFrameCount == 8 && queue.holds(8) && !queue.holds(9))
        #expect(queue.position() == 0 && queue.read(4) == [0, 1, 2, 3])
        queue.put(Self.block(16).span)
        #expect(queue.position() == 4 && queue.read(4) == [4, 5, 6, 7])
        #expect(queue.position() == 16 && queue.read(4) == [16, 17, 18, 19] && queue.read(1) == nil)
    }

    @Test func `frames are found by their position, whatever was left out before them`() {
        let queue = FrameQueue(frameCount: 16, channelCount: 2)
        // Two frames each.
        for first: Int16 in stride(from: 0, to: 48, by: 4) { queue.put(Self.block(first).span) }
        #expect(queue.lostFrameCount == 8)
        #expect(queue.read(2, at: 0) == [0, 1, 2, 3] && queue.read(2, at: 6) == [12, 13, 14, 15])
        // A block with a gap in it is none.
        #expect(queue.read(2, at: 7) == nil)
        // What is over is not there any more.
        #expect(queue.read(2, at: 4) == nil && queue.position() == 8 && !queue.reaches(26))
        queue.put(Self.block(48).span)
        #expect(queue.reaches(18) && !queue.reaches(26))
        #expect(queue.read(2, at: 18) == nil && queue.position() == 24 && queue.reaches(26) && !queue.reaches(27))
        #expect(queue.read(2, at: 24) == [48, 49, 50, 51] && queue.read(2, at: 26) == nil)
        queue.put(Self.block(52).span)
        queue.put(Self.block(56).span)
        #expect(queue.read(2, at: 27) == [54, 55, 56, 57])
    }
}
