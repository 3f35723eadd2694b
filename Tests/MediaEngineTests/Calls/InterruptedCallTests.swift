@testable import MediaEngine
import SDP
import Testing

/// What a call says of its quality when no packet is lost, and sound is all the same.
@Suite struct InterruptedCallTests {
    private func datagram(_ number: Int) -> [UInt8] {
        CallReceiver.datagram(
            payloadType: 0,
            number: number,
            timestamp: number * 160,
            payload: [UInt8](repeating: 0x90, count: 160)
        )
    }

    @Test func `packets that come twice as fast as they sound are thrown away, which is told`() async throws {
        let receiver = try await CallReceiver()
        for number in 0..<1000 {
            receiver.send(datagram(number))
            try receiver.engine.advance(by: .milliseconds(10))
        }
        let report = receiver.call.report()
        let share = Double(report.received.discarded) / 10
        #expect(share > 15 && report.received.lost == 0)
        #expect(abs(report.quality.discardPercent - share) < 1 && report.quality.lossPercent == 0)
        // Section 7.5 of G.107, each packet for itself.
        #expect(try #require(report.quality.rFactor) < 93.2 - 95 * share / (share + 25.1) + 2)
        #expect(try #require(report.quality.mosListening) < 3.4)
    }

    // The sender's clock stands in a stall, or all that it sent meanwhile comes at once.
    @Test(arguments: [1000, 1500], [false, true])
    func `five stalls in a minute are heard, though no packet is lost`(stall: Int, isMadeUp: Bool) async throws {
        let receiver = try await CallReceiver()
        var number = 0
        for _ in 0..<5 {
            let first = number
            try receiver.hear(count: (12_000 - stall) / 20) { datagram(first + $0) }
            number += (12_000 - stall) / 20
            try receiver.engine.advance(by: .milliseconds(stall))
            guard isMadeUp else { continue }
            for _ in 0..<stall / 20 {
                receiver.send(datagram(number))
                number += 1
            }
        }
        let last = number
        try receiver.hear(count: 20) { datagram(last + $0) }
        let quality = receiver.call.report().quality
        #expect(quality.lossPercent == 0 && receiver.received.lost == 0)
        #expect((4500...8000).contains(quality.interruptedMs), "\(quality.interruptedMs) ms")
        #expect(try #require(quality.rFactor) < 75)
        #expect(try #require(quality.mosListening) < 3.8)
    }

    @Test func `pauses of the sender are no interruptions`() async throws {
        let receiver = try await CallReceiver()
        for spurt in 0..<5 {
            try receiver.hear(count: 100) { index in
                let number = spurt * 100 + index
                return CallReceiver.datagram(
                    payloadType: 0,
                    number: number,
                    timestamp: number * 160 + spurt * 12_000,
                    payload: [UInt8](repeating: 0x90, count: 160)
                )
            }
            // As long as the time stamps say.
            try receiver.engine.advance(by: .milliseconds(1500))
        }
        let quality = receiver.call.report().quality
        #expect(quality.interruptedMs <= 20, "\(quality.interruptedMs) ms")
        #expect(try #require(quality.mosListening) > 4.3 && quality.scale == .narrowband)
    }

    // Shorter and longer than what ends a stream.
    @Test(arguments: [500, 1500])
    func `of a pause whose next packet is lost, only that packet is an interruption`(pause: Int) async throws {
        let receiver = try await CallReceiver()
        for spurt in 0..<5 {
            for index in 0..<100 {
                let number = spurt * 100 + index
                let packet = CallReceiver.datagram(
                    payloadType: 0,
                    number: number,
                    timestamp: number * 160 + spurt * pause * 8,
                    payload: [UInt8](repeating: 0x90, count: 160)
                )
                if index > 0 || spurt == 0 { receiver.send(packet) }
                try receiver.engine.advance(by: .milliseconds(20))
            }
            try receiver.engine.advance(by: .milliseconds(pause))
        }
        // One that pauses may do so for long.
        try receiver.engine.advance(by: .seconds(10))
        let quality = receiver.call.report().quality
        #expect((80...120).contains(quality.interruptedMs), "\(quality.interruptedMs) ms")
        #expect(receiver.playout.buffer.interruptionCount == 4)
    }

    @Test func `a hold is no interruption, though the sender's clock stands in it`() async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 100, datagram: datagram)
        receiver.call.isOnHold = true
        try receiver.engine.advance(by: .seconds(5))
        receiver.call.isOnHold = false
        try receiver.hear(count: 100) { datagram(100 + $0) }
        let interrupted = receiver.call.report().quality.interruptedMs
        #expect(interrupted <= 40, "\(interrupted) ms")
    }

    @Test func `the other side's hold without music is no outage`() async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 100, datagram: datagram)
        var agreement = receiver.call.agreement
        agreement.direction = .receiveOnly
        try await receiver.call.update(agreement)
        try receiver.engine.advance(by: .seconds(20))
        let interrupted = receiver.call.report().quality.interruptedMs
        #expect(interrupted <= 40, "\(interrupted) ms")
    }

    @Test(arguments: [false, true])
    func `an outage counts before it ends, unless the source has said goodbye`(hasLeft: Bool) async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 100, datagram: datagram)
        if hasLeft { receiver.send(ReceiveRig.goodbye(9)) }
        try receiver.engine.advance(by: .seconds(5))
        let open = receiver.call.report().quality.interruptedMs
        #expect(hasLeft ? open <= 20 : (4800...5000).contains(open), "\(open) ms")
        guard !hasLeft else { return }
        try receiver.hear(count: 100) { datagram(100 + $0) }
        let closed = receiver.call.report().quality.interruptedMs
        #expect((4900...5200).contains(closed), "\(closed) ms")
        #expect(receiver.playout.buffer.interruptions.count == 1)
    }

    // Of one packet, or as long as a spurt of comfort noise.
    @Test(arguments: [20, 400])
    func `only a pause of 200 ms or more tells that the sender leaves out silence`(moment: Int) async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 100, datagram: datagram)
        try receiver.engine.advance(by: .milliseconds(moment))
        try receiver.hear(count: 100) { index in
            CallReceiver.datagram(
                payloadType: 0,
                number: 100 + index,
                timestamp: (100 + index) * 160 + moment * 8,
                payload: [UInt8](repeating: 0x90, count: 160)
            )
        }
        try receiver.engine.advance(by: .seconds(5))
        let open = receiver.call.report().quality.interruptedMs
        #expect(moment > 200 ? open <= 20 : (4800...5000).contains(open), "\(open) ms")
    }

    @Test func `an outage that ends the stream counts with what was lost in it`() async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 100, datagram: datagram)
        try receiver.engine.advance(by: .seconds(2))
        try receiver.hear(count: 100) { datagram(200 + $0) }
        let interruptions = receiver.playout.buffer.interruptions
        #expect((1900...2100).contains(interruptions.nanoseconds / 1_000_000) && interruptions.count == 1)
    }
}
