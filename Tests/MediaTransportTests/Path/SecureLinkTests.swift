import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import MediaTransport

/// Two ends whose links are secured, with a network between that everybody may write to.
@Suite struct SecureLinkTests {
    private let near: MemoryLink
    private let far: MemoryLink
    private let nearPath = SecurePath()
    private let farPath = SecurePath()

    init() {
        (near, far) = MemoryLink.pair()
    }

    private func agree(_ suite: SRTPSuite = .aes128CM80, seed: UInt8 = 1) throws {
        nearPath.offer(
            sending: try Packets.keys(suite, seed: seed),
            receiving: try Packets.keys(suite, seed: seed &+ 100)
        )
        farPath.offer(
            sending: try Packets.keys(suite, seed: seed &+ 100),
            receiving: try Packets.keys(suite, seed: seed)
        )
    }

    @discardableResult
    private func send(_ packet: [UInt8], _ link: any DatagramLink) -> Bool {
        link.send(packet.span, to: far.localAddress, at: .zero)
    }

    private func receive(_ link: any DatagramLink, at now: MediaTime = .zero) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 2048)
        var span = buffer.mutableSpan
        guard let datagram = link.receive(into: &span, at: now) else { return nil }
        return Array(buffer[..<datagram.byteCount])
    }

    @Test func `without keys nothing is sent, and nothing is taken`() throws {
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        #expect(!send(Packets.media(1), link) && !send(Packets.control(), link))
        #expect(receive(far) == nil)
        send(Packets.media(1), near)
        send([UInt8](repeating: 7, count: 9), near)
        #expect(receive(other) == nil)
        #expect(nearPath.statistics.withheld == 2)
        #expect(farPath.statistics.early == 1 && farPath.statistics.malformed == 1)
    }

    /// The DTLS server has the keys first, and may send before its last flight is there.
    @Test func `what comes before the keys of a handshake is read with them, and forgeries are not`() throws {
        let other = SecureLink(farPath, HandshakeQueue(checksFor: nil, by: LegServer()), over: far)
        nearPath.offer(sending: try Packets.keys(.aes128CM80, seed: 1), receiving: nil)
        let link = SecureLink(nearPath, over: near)
        for _ in 0..<5 { send(Packets.media(1), near) }
        for packet in [Packets.media(1), Packets.control(), Packets.media(2)] { send(packet, link) }
        #expect(receive(other, at: .zero) == nil)
        #expect(farPath.statistics.early == 4, "there is room for the last four")
        farPath.offer(sending: nil, receiving: try Packets.keys(.aes128CM80, seed: 1))
        send(Packets.media(3), link)
        let later = MediaTime.zero + .milliseconds(10)
        for packet in [Packets.media(1), Packets.control(), Packets.media(2), Packets.media(3)] {
            #expect(receive(other, at: later) == packet)
        }
        #expect(receive(other, at: later) == nil)
        #expect(farPath.statistics.unauthentic == 1 && farPath.statistics.early == 4)
    }

    /// A tick takes what comes while it works, which is later than its own time.
    @Test func `what came after the time of its tick is read with the keys all the same`() throws {
        let other = SecureLink(farPath, HandshakeQueue(checksFor: nil, by: LegServer()), over: far)
        nearPath.offer(sending: try Packets.keys(.aes128CM80, seed: 1), receiving: nil)
        let (link, later) = (SecureLink(nearPath, over: near), MediaTime.zero + .milliseconds(5))
        link.send(Packets.media(1).span, to: far.localAddress, at: later)
        #expect(receive(other, at: later) == nil)
        farPath.offer(sending: nil, receiving: try Packets.keys(.aes128CM80, seed: 1))
        #expect(receive(other, at: .zero) == Packets.media(1))
        #expect(farPath.statistics.early == 0)
    }

    @Test func `what waited for keys too long is no sound of now`() throws {
        let other = SecureLink(farPath, HandshakeQueue(checksFor: nil, by: LegServer()), over: far)
        nearPath.offer(sending: try Packets.keys(.aes128CM80, seed: 1), receiving: nil)
        let link = SecureLink(nearPath, over: near)
        send(Packets.media(1), link)
        #expect(receive(other, at: .zero) == nil)
        farPath.offer(sending: nil, receiving: try Packets.keys(.aes128CM80, seed: 1))
        send(Packets.media(9), link)
        let later = MediaTime.zero + .milliseconds(50)
        #expect(receive(other, at: later) == Packets.media(9))
        #expect(receive(other, at: later) == nil)
        #expect(farPath.statistics.early == 1 && farPath.statistics.unauthentic == 0)
    }

    /// Who has come in the place of another one is not heard by what that one has sent.
    @Test func `what came before the end of a side is not read by the keys of the next`() throws {
        let other = SecureLink(farPath, HandshakeQueue(checksFor: nil, by: LegServer()), over: far)
        nearPath.offer(sending: try Packets.keys(.aes128CM80, seed: 1), receiving: nil)
        send(Packets.media(1), SecureLink(nearPath, over: near))
        #expect(receive(other, at: .zero) == nil)
        farPath.stop()
        #expect(receive(other, at: .zero + .milliseconds(10)) == nil)
        farPath.offer(sending: nil, receiving: try Packets.keys(.aes128CM80, seed: 1))
        #expect(receive(other, at: .zero + .milliseconds(20)) == nil)
        #expect(farPath.statistics.early == 1 && farPath.statistics.unauthentic == 0)
    }

    /// What the other side sends after its own end is nobody's.
    @Test func `what comes after the end is not kept`() throws {
        let other = SecureLink(farPath, HandshakeQueue(checksFor: nil, by: LegServer()), over: far)
        farPath.stop()
        send(Packets.media(1), near)
        #expect(receive(other) == nil)
        #expect(farPath.statistics.early == 1)
    }

    @Test(arguments: SRTPSuite.allCases) func `what is sent arrives, and is not in the clear on the way`(
        suite: SRTPSuite
    ) throws {
        try agree(suite)
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        for packet in [Packets.media(1), Packets.control(), Packets.media(2)] {
            #expect(send(packet, link))
            let sent = try #require(receive(far))
            #expect(sent.count > packet.count && !sent.starts(with: packet))
            send(sent, near)
            #expect(receive(other) == packet)
        }
        #expect(nearPath.statistics == SecurityStatistics() && farPath.statistics == SecurityStatistics())
    }

    /// RTP in the clear, replays, forgeries: all are counted, and what is authentic behind them is read at once.
    @Test func `what others send is dropped and counted`() throws {
        try agree()
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        send(Packets.media(1), link)
        let sent = try #require(receive(far))
        func inject(_ packet: [UInt8]) { send(packet, near) }
        inject(sent)
        #expect(receive(other) == Packets.media(1))
        inject(sent)
        for sequence in 2..<100 as Range<UInt16> { inject(Packets.media(sequence)) }
        inject(Packets.control() + [UInt8](repeating: 0, count: 20))
        inject([0, 1, 0, 0])
        send(Packets.media(2), link)
        #expect(receive(other) == Packets.media(2))
        let counts = farPath.statistics
        #expect(counts.replayed == 1 && counts.unauthentic == 98 && counts.otherKey == 1 && counts.malformed == 1)
        #expect(other.forgedCount == 101)
    }

    @Test func `a flood ends what is read in a tick`() throws {
        try agree()
        let flood = Flood()
        let link = SecureLink(farPath, over: flood)
        for _ in 0..<3 { #expect(receive(link) == nil) }
        #expect(flood.count == 512 && farPath.statistics.unauthentic == 512)
        #expect(receive(link, at: .zero + .milliseconds(10)) == nil && flood.count == 1024)
    }

    @Test func `other keys are taken with the next packet`() throws {
        try agree()
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        for round in 0..<5 as Range<UInt8> {
            try agree(.aes128GCM, seed: round)
            let packet = Packets.media(UInt16(round))
            #expect(send(packet, link))
            #expect(receive(other) == packet)
        }
    }

    /// RTCP on a port of its own has the same keys.
    @Test func `two links share a path`() throws {
        try agree()
        let (control, farControl) = MemoryLink.pair()
        let (link, other) = (SecureLink(nearPath, over: near), SecureLink(farPath, over: far))
        let (second, farSecond) = (SecureLink(nearPath, over: control), SecureLink(farPath, over: farControl))
        send(Packets.media(1), link)
        second.send(Packets.control().span, to: farControl.localAddress, at: .zero)
        #expect(receive(other) == Packets.media(1) && receive(farSecond) == Packets.control())
    }

    /// A call in virtual time, whose second half has other keys.
    @Test(arguments: [.aes128CM80, .aes128GCM] as [SRTPSuite], ["opus", "PCMU"])
    func `a call is heard over secured links`(suite: SRTPSuite, codec: String) async throws {
        try agree(suite)
        let engine = try CallEngine(.virtual())
        let calls = try await engine.makeCalls(
            [(near, far, nearPath), (far, near, farPath)].map { own, other, path in
                var call = CallConfiguration(network: .link(SecureLink(path, over: own), local: own.localAddress))
                call.agreement.remote = other.localAddress
                call.agreement.codec = AgreedCodec(codec)
                (call.source, call.sink) = (.silence, .none)
                return call
            }
        )
        try engine.advance(by: .seconds(8))
        try agree(suite, seed: 50)
        try engine.advance(by: .seconds(8))
        for call in calls {
            let report = call.report()
            #expect(report.received.packets >= 790 && report.received.lost == 0)
            #expect(report.rtcp.roundTripMs != nil)
        }
        #expect(nearPath.statistics == SecurityStatistics() && farPath.statistics == SecurityStatistics())
        try await engine.endCalls(calls)
    }
}

/// A link that has a forged packet whenever it is asked.
private final class Flood: DatagramLink, @unchecked Sendable {
    var count = 0
    private let forged = Packets.media(1) + [UInt8](repeating: 0, count: 10)

    func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool { true }

    func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        count += 1
        for index in forged.indices { buffer[index] = forged[index] }
        return ReceivedDatagram(byteCount: forged.count, source: .loopback(port: 5), arrival: now)
    }
}
