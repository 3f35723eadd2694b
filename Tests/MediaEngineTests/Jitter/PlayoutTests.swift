@testable import MediaEngine
import TestSupport
import Testing

/// Text timelines of the fixed buffer; see `PlayoutTimeline` for how to read them.
@Suite struct PlayoutTimelineTests {
    private func play(
        _ arrivals: String,
        delay: Duration = .milliseconds(40),
        payload: (Int) -> [UInt8] = PlayoutTimeline.plain,
        timestamp: (Int) -> UInt32 = { UInt32($0 * 160) }
    ) -> PlayoutTimeline {
        PlayoutTimeline(
            arrivals,
            delay: .fixed(delay),
            payload: payload,
            timestamp: timestamp
        )
    }

    @Test func `every packet is held back by the delay`() {
        let result = play("0.1.2.3.4.5.6.7.8.9.")
        #expect(result.heard == "    0011223344556677")
        #expect(result.statistics.meanWait == .milliseconds(40))
    }

    @Test func `jitter within the delay is not heard`() {
        let result = play("0...123..4.56..789..")
        #expect(result.heard == "    0011223344556677")
        #expect(result.statistics.concealedFrameCount == 0)
    }

    @Test func `reordered packets are put in order`() {
        #expect(play("0.2.1.3.5.4.6.7.8...").heard == "    0011223344556677")
    }

    @Test func `a lost packet is concealed and counted`() {
        let result = play("0.1...3.4.5.6.7.8...")
        #expect(result.heard == "    0011--3344556677")
        #expect(result.statistics.concealedFrameCount == 160)
        #expect(result.statistics.recoveredCount == 0)
    }

    @Test func `a lost packet is taken from the copy in its successor`() {
        let result = play("0.1...3.4.5.6.7.8...", payload: PlayoutTimeline.withCopy)
        #expect(result.heard == "    0011rr3344556677")
        #expect(result.statistics.recoveredCount == 1)
        #expect(result.statistics.concealedFrameCount == 0)
    }

    @Test func `of two lost packets the second is recovered`() {
        let result = play("0.1.....4.5.6.7.8...", payload: PlayoutTimeline.withCopy)
        #expect(result.heard == "    0011--rr44556677")
    }

    @Test func `a late packet is counted, not played`() {
        let result = play("0.1.....3.24.5.6.7.8...")
        #expect(result.heard == "    0011--334455667788-")
        #expect(result.statistics.buffer.lateCount == 1)
    }

    @Test func `a duplicate is played once`() {
        #expect(play("0.1.2.2.3.4.5.6...").heard == "    00112233445566")
    }

    @Test func `a pause of the sender is no loss`() {
        // Packets 0 and 1, then a talk spurt whose timestamps say that 80 ms were left out.
        let result = play("0.1.........2.3.4...", timestamp: { UInt32($0 * 160 + ($0 > 1 ? 640 : 0)) })
        #expect(result.heard == "    0011--------2233")
        #expect(result.statistics.concealedFrameCount == 0)
        #expect(result.statistics.buffer.comfortDuration == 6 * 640)
    }

    @Test func `events between packets are no loss`() {
        // c, d, e are events that took the numbers 2, 3, 4 while the sound paused for 60 ms.
        let result = play("0.1.c.d.e.5.6.7.8...")
        #expect(result.heard == "    0011------556677")
        #expect(result.statistics.concealedFrameCount == 0)
        #expect(result.statistics.comfortFrameCount == 480)
        let reordered = play("0.1.d.c...5e6.7.8...")
        #expect(reordered.statistics.concealedFrameCount == 0)
    }

    @Test func `a packet lost among events is still a loss`() {
        // The packet 2 is lost before the events d and e.
        #expect(play("0.1...d.e.5.6.7.8...").statistics.concealedFrameCount > 0)
    }

    @Test(arguments: [800_000, 40_000, 4000, -4000, -8000])
    func `a jump of the timestamps while numbers go on is counted, and loses nothing`(jump: Int) {
        let result = play("0.1.2.3.4.5.6.7.8...", timestamp: { UInt32(8000 + $0 * 160 + ($0 > 3 ? jump : 0)) })
        #expect(result.statistics.leapCount == 1)
        #expect(result.statistics.buffer.restartCount == 0 && result.statistics.buffer.lateCount == 0)
        #expect(result.heard == "    0011223344556677")
        #expect(result.statistics.concealedFrameCount == 0)
    }

    @Test func `timestamps that wrap are no jump`() {
        let result = play("0.1.2.3.4.5.6.7.8...", timestamp: { UInt32(truncatingIfNeeded: $0 * 160 - 480) })
        #expect(result.heard == "    0011223344556677")
    }

