@testable import MediaEngine
import Testing

@Suite struct RingBufferTests {
    @Test func `elements come out in the order they went in`() {
        let ring = RingBuffer<Int>(minimumCapacity: 4)
        for element in 1...4 { #expect(ring.push(element)) }
        #expect((1...4).allSatisfy { ring.pop() == $0 })
        #expect(ring.pop() == nil)
    }

    @Test func `a full ring refuses and counts`() {
        let ring = RingBuffer<Int>(minimumCapacity: 2)
        #expect(ring.push(1) && ring.push(2))
        #expect(!ring.push(3))
        #expect(ring.droppedCount == 1)
        #expect(ring.pop() == 1)
        #expect(ring.push(4))
        #expect(ring.pop() == 2 && ring.pop() == 4)
    }
}
