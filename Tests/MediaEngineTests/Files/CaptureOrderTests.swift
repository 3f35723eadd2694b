import Testing

@testable import MediaEngine

/// Datagrams that are tapped in another order than they travelled in.
@Suite struct CaptureOrderTests {
    private func datagram(_ milliseconds: Int64, _ mark: UInt8 = 0) -> CaptureOrder.Datagram {
        CaptureOrder.Datagram(
            time: MediaTime(nanoseconds: milliseconds * 1_000_000),
            source: .loopback(port: 1),
            destination: .loopback(port: 2),
            bytes: [mark]
        )
    }

    private func times(_ datagrams: [CaptureOrder.Datagram]) -> [Int64] {
        datagrams.map { $0.time.nanoseconds / 1_000_000 }
    }

    @Test func `what was received before the last that was sent stands before it`() {
        var order = CaptureOrder()
        for time in [20, 11, 40, 31, 32, 60, 52] as [Int64] { order.add(datagram(time)) }
        let early = order.take(at: .zero)
        order.add(datagram(231))
        let due = order.take(at: .zero)
        order.add(datagram(229))
        let rest = order.take(at: .zero, all: true)
        let none = order.take(at: .zero, all: true)
        #expect(early.isEmpty && times(due) == [11, 20, 31])
        #expect(times(rest) == [32, 40, 52, 60, 229, 231] && none.isEmpty)
    }

    @Test func `where nothing more comes none waits for ever`() {
        var order = CaptureOrder()
        for time in [100, 90, 1050] as [Int64] { order.add(datagram(time)) }
        let followed = order.take(at: .zero + .milliseconds(1060))
        let early = order.take(at: .zero + .milliseconds(2049))
        let due = order.take(at: .zero + .milliseconds(2050))
        let none = order.take(at: .zero + .milliseconds(9000))
        #expect(times(followed) == [90, 100] && early.isEmpty)
        #expect(times(due) == [1050] && none.isEmpty)
    }

    @Test func `what has the same time stays as it came`() {
        var order = CaptureOrder()
        for mark in 0..<5 as Range<UInt8> { order.add(datagram(7, mark)) }
        order.add(datagram(6, 9))
        let taken = order.take(at: .zero, all: true)
        #expect(taken.map(\.bytes) == [[9], [0], [1], [2], [3], [4]])
    }

    @Test func `a clock that stands still fills no memory`() {
        var order = CaptureOrder()
        for _ in 0..<3 * CaptureOrder.maximumCount { order.add(datagram(5)) }
        let taken = order.take(at: .zero)
        let rest = order.take(at: .zero, all: true)
        #expect(taken.count == 2 * CaptureOrder.maximumCount && rest.count == CaptureOrder.maximumCount)
    }
}