    @Test func `when every packet comes late the delay is drawn anew`() {
        let result = play("0.1.2.........3.4.5.6.7.8.9.........")
        #expect(result.statistics.buffer.restartCount == 1)
        #expect(result.heard.contains("9"))
        #expect(result.statistics.buffer.lateCount == 4)
    }

    @Test func `a payload that the decoder refuses is concealed and counted`() {
        let result = play("0.1.2.3.4.5.6.7.8...", payload: { [UInt8($0), $0 == 3 ? 99 : 0] })
        #expect(result.heard == "    001122--44556677")
        #expect(result.statistics.corruptCount == 1)
        #expect(result.statistics.concealedFrameCount == 160)
    }

    @Test func `after a second without packets the next one is held back anew`() {
        let silence = String(repeating: ".", count: 150)
        let result = play("0.1." + silence + "2.3.4...", timestamp: { UInt32($0 * 160 + ($0 > 1 ? 20000 : 0)) })
        #expect(result.heard.hasSuffix("2233"))
        #expect(result.heard.contains("          "))
    }

    @Test func `more packets than fit are refused and counted, and memory stays bounded`() {
        let playout = Playout(NumberDecoder(), delay: .fixed(.milliseconds(40)))
        for number in 0..<1000 {
            let header = PacketHeader(rtpTimestamp: UInt32(number), sequenceNumber: UInt16(number))
            playout.insert(header, payload: [1, 0].span)
        }
        #expect(playout.statistics.buffer.discardedCount == 1000 - JitterBuffer.capacity)
    }

    @Test func `what waits of a source that another replaces is counted as thrown away`() {
        let playout = Playout(NumberDecoder(), delay: .fixed(.milliseconds(40)))
        for number in 0..<5 {
            let header = PacketHeader(rtpTimestamp: UInt32(number) * 160, sequenceNumber: UInt16(number))
            playout.insert(header, payload: [UInt8(number), 0].span)
        }
        playout.reset()
        #expect(playout.statistics.buffer.discardedCount == 5)
        // All places are free again.
        for number in 0..<JitterBuffer.capacity {
            let header = PacketHeader(rtpTimestamp: UInt32(number) * 160, sequenceNumber: UInt16(number))
            playout.insert(header, payload: [1, 0].span)
        }
        #expect(playout.statistics.buffer.discardedCount == 5)
    }

    @Test(.tags(.rfc)) func `packets of up to 200 ms are taken`() throws {
        // RFC 3551, section 4.2.
        let law = try PluginRegistry.standard().codec(named: "PCMU").makeDecoder(channelCount: 1)
        let playout = Playout(law, delay: .fixed(.zero))
        for (index, length) in [1600, 1601].enumerated() {
            let payload = [UInt8](repeating: 0x10, count: length)
            let header = PacketHeader(
                rtpTimestamp: UInt32(index * 1600),
                sequenceNumber: UInt16(index),
                payloadType: 0,
                isMarked: false,
                arrival: .zero
            )
            playout.insert(header, payload: payload.span)
        }
        var block = [Int16](repeating: 0, count: 80)
        for tick in 0..<20 {
            var samples = block.mutableSpan
            playout.play(into: &samples, at: .zero + .milliseconds(10 * tick))
            #expect(block.allSatisfy { $0 != 0 })
        }
        #expect(playout.statistics.corruptCount == 1 && playout.statistics.buffer.playedCount == 1)
    }

    @Test func `a payload without a whole frame is refused`() {
        // It would keep the buffer where it is.
        let playout = Playout(NumberDecoder(), delay: .automatic)
        #expect(playout.insert(PacketHeader(sequenceNumber: 0), payload: [1].span) == .refused)
        #expect(playout.statistics.corruptCount == 1)
    }

    @Test func `a faster sender does not fill the buffer for ever`() {
        // Packets of 20 ms every 19 ms: the buffer gains 1 ms each 20 ms.
        let playout = Playout(NumberDecoder(), delay: .fixed(.milliseconds(40)))
        var block = [Int16](repeating: 0, count: 80)
        var sent = 0
        for tick in 0..<6000 {
            let now = MediaTime.zero + .milliseconds(10 * tick)
            while sent * 19 <= tick * 10 {
                let header = PacketHeader(
                    rtpTimestamp: UInt32(sent * 160),
                    sequenceNumber: UInt16(truncatingIfNeeded: sent),
                    arrival: now
                )
                playout.insert(header, payload: [1, 0].span)
                sent += 1
            }
            var samples = block.mutableSpan
            playout.play(into: &samples, at: now)
        }
        #expect(playout.statistics.buffer.discardedCount > 5)
        #expect(playout.statistics.concealedFrameCount == 0)
    }
}
