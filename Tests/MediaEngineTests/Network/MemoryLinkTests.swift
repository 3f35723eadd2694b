@testable import MediaEngine
import Testing

@Suite struct MemoryLinkTests {
    private static func at(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    /// Takes the next datagram; its first byte and its length.
    private static func take(_ link: MemoryLink, at now: MediaTime) -> (value: UInt8, byteCount: Int)? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var target = buffer.mutableSpan
        guard let datagram = link.receive(into: &target, at: now) else { return nil }
        return (buffer[0], datagram.byteCount)
    }

    @Test func `what one end sends the other receives, at its time, by the sender's address`() throws {
        let (left, right) = MemoryLink.pair()
        for (value, due) in [(1, 20), (2, 10), (3, 10)] {
            let isSent = left.send([UInt8(value)].span, to: right.localAddress, at: Self.at(due))
            #expect(isSent)
        }
        #expect(Self.take(right, at: Self.at(9)) == nil)
        var buffer: [UInt8] = [0]
        var target = buffer.mutableSpan
        let received = right.receive(into: &target, at: Self.at(10))
        let datagram = try #require(received)
        #expect(datagram.source == left.localAddress && datagram.arrival == Self.at(10) && buffer == [2])
        #expect(Self.take(right, at: Self.at(19))?.value == 3 && Self.take(right, at: Self.at(19)) == nil)
        #expect(Self.take(right, at: Self.at(20))?.value == 1)
        #expect(Self.take(left, at: Self.at(100)) == nil)
    }

    @Test func `places are free again once a datagram was taken, short or long`() {
        let (left, right) = MemoryLink.pair()
        for round in 0..<2000 {
            let length = round % 3 == 0 ? 4096 : 1 + round % 300
            let datagram = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: length)
            for _ in 0..<3 { left.send(datagram.span, to: right.localAddress, at: .zero) }
            for _ in 0..<3 {
                let taken = Self.take(right, at: .zero)
                #expect(taken?.value == datagram[0] && taken?.byteCount == length)
            }
        }
        #expect(right.droppedCount == 0 && Self.take(right, at: .zero) == nil)
    }

    @Test func `what is too long, or too many, is dropped and counted where it was to arrive`() {
        let (left, right) = MemoryLink.pair()
        left.send([UInt8](repeating: 0, count: 4097).span, to: right.localAddress, at: .zero)
        #expect(right.droppedCount == 1)
        for _ in 0..<600 { left.send([1].span, to: right.localAddress, at: .zero) }
        #expect(right.droppedCount == 1 + 600 - 512 && left.droppedCount == 0)
        #expect(Self.take(right, at: .zero) != nil)
        left.send([2].span, to: right.localAddress, at: .zero)
        #expect(right.droppedCount == 1 + 600 - 512)
    }

    @Test func `nobody receives at another address, nor where the other end is gone`() {
        let (left, right) = MemoryLink.pair()
        let toItself = left.send([1].span, to: left.localAddress, at: .zero)
        #expect(!toItself)
        #expect(Self.take(right, at: .zero) == nil)
        let (lonely, _) = MemoryLink.pair()
        let toNobody = lonely.send([1].span, to: SocketAddress(ipv4: 0x0A00_0002, port: 5004), at: .zero)
        #expect(!toNobody)
    }
}
