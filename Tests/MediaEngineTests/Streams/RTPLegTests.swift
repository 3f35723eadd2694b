import CallBasics
@testable import MediaEngine
import RTP
import Testing

@Suite struct RTPLegTests {
    private static let here = SocketAddress.loopback(port: 1)

    /// A leg, and the session of its other side.
    private final class Rig {
        let link = ScriptedLink()
        let leg: RTPLeg
        let peer: RTPSession
        private(set) var now = MediaTime.zero

        init(named: SocketAddress? = ReceiveRig.peer) {
            let session = Self.session(1, to: named)
            leg = RTPLeg(session: session, port: RTPPort(link: link, localAddress: RTPLegTests.here))
            peer = Self.session(2, to: RTPLegTests.here)
        }

        private static func session(_ seed: UInt64, to destination: SocketAddress?) -> RTPSession {
            var payloads = PayloadMap()
            payloads.set(0, .audio, clockRate: 8000)
            var configuration = RTPSessionConfiguration(canonicalName: "test")
            configuration.addresses.destination = destination
            configuration.addresses.isMultiplexed = true
            return RTPSession(configuration: configuration, payloads: payloads, seed: seed)
        }

        /// One tick of 10 ms in which packet `number`, if any, comes from the other side.
        func tick(_ number: Int? = nil) {
            if let number {
                link.add(ReceiveRig.packet(number, ssrc: peer.localSSRC), from: ReceiveRig.peer, at: now)
            }
            while leg.receive(from: .media, at: now, { _, _, _ in }) {}
            leg.sendControlIfDue(at: now)
            leg.publishStatistics()
            now += .milliseconds(10)
        }

        /// What the other side is told of what it sent; nil before the first report.
        var remoteMetrics: RTCPVoIPMetrics? {
            for (bytes, time) in link.sent {
                _ = peer.receive(bytes.span, from: RTPLegTests.here, arrival: time)
            }
            return peer.statistics.remoteMetrics
        }
    }

    @Test func `what became of a packet is told in the tick in which it is known`() {
        let rig = Rig()
        for number in 0..<20 { rig.tick(number) }
        #expect(rig.leg.statistics.value.reception.statistics.discardFraction == 0)
        rig.leg.feedback.report.discarded.append(7)
        rig.leg.feedback.hasFates = true
        rig.tick()
        #expect(rig.link.sent.isEmpty)
        #expect(abs(rig.leg.statistics.value.reception.statistics.discardFraction - 1 / 20) < 1e-9)
    }

    @Test func `a report tells how long packets wait, also when none was lost or late`() throws {
        let rig = Rig()
        for number in 0..<1000 {
            rig.leg.feedback.report.quality.playedCount = number
            rig.leg.feedback.report.quality.totalWaitNanoseconds = Int64(number) * 40_000_000
            rig.tick(number)
        }
        let metrics = try #require(rig.remoteMetrics)
        #expect(metrics.nominalBufferDelay == 40 && metrics.discardRate == 0)
    }

    @Test func `reports begin when it is known where they go`() throws {
        let rig = Rig(named: nil)
        for _ in 0..<2000 { rig.tick() }
        #expect(rig.link.sent.isEmpty && rig.leg.session.statistics.sentControlCount == 0)
        var addresses = RTPAddresses()
        addresses.destination = ReceiveRig.peer
        addresses.isMultiplexed = true
        rig.leg.update.offer(
            LegUpdate(payloads: rig.leg.session.payloads, addresses: addresses, voicePath: rig.leg.session.voicePath)
        )
        rig.leg.takeUpdate(at: rig.now)
        let start = rig.now
        for _ in 0..<1000 { rig.tick() }
        let first = try #require(rig.link.sent.first)
        #expect((1.0...3.1).contains((first.time - start).milliseconds / 1000))
    }

    @Test func `whom signalling names comes through while a flood lasts`() {
        let rig = Rig()
        rig.leg.port.accept(only: (ReceiveRig.peer, nil))
        #expect(rig.link.acceptedSources == [ReceiveRig.peer])
        var addresses = RTPAddresses()
        addresses.destination = SocketAddress(ipv4: 0x0A00_0007, port: 4000)
        let session = rig.leg.session
        rig.leg.update.offer(
            LegUpdate(payloads: session.payloads, addresses: addresses, voicePath: session.voicePath)
        )
        rig.leg.takeUpdate(at: rig.now)
        #expect(rig.link.acceptedSources.isEmpty)
    }

    @Test func `a leg whose other side was never heard says goodbye only if it has spoken`() {
        let rig = Rig()
        rig.leg.sendGoodbye(at: rig.now)
        #expect(rig.link.sent.isEmpty)
        let payload = [UInt8](repeating: 0xFF, count: 160)
        rig.leg.send(PayloadHeader(payloadType: 0, timestamp: 0), payload.span, clockRate: 8000, at: rig.now)
        rig.leg.sendGoodbye(at: rig.now)
        #expect(rig.link.sent.count == 2)
    }
}
