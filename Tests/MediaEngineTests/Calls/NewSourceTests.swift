@testable import MediaEngine
import Testing

/// Another sender takes the place of the first, in the middle of a call.
@Suite struct NewSourceTests {
    @Test func `beginning with an accepted codec is no change, and is heard from its first sample`() throws {
        let receiver = try CallReceiver { $0.acceptedCodecs = [AcceptedCodec("PCMA")] }
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
        #expect(receiver.received.rejected == 1 && receiver.received.codecChanges == 0)
        let samples = receiver.sink.collected
        let beginning = try #require(samples.lastIndex(of: 0)) + 1
        #expect(samples.count - beginning > 6000)
        #expect(Set(samples[beginning...]).count == 1)
    }

    private static let beginnings: [(type: UInt8, byteCount: Int)] = [(101, 4), (13, 3), (13, 0), (0, 0), (121, 1)]

    @Test(arguments: beginnings)
    func `what it begins with need not be sound`(first: (type: UInt8, byteCount: Int)) throws {
        let receiver = try CallReceiver { $0.redPayloadType = 121 }
        func datagram(_ number: Int, ssrc: UInt32) -> [UInt8] {
            // The session takes the second packet of a new source for its first.
            let isFirst = ssrc == 10 && number < 2
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
}
