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
    private func send(_ packet: [UInt8], over link: any DatagramLink, to far: MemoryLink) {
        link.send(packet.span, to: far.localAddress, at: .zero)
    }

    @Test(arguments: SRTPSuite.allCases)
    func `packets are protected and read without an allocation or a lock`(suite: SRTPSuite) throws {
        let (near, far) = MemoryLink.pair()
        let (nearPath, farPath) = (SecurePath(), SecurePath())
        nearPath.offer(sending: try Packets.keys(suite), receiving: nil)
        farPath.offer(sending: nil, receiving: try Packets.keys(suite))
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        let packets = (0..<200).map { Packets.media($0) }
        let (control, forged) = (Packets.control(), Packets.media(7))
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 2048)
        buffer.initialize(repeating: 0)
        defer { buffer.deallocate() }
        func exchange(_ range: Range<Int>) -> Int {
            var heard = 0
            var span = buffer.mutableSpan
            for index in range {
                send(packets[index], over: link, to: far)
                send(control, over: link, to: far)
                send(forged, over: near, to: far)
                while other.receive(into: &span, at: .zero) != nil { heard += 1 }
            }
            return heard
        }
        // What happens once in a process is over then.
        let warm = exchange(0..<50)
        allocation_counter_begin()
        let heard = exchange(50..<200)
        let counts = allocation_counter_end()
        #expect(warm == 100 && heard == 300)
        #expect(counts.allocations == 0 && counts.locks == 0, "\(counts)")
    }
}
