@testable import MediaEngine
import Testing

@Suite struct ImpairedLinkTests {
    /// Sends `count` numbered packets, one each 20 ms, and answers (number, arrival in ms) as they come out.
    private func run(_ impairment: Impairment, seed: UInt64 = 1, count: Int = 2000) -> [(number: Int, ms: Double)] {
        let (sender, receiver) = MemoryLink.pair()
        let link = ImpairedLink(receiver, impairment, seed: seed)
        var buffer = [UInt8](repeating: 0, count: 100)
        var arrived: [(Int, Double)] = []
        var span = buffer.mutableSpan
        for tick in 0..<(2 * count + 200) {
            let now = MediaTime.zero + .milliseconds(10 * tick)
            if tick % 2 == 0, tick / 2 < count {
                sender.send([UInt8((tick / 2) >> 8), UInt8((tick / 2) & 255)].span, to: receiver.localAddress, at: now)
            }
            while let datagram = link.receive(into: &span, at: now) {
                arrived.append((Int(span[0]) << 8 | Int(span[1]), (datagram.arrival - .zero).milliseconds))
            }
        }
        return arrived
    }

    @Test func `without impairment every packet passes in order at its time`() {
        let arrived = run(Impairment())
        #expect(arrived.map(\.number) == Array(0..<2000))
        #expect(arrived.allSatisfy { $0.ms == Double($0.number * 20) })
    }

    @Test(arguments: [(5.0, 1.0), (5.0, 3.0), (20.0, 2.0), (1.0, 1.5)]) func `loss has its share and its burst length`(
        percent: Double,
        burst: Double
    ) {
        var impairment = Impairment()
        impairment.lossPercent = percent
        impairment.burstLength = burst
        let count = 60_000
        let arrived = Set(run(impairment, count: count).map(\.number))
        let lost = (0..<count).map { !arrived.contains($0) }
        let lostCount = lost.filter { $0 }.count
        let runs = zip(lost, [false] + lost).filter { $0 && !$1 }.count
        #expect(abs(Double(lostCount) / Double(count) * 100 - percent) < percent * 0.1)
        #expect(abs(Double(lostCount) / Double(runs) - max(burst, 1 / (1 - percent / 100))) < burst * 0.1)
    }

    @Test func `all packets can be lost`() {
        var impairment = Impairment()
        impairment.lossPercent = 100
        #expect(run(impairment).isEmpty)
    }

    @Test func `delay and jitter stay within their bounds and reorder`() {
        var impairment = Impairment()
        impairment.delay = .milliseconds(20)
        impairment.jitter = .milliseconds(60)
        let arrived = run(impairment)
        let delays = arrived.map { $0.ms - Double($0.number * 20) }
        #expect(arrived.count == 2000)
        #expect(delays.allSatisfy { $0 >= 20 && $0 < 80 })
        let mean = delays.reduce(0, +) / 2000
        #expect(abs(mean - 50) < 2)
        #expect(arrived.map(\.number) != arrived.map(\.number).sorted())
    }

    @Test func `packets are doubled and held back at their rates`() {
        var impairment = Impairment()
        impairment.duplicatePercent = 10
        impairment.reorderPercent = 10
        let arrived = run(impairment)
        #expect(abs(arrived.count - 2200) < 60)
        let heldBack = arrived.filter { $0.ms > Double($0.number * 20) }
        #expect(abs(heldBack.count - 220) < 60)
    }

    @Test func `the same seed gives the same network`() {
        var impairment = Impairment()
        impairment.lossPercent = 10
        impairment.jitter = .milliseconds(40)
        let (first, second, other) = (run(impairment, seed: 7), run(impairment, seed: 7), run(impairment, seed: 8))
        #expect(first.map(\.number) == second.map(\.number) && first.map(\.ms) == second.map(\.ms))
        #expect(first.map(\.number) != other.map(\.number))
    }

    @Test func `nobody takes the packets: memory stays bounded and the loss is counted`() {
        let (sender, receiver) = MemoryLink.pair()
        for _ in 0..<1000 { sender.send([0].span, to: receiver.localAddress, at: .zero) }
        #expect(receiver.droppedCount == 1000 - 512)
    }
}
