import Foundation
@testable import MediaEngine
import Testing

/// A sender that leaves out silence and tells how loud it is (RFC 3389), heard in virtual time.
@Suite struct ComfortNoiseCallTests {
    /// One packet of the sender: 20 ms of sound, or comfort noise.
    private struct Packet {
        var milliseconds: Int
        var timestamp: Int
        var payloadType: UInt8
        var payload: [UInt8]
    }

    private static let toneLevel = 8000 / 2.0.squareRoot()

    /// A second of a tone, a pause of `pause` ms with comfort noise of -40 dBov every `interval` ms, and a second of tone.
    private static func packets(
        _ codec: String = "PCMU",
        pause: Int,
        interval: Int,
        noiseType: UInt8 = 13,
        repeatsTimestamp: Bool = false
    ) throws -> [Packet] {
        let registry = PluginRegistry.standard()
        let kind = try registry.codec(named: codec)
        let encoder = try kind.makeEncoder(EncoderConfiguration())
        let rate = encoder.format.sampleRate
        let payloads = encoder.packets(of: CodecTest.tone(400, rate: rate, count: 2 * rate, amplitude: 8000))
        let clock = kind.description.clockRate / 1000
        func sound(_ index: Int, after start: Int) -> Packet {
            let time = start + index % 50 * 20
            return Packet(
                milliseconds: time,
                timestamp: time * clock,
                payloadType: kind.description.staticPayloadType ?? 96,
                payload: payloads[index]
            )
        }
        let noise = stride(from: 1000, to: 1000 + pause, by: interval).map { time in
            Packet(
                milliseconds: time,
                timestamp: (repeatsTimestamp ? 980 : time) * clock,
                payloadType: noiseType,
                payload: [40, 130, 120]
            )
        }
        return (0..<50).map { sound($0, after: 0) } + noise + (50..<100).map { sound($0, after: 1000 + pause) }
    }

    private final class Receiver {
        let engine: CallEngine
        let call: Call
        let sink: CollectingSink
        private let near: MemoryLink
        private let far: MemoryLink

        init(_ codec: String = "PCMU", _ configure: (inout AudioStreamConfiguration) -> Void = { _ in }) throws {
            (near, far) = MemoryLink.pair()
            engine = try CallEngine(.virtual())
            let format = try engine.registry.codec(named: codec).description.format
            sink = CollectingSink(format: format, capacity: 10 * format.sampleRate)
            var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
            configuration.stream.codec = codec
            configure(&configuration.stream)
            configuration.source = .silence
            configuration.sink = .filter(sink)
            call = try engine.makeCall(configuration)
        }

        deinit {
            engine.shutDown()
        }

        /// Hears `packets`, each 20 ms after it was captured, but for those at the places in `lost`.
        func hear(_ packets: [Packet], lost: Set<Int> = []) throws -> LegReport.Received {
            var next = 0
            for time in stride(from: 0, through: (packets.last?.milliseconds ?? 0) + 200, by: 10) {
                while next < packets.count, packets[next].milliseconds + 20 <= time {
                    if !lost.contains(next) { send(packets[next], number: next) }
                    next += 1
                }
                try engine.advance(by: .milliseconds(10))
            }
            engine.flushEvents()
            return call.report().received
        }

        private func send(_ packet: Packet, number: Int) {
            let header = RTPHeader(
                payloadType: packet.payloadType,
                sequenceNumber: UInt16(truncatingIfNeeded: 65_520 + number),
                timestamp: UInt32(truncatingIfNeeded: packet.timestamp - 4000),
                ssrc: 9
            )
            var bytes = [UInt8](repeating: 0, count: RTPHeader.byteCount + packet.payload.count)
            var target = bytes.mutableSpan
            header.serialize(with: packet.payload.span, into: &target)
            near.send(bytes.span, to: far.localAddress, at: engine.now)
        }

        /// The level of what was heard in a time.
        func level(_ milliseconds: Range<Int>) -> Double {
            let rate = call.stream.format.sampleRate
            let part = sink.collected[milliseconds.lowerBound * rate / 1000..<milliseconds.upperBound * rate / 1000]
            return (CodecTest.energy(part) / Double(part.count)).squareRoot()
        }
    }

