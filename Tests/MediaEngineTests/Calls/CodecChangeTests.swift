import Foundation
@testable import MediaEngine
import Testing

/// Streams whose payload type becomes that of another codec in the middle.
@Suite struct CodecChangeTests {
    private static let types: [String: UInt8] = ["PCMU": 0, "PCMA": 8, "G722": 9, "L16": 11, "opus": 96]

    private final class Receiver {
        let engine: CallEngine
        let call: Call
        let sink: CollectingSink
        private let near: MemoryLink
        private let far: MemoryLink

        init(_ codec: String, accepting others: [String]) throws {
            (near, far) = MemoryLink.pair()
            engine = try CallEngine(.virtual())
            let format = try engine.registry.codec(named: codec).description.format
            sink = CollectingSink(format: format, capacity: 20 * format.sampleRate)
            var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
            configuration.stream.codec = codec
            configuration.stream.payloadType = CodecChangeTests.types[codec]
            configuration.stream.acceptedCodecs = others.map {
                AcceptedCodec($0, payloadType: CodecChangeTests.types[$0])
            }
            configuration.source = .silence
            configuration.sink = .filter(sink)
            call = try engine.makeCall(configuration)
        }

        deinit {
            engine.shutDown()
        }

        /// Hears `count` packets of `codecs`, changing every `period`; `order` gives the place of each on the wire.
        func hear(_ codecs: [String], period: Int, count: Int, order: (Int) -> Int = { $0 }) throws {
            let registry = engine.registry
            let sender = try ChangingSender(
                codecs.map { (try registry.codec(named: $0), CodecChangeTests.types[$0] ?? 0) },
                period: period,
                count: count
            )
            for index in 0..<count {
                let datagram = sender.datagrams[order(index)]
                near.send(datagram.span, to: far.localAddress, at: engine.now)
                try engine.advance(by: .milliseconds(20))
            }
            engine.flushEvents()
        }

        /// Hears `count` datagrams, one every 20 ms.
        func hear(count: Int, datagram: (Int) -> [UInt8]) throws {
            for index in 0..<count {
                near.send(datagram(index).span, to: far.localAddress, at: engine.now)
                try engine.advance(by: .milliseconds(20))
            }
        }

        /// The level of each 5 ms that were heard, relative to the tone's.
        var levels: [Double] {
            let length = call.stream.format.sampleRate / 200
            let samples = sink.collected
            return stride(from: 0, through: samples.count - length, by: length).map { start in
                let energy = CodecTest.energy(samples[start..<start + length]) / Double(length)
                return (2 * energy).squareRoot() / ChangingSender.amplitude
            }
        }
    }

    @Test(arguments: ["PCMU", "opus", "G722", "L16"]) func `sound goes on when the sender changes its codec`(
        codec: String
    )
        throws
    {
        let others = Self.types.keys.sorted().filter { $0 != codec }
        let receiver = try Receiver(codec, accepting: others)
        try receiver.hear([codec] + others, period: 25, count: 300)
        let received = receiver.call.report().received
        #expect(received.packets == 300 && received.rejected == 0 && received.lost == 0)
        #expect(received.codecChanges == 11)
        #expect(received.concealedMs == 0 && received.late == 0 && received.discarded == 0)
        // All but the wait before the first packet. At a change, the phase of the tone leaps.
        let levels = receiver.levels
        let odd = levels.indices.dropFirst(40).filter { !(0.35...1.15).contains(levels[$0]) }
        #expect(odd.isEmpty, "\(odd.map { "\($0 * 5) ms: \(levels[$0])" })")
        let loud = receiver.sink.collected.indices.filter {
            abs(Double(receiver.sink.collected[$0])) > 1.3 * ChangingSender.amplitude
        }
        #expect(
            loud.isEmpty,
            "\(loud.map { ($0 * 1000 / receiver.call.stream.format.sampleRate, receiver.sink.collected[$0]) })"
        )
    }

    @Test func `packets that overtake each other at the change are all heard`() throws {
        let receiver = try Receiver("PCMU", accepting: ["opus"])
        try receiver.hear(["PCMU", "opus"], period: 50, count: 200) { index in
            // 49 and 50, 99 and 100, 149 and 150 change places.
            index % 50 == 49 && index < 199 ? index + 1 : index % 50 == 0 && index > 0 ? index - 1 : index
        }
        let received = receiver.call.report().received
        #expect(received.packets == 200 && received.rejected == 0)
        #expect(received.codecChanges == 3 && received.concealedMs <= 60)
    }

    @Test func `the codec that the other side begins with is no change`() throws {
        let receiver = try Receiver("PCMU", accepting: ["opus"])
        try receiver.hear(["opus"], period: 100, count: 100)
        let received = receiver.call.report().received
        #expect(received.packets == 100 && received.rejected == 0 && received.codecChanges == 0)
        #expect(receiver.levels.dropFirst(40).allSatisfy { (0.6...1.15).contains($0) })
    }

    @Test func `a codec that is not accepted stays counted`() throws {
        let receiver = try Receiver("PCMU", accepting: ["PCMA"])
        try receiver.hear(["PCMU", "PCMA", "G722"], period: 50, count: 150)
        let received = receiver.call.report().received
        #expect(received.rejected == 50 && received.codecChanges == 1)
        #expect(receiver.call.stream.transport.statistics.unknownPayloadTypeCount == 50)
    }

    @Test func `accepted codecs need payload types of their own`() throws {
        let refused: [(String, [AcceptedCodec])] = [
            ("PCMU", [AcceptedCodec("PCMU")]), ("opus", [AcceptedCodec("PCMU", payloadType: 101)]),
            ("PCMU", [AcceptedCodec("opus")]),
            ("PCMU", [AcceptedCodec("PCMA"), AcceptedCodec("G722", payloadType: 8)]),
            ("PCMU", [AcceptedCodec("nonsense", payloadType: 99)]),
        ]
        for (codec, accepted) in refused {
            let engine = try CallEngine(.virtual())
            defer { engine.shutDown() }
            let (_, far) = MemoryLink.pair()
            var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
            configuration.stream.codec = codec
            configuration.stream.acceptedCodecs = accepted
            configuration.source = .silence
            configuration.sink = .none
            #expect(throws: EngineError.self) { try engine.makeCall(configuration) }
        }
    }

    @Test func `packets without a byte of sound are counted, and the call goes on`() throws {
        let receiver = try Receiver("opus", accepting: [])
        try receiver.hear(count: 30) { number in
            let isEmpty = number % 10 == 9
            return [0x80, 96, 0, UInt8(number), 0, 0, UInt8(number * 960 >> 8), UInt8(number * 960 & 255), 0, 0, 0, 7]
                + (isEmpty ? [] : [0xF8, 0xFF, 0xFE])
        }
        let received = receiver.call.report().received
        #expect(received.packets == 30 && received.rejected == 3 && received.lost == 0)
        #expect(receiver.call.stream.transport.statistics.emptyPayloadCount == 3)
    }
}
