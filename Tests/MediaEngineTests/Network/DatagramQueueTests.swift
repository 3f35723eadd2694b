@testable import MediaEngine
import Testing

@Suite struct DatagramQueueTests {
    private static let source = SocketAddress.loopback(port: 9)

    private static func at(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    @Test func `datagrams leave in the order of their times, and equal times in that of their coming`() {
        var queue = DatagramQueue(capacity: 8)
        for (value, due) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
            queue.insert([UInt8(value)].span, from: Self.source, due: Self.at(due))
        }
        #expect(queue.nextDue == Self.at(10))
        var order: [UInt8] = []
        var buffer: [UInt8] = [0]
        for time in [5, 10, 15, 20, 30] {
            while true {
                var target = buffer.mutableSpan
                guard let datagram = queue.remove(into: &target, dueBy: Self.at(time)) else { break }
                #expect(datagram.arrival <= Self.at(time))
                order.append(buffer[0])
            }
        }
        #expect(order == [2, 4, 3, 1])
    }

    @Test func `a full queue refuses and counts, and what is too long never enters`() {
        var queue = DatagramQueue(capacity: 16)
        for _ in 0..<1000 { queue.insert([1].span, from: Self.source, due: .zero) }
        #expect(queue.count == 16 && queue.refusedCount == 984)
        var buffer: [UInt8] = [0]
        var target = buffer.mutableSpan
        _ = queue.remove(into: &target, dueBy: .zero)
        let long = [UInt8](repeating: 0, count: DatagramQueue.maximumByteCount + 1)
        queue.insert(long.span, from: Self.source, due: .zero)
        #expect(queue.count == 15 && queue.refusedCount == 985)
    }

    @Test func `a full queue that lets its first one go has room for the next`() {
        var queue = DatagramQueue(capacity: 3)
        for value in 1...5 {
            if queue.isFull { queue.removeFirst() }
            queue.insert([UInt8(value)].span, from: Self.source, due: Self.at(value))
        }
        #expect(queue.count == 3 && queue.refusedCount == 0)
        var buffer: [UInt8] = [0]
        var order: [UInt8] = []
        for _ in 0..<4 {
            var target = buffer.mutableSpan
            if queue.remove(into: &target, dueBy: Self.at(5)) != nil { order.append(buffer[0]) }
        }
        #expect(order == [3, 4, 5])
        queue.removeFirst()
        #expect(queue.count == 0)
        var none = DatagramQueue(capacity: 0)
        none.insert([1].span, from: Self.source, due: .zero)
        #expect(none.isFull && none.count == 0 && none.refusedCount == 1)
    }

    @Test func `what nobody takes from a link in memory is bounded`() {
        let (left, right) = MemoryLink.pair()
        for _ in 0..<100_000 { left.send([1, 2, 3].span, to: right.localAddress, at: .zero) }
        var buffer = [UInt8](repeating: 0, count: 8)
        var count = 0
        while true {
            var target = buffer.mutableSpan
            guard right.receive(into: &target, at: .zero) != nil else { break }
            count += 1
        }
        #expect(count == 512 && right.droppedCount == 100_000 - 512)
    }

    @Test func `a link that holds packets back holds a bounded number`() {
        let (left, right) = MemoryLink.pair()
        var slow = Impairment()
        slow.delay = .seconds(3600)
        let link = ImpairedLink(right, slow, seed: 1)
        var buffer = [UInt8](repeating: 0, count: 8)
        for tick in 0..<200 {
            for _ in 0..<256 { left.send([1].span, to: right.localAddress, at: Self.at(tick)) }
            var target = buffer.mutableSpan
            let early = link.receive(into: &target, at: Self.at(tick))
            #expect(early == nil)
        }
        var count = 0
        while true {
            var target = buffer.mutableSpan
            guard link.receive(into: &target, at: Self.at(4_000_000)) != nil else { break }
            count += 1
        }
        #expect(count == 1024)
    }
}
