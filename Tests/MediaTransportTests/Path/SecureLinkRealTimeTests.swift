import CAllocationCounter
import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import MediaTransport

/// What the media thread does for a packet neither allocates nor locks.
@Suite(
    .serialized,
    .tags(.realtime),
    .onSteadyMachine,
    .enabled(if: allocation_counter_is_active() != 0, "the thread sanitizer has replaced the allocator")
)
struct SecureLinkRealTimeTests {
    /// Two secured links that are each other's network.
    private struct Pair {
        let near = SecurePath()
        let far = SecurePath()
        let bare: MemoryLink
        let sending: SecureLink
        let receiving: SecureLink
        let destination: SocketAddress
        private let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 2048)

        /// By a relay, each side takes the other for its server.
        init(isRelayed: Bool) {
            let (one, other) = MemoryLink.pair()
            (bare, destination) = (one, other.localAddress)
            func queue(to server: SocketAddress, for peer: SocketAddress) -> HandshakeQueue? {
                guard isRelayed else { return nil }
                let generator = SeededGenerator(seed: 1)
                let relay = TURNAllocation(at: server, user: "a", password: "b", generator, at: .zero)
                let queue = HandshakeQueue(checksFor: "name", by: DTLSThread.shared, relay: relay)
                queue.relay?.use(Route(peer, isRelayed: true), 0x4000)
                return queue
            }
            sending = SecureLink(near, queue(to: other.localAddress, for: other.localAddress), over: one)
            receiving = SecureLink(far, queue(to: one.localAddress, for: other.localAddress), over: other)
            buffer.initialize(repeating: 0)
        }

        func free() { buffer.deallocate() }

        func agree(_ suite: SRTPSuite, seed: UInt8) throws {
            near.offer(sending: try Packets.keys(suite, seed: seed), receiving: nil)
            far.offer(sending: nil, receiving: try Packets.keys(suite, seed: seed))
        }

        /// Sends each of `packets` with one of RTCP and one that is forged, and answers how many are taken.
        func exchange(_ packets: ArraySlice<[UInt8]>, _ control: [UInt8], _ forged: [UInt8]) -> Int {
            var taken = 0
            var span = buffer.mutableSpan
            for place in packets.indices {
                send(packets[place], over: sending)
                send(control, over: sending)
                send(forged, over: bare)
                let now = MediaTime.zero + .milliseconds(10) * place
                while receiving.receive(into: &span, at: now) != nil { taken += 1 }
            }
            return taken
        }

        private func send(_ packet: [UInt8], over link: any DatagramLink) {
            link.send(packet.span, to: destination, at: .zero)
        }
    }

    /// From the first packet on, and over other keys.
    @Test(arguments: SRTPSuite.allCases, [false, true])
    func `packets are protected and read without an allocation or a lock`(suite: SRTPSuite, isRelayed: Bool) throws {
        let (packets, control) = ((0..<200).map { Packets.media($0) }, Packets.control())
        let (first, second) = (Pair(isRelayed: isRelayed), Pair(isRelayed: isRelayed))
        defer { for pair in [first, second] { pair.free() } }
        // What happens once in a process is over then.
        try first.agree(suite, seed: 1)
        #expect(first.exchange(packets[..<50], control, packets[7]) == 100)
        for (seed, part) in [(1, packets[..<100]), (2, packets[100...])] as [(UInt8, ArraySlice<[UInt8]>)] {
            try second.agree(suite, seed: seed)
            allocation_counter_begin()
            let taken = second.exchange(part, control, packets[7])
            let counts = allocation_counter_end()
            #expect(taken == 200)
            #expect(counts.allocations == 0 && counts.locks == 0, "\(counts)")
        }
    }
}
