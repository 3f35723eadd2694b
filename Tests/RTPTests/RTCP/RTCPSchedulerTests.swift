import CallBasics
@testable import RTP
import Testing

@Suite struct RTCPSchedulerTests {
    private func intervals(_ scheduler: inout RTCPScheduler, count: Int, seed: UInt64) -> [Double] {
        var generator = SeededGenerator(seed: seed)
        var now = MediaTime.zero
        var last = now
        var result: [Double] = []
        scheduler.start(at: now, using: &generator)
        while result.count < count {
            now += .milliseconds(10)
            guard scheduler.isDue(at: now, using: &generator) else { continue }
            scheduler.didSend(byteCount: 80, at: now, using: &generator)
            result.append((now - last).milliseconds / 1000)
            last = now
        }
        return result
    }

    @Test func `two members send about every minimum interval, the first time after half of it`() {
        var firsts = 0.0
        var others = 0.0
        for seed in 1...40 as ClosedRange<UInt64> {
            var scheduler = RTCPScheduler()
            scheduler.update(memberCount: 2, senderCount: 2, isSender: true, at: .zero)
            let drawn = intervals(&scheduler, count: 20, seed: seed)
            // 2.5 s and 5 s, times 0.5 to 1.5, divided by 1.21828, and a tick more.
            #expect((1.02...3.10).contains(drawn[0]))
            #expect(drawn.dropFirst().allSatisfy { (2.05...6.18).contains($0) })
            firsts += drawn[0] / 40
            others += drawn.dropFirst().reduce(0, +) / (40 * 19)
        }
        // Reconsideration and its compensation make the mean that of the computed interval (RFC 3550, section 6.3.1).
        #expect(abs(firsts - 2.5) < 0.25)
        #expect(abs(others - 5) < 0.25)
    }

    @Test func `many members share the bandwidth`() {
        var scheduler = RTCPScheduler(minimumInterval: .seconds(5), bandwidth: 108, typicalByteCount: 80)
        scheduler.update(memberCount: 100, senderCount: 60, isSender: true, at: .zero)
        #expect(scheduler.deterministicInterval == .seconds(100))
        // Senders are at most a quarter: they get a quarter of the bandwidth among themselves.
        scheduler.update(memberCount: 100, senderCount: 10, isSender: true, at: .zero)
        #expect(scheduler.deterministicInterval == .seconds(40))
        scheduler.update(memberCount: 100, senderCount: 10, isSender: false, at: .zero)
        #expect(scheduler.deterministicInterval == .seconds(120))
    }

    @Test func `when members leave, the next packet comes sooner`() {
        var generator = SeededGenerator(seed: 1)
        var scheduler = RTCPScheduler(minimumInterval: .seconds(5), bandwidth: 108)
        scheduler.update(memberCount: 100, senderCount: 0, isSender: false, at: .zero)
        scheduler.start(at: .zero, using: &generator)
        scheduler.didSend(byteCount: 80, at: .zero, using: &generator)
        let before = scheduler.nextTransmission
        scheduler.update(memberCount: 10, senderCount: 0, isSender: false, at: .zero)
        #expect(abs(scheduler.nextTransmission.nanoseconds - before.nanoseconds / 10) <= 1)
    }

    @Test func `the average size follows what travels`() {
        var scheduler = RTCPScheduler(typicalByteCount: 72)
        #expect(scheduler.averageByteCount == 100)
        scheduler.account(byteCount: 232)
        #expect(scheduler.averageByteCount == 110)
    }

    @Test func `senseless settings are held in bounds`() {
        var generator = SeededGenerator(seed: 1)
        var scheduler = RTCPScheduler(minimumInterval: .zero, bandwidth: -5, typicalByteCount: .max - 100)
        scheduler.update(memberCount: -3, senderCount: 9, isSender: true, at: .zero)
        scheduler.start(at: MediaTime(nanoseconds: .max - 10), using: &generator)
        _ = scheduler.isDue(at: MediaTime(nanoseconds: .min), using: &generator)
        #expect(scheduler.deterministicInterval <= .seconds(86_400))
    }
}
