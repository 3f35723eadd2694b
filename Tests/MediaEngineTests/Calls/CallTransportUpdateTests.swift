@testable import MediaEngine
import Testing

/// Calls whose way over the network changes while they run: the other side's address, and redundant audio.
@Suite struct CallTransportUpdateTests {
    private static let here = SocketAddress(ipv4: 0x0A00_0001, port: 5004)
    private static let there = [
        SocketAddress(ipv4: 0x0A00_0002, port: 5004), SocketAddress(ipv4: 0x0A00_0003, port: 6004),
    ]

    /// A caller at `here` and a callee that is at the first place `there`, and can move to the second; both say a tone.
    private static func pair(
        configure: (_ calling: inout CallConfiguration, _ called: inout CallConfiguration) -> Void = { _, _ in }
    ) async throws -> (calls: CallPair, near: WatchedLink, far: WatchedLink) {
        let ways = there.map { MemoryLink.pair(here, $0) }
        let (near, far) = (WatchedLink(ways.map { $0.0 }), WatchedLink(ways.map { $0.1 }))
        let tone = CodecTest.tone(400, rate: 8000, count: 8000 * 8, amplitude: 8000)
        let pair = try await CallPair(saying: .samples(tone, AudioFormat(sampleRate: 8000))) { calling, called in
            calling.network = .link(near, local: here)
            calling.agreement.remote = there[0]
            called.network = .link(far, local: there[0])
            called.agreement.remote = here
            called.source = .samples(tone, AudioFormat(sampleRate: 8000))
            configure(&calling, &called)
        }
        return (pair, near, far)
    }

    /// Whether `packets` are one stream of 20 ms of PCMU each: to its receiver nothing has changed.
    private static func isOneStream(_ packets: [WatchedLink.Packet]) -> Bool {
        zip(packets, packets.dropFirst()).allSatisfy { former, next in
            next.header.ssrc == former.header.ssrc
                && next.header.sequenceNumber == former.header.sequenceNumber &+ 1
                && next.header.timestamp == former.header.timestamp &+ 160
        }
    }

    @Test func `the other side moves to another address, and nothing is lost`() async throws {
        let (pair, near, far) = try await Self.pair()
        try pair.advance(1000)
        far.way = 1
        var agreement = pair.caller.agreement
        agreement.remote = Self.there[1]
        try await pair.caller.update(agreement)
        try pair.advance(1000)
        for link in [near, far] {
            #expect(link.packets.count >= 98 && Self.isOneStream(link.packets))
            // What was under way comes by the old one; then all comes by the new one.
            let ways = link.packets.map(\.way)
            #expect(ways.sorted() == ways && ways.filter { $0 == 0 }.count <= 51 && ways.last == 1)
        }
        for call in [pair.caller, pair.callee] {
            let received = call.report().received
            #expect(received.lost == 0 && received.late == 0 && received.discarded == 0 && received.rejected == 0)
            #expect(received.concealedMs == 0, "\(received.concealedMs) ms")
        }
        // Who is not at the new address is not heard there.
        far.way = 0
        let heard = pair.caller.report().received.packets
        try pair.advance(500)
        #expect(pair.caller.report().received.packets <= heard + 1)
    }

    @Test func `redundant audio begins and ends in mid-call, and repairs what is lost meanwhile`() async throws {
        let (pair, _, far) = try await Self.pair { calling, called in
            calling.stream.fec = .off
            called.stream.playoutDelay = .fixed(.milliseconds(80))
        }
        // Each tenth packet from 1.2 to 2.8 s.
        far.loses = { (60..<140).contains($0) && $0 % 10 == 5 }
        try pair.advance(1000)
        // Who takes it begins, so that nothing comes that is not known.
        for call in [pair.callee, pair.caller] {
            var agreement = call.agreement
            agreement.redPayloadType = 121
            try await call.update(agreement)
        }
        try pair.engine.core.loop.send(.redundancy(generations: 1), to: pair.caller.stream.sender)
        try pair.advance(2000)
        for call in [pair.caller, pair.callee] {
            var agreement = call.agreement
            agreement.redPayloadType = nil
            try await call.update(agreement)
        }
        try pair.advance(1000)
        let types = far.packets.map(\.header.payloadType)
        #expect(Self.isOneStream(far.packets) && types.count >= 198)
        #expect(types.prefix(49).allSatisfy { $0 == 0 } && types.suffix(48).allSatisfy { $0 == 0 })
        #expect(types.dropFirst(53).prefix(94).allSatisfy { $0 == 121 })
        let received = pair.callee.report().received
        #expect(received.lost == 8 && received.redundant == 8 && received.rejected == 0)
        #expect(received.concealedMs == 0, "\(received.concealedMs) ms")
    }
}

/// A host on several networks: it sends by one, or the first behind that leads to the destination, takes what comes by
/// any, and notes each RTP packet.
private final class WatchedLink: DatagramLink, @unchecked Sendable {
    struct Packet {
        let header: RTPHeader
        /// The network that it came by.
        let way: Int
    }

    private let links: [MemoryLink]
    /// The network to send by.
    var way = 0
    /// Which packets are lost on the way, though they are noted; by their place.
    var loses: (Int) -> Bool = { _ in false }
    private(set) var packets: [Packet] = []

    init(_ links: [MemoryLink]) {
        self.links = links
    }

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        for link in links[way...] where link.send(bytes, to: destination, at: now) { return true }
        return false
    }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        for (way, link) in links.enumerated() {
            while let datagram = link.receive(into: &buffer, at: now) {
                let bytes = buffer.span.extracting(first: min(datagram.byteCount, buffer.count))
                guard DatagramKind(of: bytes) == .rtp, let packet = try? RTPPacket(parsing: bytes) else {
                    return datagram
                }
                packets.append(Packet(header: packet.header, way: way))
                if !loses(packets.count - 1) { return datagram }
            }
        }
        return nil
    }
}
