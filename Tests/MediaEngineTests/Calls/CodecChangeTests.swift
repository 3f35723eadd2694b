import Foundation
@testable import MediaEngine
import Testing

/// Streams whose payload type becomes that of another codec in the middle.
@Suite struct CodecChangeTests {
    private static let types: [String: UInt8] = ["PCMU": 0, "PCMA": 8, "G722": 9, "L16": 11, "opus": 96]

    private static func receiver(_ codec: String, accepting others: [String]) async throws -> CallReceiver {
        try await CallReceiver(codec) { call in
            call.agreement.codec?.payloadType = types[codec]
            call.agreement.acceptedCodecs = others.map { AgreedCodec($0, payloadType: types[$0]) }
        }
    }

    private static func sender(_ codecs: [String], period: Int, count: Int) throws -> ChangingSender {
        let registry = PluginRegistry.standard()
        return try ChangingSender(
            codecs.map { (try registry.codec(named: $0), types[$0] ?? 0) },
            period: period,
            count: count
        )
    }

    /// The level of each 5 ms that were heard, relative to the tone's.
    private static func levels(_ receiver: CallReceiver) -> [Double] {
        let length = receiver.call.stream.format.sampleRate / 200
        let samples = receiver.sink.collected
        return stride(from: 0, through: samples.count - length, by: length).map { start in
            let energy = CodecTest.energy(samples[start..<start + length]) / Double(length)
            return (2 * energy).squareRoot() / ChangingSender.amplitude
        }
    }

    @Test(arguments: ["PCMU", "opus", "G722", "L16"]) func `sound goes on when the sender changes its codec`(
        codec: String
    )
        async throws
    {
        let others = Self.types.keys.sorted().filter { $0 != codec }
        let receiver = try await Self.receiver(codec, accepting: others)
        let sender = try Self.sender([codec] + others, period: 25, count: 300)
        try receiver.hear(count: 300) { sender.datagrams[$0] }
        let received = receiver.received
        #expect(received.packets == 300 && received.rejected == 0 && received.lost == 0)
        #expect(received.codecChanges == 11)
        #expect(received.concealedMs == 0 && received.late == 0 && received.discarded == 0)
        // All but the wait before the first packet. At a change, the phase of the tone leaps.
        let levels = Self.levels(receiver)
        let odd = levels.indices.dropFirst(40).filter { !(0.35...1.15).contains(levels[$0]) }
        #expect(odd.isEmpty, "\(odd.map { "\($0 * 5) ms: \(levels[$0])" })")
        let samples = receiver.sink.collected
        let loud = samples.indices.filter { abs(Double(samples[$0])) > 1.3 * ChangingSender.amplitude }
        #expect(
            loud.isEmpty,
            "\(loud.map { ($0 * 1000 / receiver.call.stream.format.sampleRate, samples[$0]) })"
        )
    }

    @Test func `packets that overtake each other at the change are all heard`() async throws {
        let receiver = try await Self.receiver("PCMU", accepting: ["opus"])
        let sender = try Self.sender(["PCMU", "opus"], period: 50, count: 200)
        try receiver.hear(count: 200) { index in
            // 49 and 50, 99 and 100, 149 and 150 change places.
            let isLast = index % 50 == 49 && index < 199
            return sender.datagrams[isLast ? index + 1 : index % 50 == 0 && index > 0 ? index - 1 : index]
        }
        let received = receiver.received
        #expect(received.packets == 200 && received.rejected == 0)
        #expect(received.codecChanges == 3 && received.concealedMs <= 60)
    }

    @Test func `the codec that the other side begins with is no change`() async throws {
        let receiver = try await Self.receiver("PCMU", accepting: ["opus"])
        let sender = try Self.sender(["opus"], period: 100, count: 100)
        try receiver.hear(count: 100) { sender.datagrams[$0] }
        let received = receiver.received
        #expect(received.packets == 100 && received.rejected == 0 && received.codecChanges == 0)
        #expect(Self.levels(receiver).dropFirst(40).allSatisfy { (0.6...1.15).contains($0) })
    }

    @Test func `a codec that is not accepted stays counted`() async throws {
        let receiver = try await Self.receiver("PCMU", accepting: ["PCMA"])
        let sender = try Self.sender(["PCMU", "PCMA", "G722"], period: 50, count: 150)
        try receiver.hear(count: 150) { sender.datagrams[$0] }
        let received = receiver.received
        #expect(received.rejected == 50 && received.codecChanges == 1)
        #expect(receiver.call.stream.rtpStatistics.unknownPayloadTypeCount == 50)
    }

    @Test func `accepted codecs need payload types of their own`() async throws {
        let refused: [(String, [AgreedCodec])] = [
            ("PCMU", [AgreedCodec("PCMU")]), ("opus", [AgreedCodec("PCMU", payloadType: 101)]),
            ("PCMU", [AgreedCodec("opus")]),
            ("PCMU", [AgreedCodec("PCMA"), AgreedCodec("G722", payloadType: 8)]),
            ("PCMU", [AgreedCodec("nonsense", payloadType: 99)]),
        ]
        for (codec, accepted) in refused {
            let engine = try CallEngine(.virtual())
            let (_, far) = MemoryLink.pair()
            var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
            configuration.agreement.codec = AgreedCodec(codec)
            configuration.agreement.acceptedCodecs = accepted
            configuration.source = .silence
            configuration.sink = .none
            await #expect(throws: EngineError.self) { try await engine.makeCall(configuration) }
        }
    }

    @Test func `packets without a byte of sound are counted, and the call goes on`() async throws {
        let receiver = try await Self.receiver("opus", accepting: [])
        try receiver.hear(count: 30) { number in
            let isEmpty = number % 10 == 9
            return CallReceiver.datagram(
                payloadType: 96,
                number: number,
                timestamp: number * 960,
                payload: isEmpty ? [] : [0xF8, 0xFF, 0xFE]
            )
        }
        let received = receiver.received
        #expect(received.packets == 30 && received.rejected == 3 && received.lost == 0)
        #expect(receiver.call.stream.rtpStatistics.emptyPayloadCount == 3)
    }
}
