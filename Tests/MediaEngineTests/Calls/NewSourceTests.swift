@testable import MediaEngine
import Testing

/// Another sender takes the place of the first, in the middle of a call.
@Suite struct NewSourceTests {
    @Test func `beginning with an accepted codec is no change, and is heard from its first sample`() async throws {
        let receiver = try await CallReceiver { $0.agreement.acceptedCodecs = [AgreedCodec("PCMA")] }
        func datagram(_ number: Int, ssrc: UInt32) -> [UInt8] {
            CallReceiver.datagram(
                payloadType: ssrc == 9 ? 0 : 8,
                number: number,
                timestamp: number * 160,
                ssrc: ssrc,
                // One value, loud enough to be told from silence.
                payload: [UInt8](repeating: 0x90, count: 160)
            )
        }
        try receiver.hear(count: 50) { datagram($0, ssrc: 9) }
        try receiver.engine.advance(by: .seconds(1))
        try receiver.hear(count: 50) { datagram($0, ssrc: 10) }
        #expect(receiver.received.rejected == 0 && receiver.received.codecChanges == 0)
        let samples = receiver.sink.collected
        let beginning = try #require(samples.lastIndex(of: 0)) + 1
        #expect(samples.count - beginning > 6000)
        #expect(Set(samples[beginning...]).count == 1)
    }

    private static let beginnings: [(type: UInt8, byteCount: Int)] = [(101, 4), (13, 3), (13, 0), (0, 0), (121, 1)]

    @Test(arguments: beginnings)
    func `what it begins with need not be sound`(first: (type: UInt8, byteCount: Int)) async throws {
        let receiver = try await CallReceiver { $0.agreement.redPayloadType = 121 }
        func datagram(_ number: Int, ssrc: UInt32) -> [UInt8] {
            let isFirst = ssrc == 10 && number == 0
            return CallReceiver.datagram(
                payloadType: isFirst ? first.type : 0,
                // Another clock: without a new beginning the buffer would find a jump.
                number: number + Int(ssrc) * 1000,
                timestamp: number * 160 + Int(ssrc) * 800_000,
                ssrc: ssrc,
                payload: [UInt8](repeating: isFirst ? 0x80 : 0x90, count: isFirst ? first.byteCount : 160)
            )
        }
        try receiver.hear(count: 50) { datagram($0, ssrc: 9) }
        try receiver.engine.advance(by: .seconds(1))
        try receiver.hear(count: 50) { datagram($0, ssrc: 10) }
        #expect(receiver.playout.buffer.restartCount == 0)
        #expect(receiver.received.late == 0 && receiver.received.concealedMs == 0)
        #expect(receiver.level(2200..<2900) > 10_000)
    }

    /// What the former source sent last may stand far ahead of it.
    @Test(arguments: [PlayoutDelay.automatic, .fixed(.milliseconds(100))])
    func `its time stamps may be lower, and its noise repeat them before anything is played`(delay: PlayoutDelay)
        async throws
    {
        let receiver = try await CallReceiver { $0.stream.playoutDelay = delay }
        func datagram(_ number: Int, ssrc: UInt32) -> [UInt8] {
            let isNoise = ssrc == 10 && number == 3
            return CallReceiver.datagram(
                payloadType: isNoise ? 13 : 0,
                number: number,
                timestamp: (isNoise ? 2 : number) * 160 + (ssrc == 9 ? 1_000_000_000 : 10_000),
                ssrc: ssrc,
                payload: isNoise ? [40] : [UInt8](repeating: 0x90, count: 160)
            )
        }
        try receiver.hear(count: 50) { datagram($0, ssrc: 9) }
        try receiver.engine.advance(by: .seconds(1))
        // In one tick, before the buffer begins.
        for number in 0..<4 { receiver.send(datagram(number, ssrc: 10)) }
        try receiver.engine.advance(by: .milliseconds(60))
        try receiver.hear(count: 40) { datagram($0 + 4, ssrc: 10) }
        #expect(receiver.playout.buffer.restartCount == 0)
        #expect(receiver.received.late == 0 && receiver.received.comfortNoise == 1)
    }

    @Test func `a key that cannot be read is among what is rejected`() async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 10) { number in
            CallReceiver.datagram(
                payloadType: number == 5 ? 101 : 0,
                number: number,
                timestamp: number * 160,
                payload: [UInt8](repeating: 0x90, count: number == 5 ? 3 : 160)
            )
        }
        #expect(receiver.received.rejected == 1 && receiver.call.receivedKeys.isEmpty)
    }

    @Test func `a key with the number and time stamp of a former source's key is another`() async throws {
        let receiver = try await CallReceiver()
        func datagram(_ number: Int, ssrc: UInt32) -> [UInt8] {
            // A key of 100 ms, whose last packet comes three times (RFC 4733, section 2.5.1.4).
            let duration = min(number - 19, 5) * 160
            let isKey = (20..<27).contains(number)
            let isEnd = number >= 24
            return CallReceiver.datagram(
                payloadType: isKey ? 101 : 0,
                number: number,
                timestamp: (isKey ? 20 : number) * 160,
                ssrc: ssrc,
                payload: isKey
                    ? [1, isEnd ? 0x8A : 0x0A, UInt8(duration >> 8), UInt8(duration & 0xFF)]
                    : [UInt8](repeating: 0x90, count: 160)
            )
        }
        for ssrc in [9, 10] as [UInt32] {
            try receiver.hear(count: 50) { datagram($0, ssrc: ssrc) }
            try receiver.engine.advance(by: .seconds(1))
        }
        #expect(receiver.call.report().dtmf == "11")
    }
}
