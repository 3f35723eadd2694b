import Foundation
@testable import MediaEngine
import Testing

/// A sender that leaves out silence and tells how loud it is (RFC 3389), heard in virtual time.
@Suite struct ComfortNoiseCallTests {
    /// One packet of the sender: sound, or comfort noise.
    private struct Packet {
        var milliseconds: Int
        var timestamp: Int
        var payloadType: UInt8
        var payload: [UInt8]
    }

    private static let toneLevel = 8000 / 2.0.squareRoot()

    /// A second of a tone, a pause of `pause` ms with comfort noise of -40 dBov every `interval` ms, and a second of tone;
    /// G.711 may come in packets of more than 20 ms.
    private static func packets(
        _ codec: String = "PCMU",
        pause: Int,
        interval: Int,
        ptime: Int = 20,
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
            let time = start + index * ptime % 1000
            return Packet(
                milliseconds: time,
                timestamp: time * clock,
                payloadType: kind.description.staticPayloadType ?? 96,
                payload: Array(payloads[index * ptime / 20..<(index + 1) * ptime / 20].joined())
            )
        }
        let noise = stride(from: 1000, to: 1000 + pause, by: interval).map { time in
            Packet(
                milliseconds: time,
                timestamp: (repeatsTimestamp ? 1000 - ptime : time) * clock,
                payloadType: noiseType,
                payload: [40, 130, 120]
            )
        }
        let count = 1000 / ptime
        return (0..<count).map { sound($0, after: 0) } + noise
            + (count..<2 * count).map { sound($0, after: 1000 + pause) }
    }

    /// Has `receiver` hear `packets`, each 20 ms after it was captured, but for those at the places in `lost`.
    private static func hear(_ packets: [Packet], lost: Set<Int> = [], by receiver: CallReceiver) throws
        -> LegReport.Received
    {
        var next = 0
        for time in stride(from: 0, through: (packets.last?.milliseconds ?? 0) + 200, by: 10) {
            while next < packets.count, packets[next].milliseconds + 20 <= time {
                let packet = packets[next]
                if !lost.contains(next) {
                    receiver.send(
                        CallReceiver.datagram(
                            payloadType: packet.payloadType,
                            number: next,
                            timestamp: packet.timestamp,
                            payload: packet.payload
                        )
                    )
                }
                next += 1
            }
            try receiver.engine.advance(by: .milliseconds(10))
        }
        return receiver.received
    }

    private static let shapes: [(pause: Int, interval: Int, repeatsTimestamp: Bool)] = [
        (600, 20, false), (600, 200, false), (600, 1000, false), (3000, 400, false), (3000, 10_000, false),
        // As Asterisk has it: the time stamp is that of the last sound.
        (600, 1000, true), (3000, 10_000, true), (600, 20, true), (600, 200, true), (3000, 400, true),
        (2400, 2000, true),
    ]

    @Test(arguments: shapes, [PlayoutDelay.automatic, .fixed(.milliseconds(60))])
    func `noise fills the pause, and is neither loss nor unknown`(
        shape: (pause: Int, interval: Int, repeatsTimestamp: Bool),
        delay: PlayoutDelay
    ) async throws {
        let receiver = try await CallReceiver { $0.stream.playoutDelay = delay }
        let packets = try Self.packets(
            pause: shape.pause,
            interval: shape.interval,
            repeatsTimestamp: shape.repeatsTimestamp
        )
        let received = try Self.hear(packets, by: receiver)
        #expect(received.packets == packets.count && received.comfortNoise == packets.count - 100)
        #expect(received.rejected == 0 && received.lost == 0 && received.late == 0 && received.discarded == 0)
        #expect(received.concealedMs == 0 && received.codecChanges == 0)
        #expect(receiver.playout.buffer.restartCount == 0)
        // From 150 ms into the pause to its end, whatever the delay is.
        for start in stride(from: 1150, to: 1000 + shape.pause - 20, by: 50) {
            let level = receiver.level(start..<start + 50)
            #expect((200...450).contains(level), "\(start) ms: \(level)")
        }
        #expect(abs(receiver.level(300..<900) / Self.toneLevel - 1) < 0.05)
        #expect(abs(receiver.level(1300 + shape.pause..<1800 + shape.pause) / Self.toneLevel - 1) < 0.05)
    }

    @Test(arguments: [false, true], [PlayoutDelay.automatic, .fixed(.milliseconds(60))])
    func `noise may come more often than sound`(repeatsTimestamp: Bool, delay: PlayoutDelay) async throws {
        let receiver = try await CallReceiver { $0.stream.playoutDelay = delay }
        let packets = try Self.packets(pause: 600, interval: 20, ptime: 40, repeatsTimestamp: repeatsTimestamp)
        let received = try Self.hear(packets, by: receiver)
        #expect(received.packets == 80 && received.comfortNoise == 30)
        #expect(received.late == 0 && received.discarded == 0 && received.concealedMs == 0)
        #expect(receiver.playout.buffer.restartCount == 0)
    }

    @Test(
        arguments: [(600, 1000, false), (2400, 2000, true)] as [(Int, Int, Bool)],
        [PlayoutDelay.automatic, .fixed(.milliseconds(60))]
    ) func `sound that is lost behind the pause is the only loss`(
        shape: (pause: Int, interval: Int, repeatsTimestamp: Bool),
        delay: PlayoutDelay
    ) async throws {
        let receiver = try await CallReceiver { $0.stream.playoutDelay = delay }
        let packets = try Self.packets(
            pause: shape.pause,
            interval: shape.interval,
            repeatsTimestamp: shape.repeatsTimestamp
        )
        let received = try Self.hear(packets, lost: [packets.count - 50], by: receiver)
        #expect(received.lost == 1 && received.comfortNoise == packets.count - 100 && received.discarded == 0)
        #expect((10...20).contains(received.concealedMs), "\(received.concealedMs)")
        #expect(abs(receiver.level(1300 + shape.pause..<1800 + shape.pause) / Self.toneLevel - 1) < 0.05)
    }

    @Test func `a codec of another clock behind noise that repeats its time stamp is no jump`() async throws {
        let receiver = try await CallReceiver { $0.agreement.acceptedCodecs = [AgreedCodec("opus", payloadType: 96)] }
        let noisy = try Self.packets(pause: 3000, interval: 400, repeatsTimestamp: true).dropLast(50)
        let opus = try Self.packets("opus", pause: 100, interval: 100).prefix(50).map { packet in
            var packet = packet
            packet.milliseconds += 4000
            packet.timestamp += 1_000_000
            return packet
        }
        let received = try Self.hear(noisy + opus, by: receiver)
        #expect(received.codecChanges == 1 && received.rejected == 0 && received.late == 0)
        #expect(receiver.playout.buffer.restartCount == 0)
    }

    @Test func `wideband over a clock of 8 kHz, and a number of one's own, are understood`() async throws {
        let wide = try await CallReceiver("G722")
        #expect(try Self.hear(Self.packets("G722", pause: 600, interval: 200), by: wide).comfortNoise == 3)
        #expect((200...450).contains(wide.level(1200..<1550)))
        let own = try await CallReceiver("opus") { $0.agreement.comfortNoisePayloadType = 98 }
        #expect(
            try Self.hear(Self.packets("opus", pause: 600, interval: 200, noiseType: 98), by: own).comfortNoise == 3
        )
        #expect((200...450).contains(own.level(1200..<1550)))
    }

    @Test func `noise of an accepted codec is understood`() async throws {
        let receiver = try await CallReceiver("opus") { $0.agreement.acceptedCodecs = [AgreedCodec("PCMU")] }
        let received = try Self.hear(Self.packets(pause: 600, interval: 200), by: receiver)
        #expect(received.comfortNoise == 3 && received.rejected == 0 && received.concealedMs == 0)
        #expect((200...450).contains(receiver.level(1200..<1550)))
        #expect(abs(receiver.level(1900..<2400) / Self.toneLevel - 1) < 0.05)
    }

    @Test func `a copy of sound comes beside noise of the same clock, also when the stream's own clock is another`()
        async throws
    {
        let receiver = try await CallReceiver("opus") {
            $0.agreement.acceptedCodecs = [AgreedCodec("PCMU")]
            $0.agreement.redPayloadType = 121
        }
        let packets = try Self.packets(pause: 600, interval: 200)
        try receiver.hear(count: 51) { index in
            // The last packet of sound is lost; that of noise holds its copy (RFC 2198, section 3).
            let packet = packets[index < 49 ? index : 50]
            let copy = packets[49].payload
            let offset = packets[50].timestamp - packets[49].timestamp
            let red = [
                0x80, UInt8(offset >> 6), UInt8(offset << 2 & 0xFF) | UInt8(copy.count >> 8), UInt8(copy.count & 0xFF),
                13,
            ]
            return CallReceiver.datagram(
                payloadType: index < 49 ? 0 : 121,
                number: index < 49 ? index : 50,
                timestamp: packet.timestamp,
                payload: index < 49 ? packet.payload : red + copy + packet.payload
            )
        }
        try receiver.engine.advance(by: .milliseconds(100))
        #expect(receiver.received.redundant == 1 && receiver.received.concealedMs == 0)
        #expect(receiver.playout.buffer.missingCount == 0)
    }

    @Test func `where it was not agreed, comfort noise is an unknown payload type`() async throws {
        let refusing = try await CallReceiver { $0.agreement.comfortNoisePayloadType = nil }
        #expect(try Self.hear(Self.packets(pause: 600, interval: 200), by: refusing).rejected == 3)
        let opus = try await CallReceiver("opus")
        #expect(try Self.hear(Self.packets("opus", pause: 600, interval: 200), by: opus).rejected == 3)
    }

    @Test func `an empty packet says nothing, and a stream may begin with noise`() async throws {
        let receiver = try await CallReceiver()
        var packets = try Self.packets(pause: 1000, interval: 200).filter { $0.milliseconds >= 1000 }
        packets[1].payload = []
        let received = try Self.hear(packets, by: receiver)
        #expect(received.rejected == 0 && received.comfortNoise == 4 && received.concealedMs == 0)
        #expect((200...450).contains(receiver.level(1150..<1950)))
    }
}
