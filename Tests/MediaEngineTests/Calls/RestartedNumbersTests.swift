@testable import MediaEngine
import Testing

/// A gateway swaps the source behind it and keeps its SSRC: numbers and time stamps jump in the middle of a call.
@Suite struct RestartedNumbersTests {
    private static let numberJumps = [0, 1000, 3000, -3000]
    /// In milliseconds.
    private static let timeJumps = [0, 500, -500, 5000, -5000]

    @Test(arguments: numberJumps, timeJumps)
    func `neither sound nor packets are lost where numbers and time stamps jump`(
        numberJump: Int,
        timeJump: Int
    ) async throws {
        let receiver = try await CallReceiver()
        try receiver.hear(count: 200) { index in
            let isAfter = index >= 100
            return CallReceiver.datagram(
                payloadType: 0,
                number: index + (isAfter ? numberJump : 0),
                timestamp: 100_000 + index * 160 + (isAfter ? timeJump * 8 : 0),
                payload: [UInt8](repeating: 0x90, count: 160)
            )
        }
        let (received, playout) = (receiver.received, receiver.playout)
        #expect(received.packets == 200 && received.lost == 0 && received.rejected == 0)
        #expect(received.late == 0 && received.discarded == 0 && received.duplicate == 0)
        // The last packets still wait.
        #expect(playout.buffer.playedCount >= 195)
        #expect(received.concealedMs <= 10, "\(received.concealedMs) ms")
        #expect(playout.comfortFrameCount == 0)
    }

    @Test func `what waits long is heard before the new numbers`() async throws {
        let receiver = try await CallReceiver { $0.stream.playoutDelay = .fixed(.milliseconds(200)) }
        try receiver.hear(count: 200) { index in
            CallReceiver.datagram(
                payloadType: 0,
                number: index + (index >= 100 ? 9000 : 0),
                timestamp: 100_000 + index * 160 + (index >= 100 ? -4000 : 0),
                payload: [UInt8](repeating: 0x90, count: 160)
            )
        }
        #expect(receiver.received.lost == 0 && receiver.received.discarded == 0)
        #expect(receiver.received.concealedMs == 0)
        #expect(receiver.playout.buffer.playedCount >= 188)
    }
}
