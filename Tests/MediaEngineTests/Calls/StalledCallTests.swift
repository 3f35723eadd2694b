@testable import MediaEngine
import Testing

/// A sender that stands still again and again and then makes up for it, in virtual time.
@Suite struct StalledCallTests {
    /// A link whose datagrams leave at the time of another clock: the network's.
    private final class TimedLink: DatagramLink, @unchecked Sendable {
        private let link: MemoryLink
        private let network: CallEngine

        init(_ link: MemoryLink, _ network: CallEngine) {
            self.link = link
            self.network = network
        }

        func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
            link.send(bytes, to: destination, at: network.now)
        }

        func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
            link.receive(into: &buffer, at: now)
        }
    }

    @Test func `what comes in a burst after each stall is heard, and little is invented`() async throws {
        let (sending, receiving) = (try CallEngine(.virtual()), try CallEngine(.virtual()))
        let (left, right) = MemoryLink.pair()
        let format = AudioFormat(sampleRate: 8000)
        var calling = CallConfiguration(network: .link(TimedLink(left, receiving), local: left.localAddress))
        calling.agreement.codec = "PCMU"
        calling.agreement.remote = right.localAddress
        calling.source = .samples(chirps(12, format), format)
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.codec = "PCMU"
        called.source = .silence
        called.sink = .none
        let caller = try await sending.makeCall(calling)
        let callee = try await receiving.makeCall(called)
        for tick in 0..<1200 {
            // 80 ms of each 500, from the second second on, 18 times.
            let isStalled = (100..<1000).contains(tick) && tick % 50 < 8
            if !isStalled { try sending.advance(by: receiving.now + .milliseconds(10) - sending.now) }
            try receiving.advance(by: .milliseconds(10))
        }
        let (sent, received) = (caller.report().sent, callee.report().received)
        #expect(sent.packets == 600)
        #expect(received.packets >= 599 && received.lost == 0 && received.discarded == 0)
        #expect(received.concealedMs <= 250, "\(received.concealedMs) ms")
    }
}