    private static let shapes: [(pause: Int, interval: Int, repeatsTimestamp: Bool)] = [
        (600, 20, false), (600, 200, false), (600, 1000, false), (3000, 400, false), (3000, 10_000, false),
        // As Asterisk has it: the time stamp is that of the last sound.
        (600, 1000, true), (3000, 10_000, true),
    ]

    @Test(arguments: shapes, [PlayoutDelay.automatic, .fixed(.milliseconds(60))])
    func `noise fills the pause, and is neither loss nor unknown`(
        shape: (pause: Int, interval: Int, repeatsTimestamp: Bool),
        delay: PlayoutDelay
    ) throws {
        let receiver = try Receiver { $0.playoutDelay = delay }
        let packets = try Self.packets(
            pause: shape.pause,
            interval: shape.interval,
            repeatsTimestamp: shape.repeatsTimestamp
        )
        let received = try receiver.hear(packets)
        #expect(received.packets == packets.count && received.comfortNoise == packets.count - 100)
        #expect(received.rejected == 0 && received.lost == 0 && received.late == 0 && received.discarded == 0)
        #expect(received.concealedMs == 0 && received.codecChanges == 0)
        // From 150 ms into the pause to its end, whatever the delay is.
        for start in stride(from: 1150, to: 1000 + shape.pause - 20, by: 50) {
            let level = receiver.level(start..<start + 50)
            #expect((200...450).contains(level), "\(start) ms: \(level)")
        }
        #expect(abs(receiver.level(300..<900) / Self.toneLevel - 1) < 0.05)
        #expect(abs(receiver.level(1300 + shape.pause..<1800 + shape.pause) / Self.toneLevel - 1) < 0.05)
    }

    @Test(arguments: [PlayoutDelay.automatic, .fixed(.milliseconds(60))])
    func `sound that is lost behind the pause is the only loss`(delay: PlayoutDelay) throws {
        let receiver = try Receiver { $0.playoutDelay = delay }
        let packets = try Self.packets(pause: 600, interval: 1000)
        let received = try receiver.hear(packets, lost: [51])
        #expect(received.lost == 1 && received.comfortNoise == 1)
        #expect((10...20).contains(received.concealedMs), "\(received.concealedMs)")
    }

    @Test func `wideband over a clock of 8 kHz, and a number of one's own, are understood`() throws {
        let wide = try Receiver("G722")
        #expect(try wide.hear(Self.packets("G722", pause: 600, interval: 200)).comfortNoise == 3)
        #expect((200...450).contains(wide.level(1200..<1550)))
        let own = try Receiver("opus") { $0.comfortNoisePayloadType = 98 }
        #expect(try own.hear(Self.packets("opus", pause: 600, interval: 200, noiseType: 98)).comfortNoise == 3)
        #expect((200...450).contains(own.level(1200..<1550)))
    }

    @Test func `noise of an accepted codec is understood`() throws {
        let receiver = try Receiver("opus") { $0.acceptedCodecs = [AcceptedCodec("PCMU")] }
        let received = try receiver.hear(Self.packets(pause: 600, interval: 200))
        #expect(received.comfortNoise == 3 && received.rejected == 0 && received.concealedMs == 0)
        #expect((200...450).contains(receiver.level(1200..<1550)))
        #expect(abs(receiver.level(1900..<2400) / Self.toneLevel - 1) < 0.05)
    }

    @Test func `where it was not agreed, comfort noise is an unknown payload type`() throws {
        let refusing = try Receiver { $0.comfortNoisePayloadType = nil }
        #expect(try refusing.hear(Self.packets(pause: 600, interval: 200)).rejected == 3)
        let opus = try Receiver("opus")
        #expect(try opus.hear(Self.packets("opus", pause: 600, interval: 200)).rejected == 3)
    }

    @Test func `an empty packet says nothing, and a stream may begin with noise`() throws {
        let receiver = try Receiver()
        var packets = try Self.packets(pause: 1000, interval: 200).filter { $0.milliseconds >= 1000 }
        packets[1].payload = []
        let received = try receiver.hear(packets)
        #expect(received.rejected == 0 && received.comfortNoise == 4 && received.concealedMs == 0)
        #expect((200...450).contains(receiver.level(1150..<1950)))
    }
}
