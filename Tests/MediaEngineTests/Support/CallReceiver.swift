@testable import MediaEngine
@testable import RTP

/// A call that hears datagrams of a script, in virtual time.
final class CallReceiver {
    let engine: CallEngine
    let call: Call
    let sink: CollectingSink
    private let near: MemoryLink
    private let far: MemoryLink

    /// A call of `codec` in which up to 20 s are heard.
    init(_ codec: String = "PCMU", _ configure: (inout CallConfiguration) -> Void = { _ in }) async throws {
        (near, far) = MemoryLink.pair()
        engine = try CallEngine(.virtual())
        let format = try engine.registry.codec(named: codec).description.format
        sink = CollectingSink(format: format, capacity: 20 * format.sampleRate)
        var configuration = CallConfiguration(network: .link(far, local: far.localAddress))
        configuration.agreement.codec = AgreedCodec(codec)
        configure(&configuration)
        configuration.source = .silence
        configuration.sink = .filter(sink)
        call = try await engine.makeCall(configuration)
    }

    /// What the call tells of what it received.
    var received: LegReport.Received { call.report().received }

    /// What the playout did.
    var playout: PlayoutStatistics { call.stream.playout.statistics }

    /// Sends a datagram, which comes at once.
    func send(_ datagram: [UInt8]) {
        near.send(datagram.span, to: far.localAddress, at: engine.now)
    }

    /// Hears `count` datagrams, one every 20 ms.
    func hear(count: Int, datagram: (Int) throws -> [UInt8]) throws {
        for index in 0..<count {
            send(try datagram(index))
            try engine.advance(by: .milliseconds(20))
        }
    }

    /// The level of what was heard in a time.
    func level(_ milliseconds: Range<Int>) -> Double {
        let rate = call.stream.format.sampleRate
        let part = sink.collected[milliseconds.lowerBound * rate / 1000..<milliseconds.upperBound * rate / 1000]
        return (CodecTest.energy(part) / Double(part.count)).squareRoot()
    }

    /// A datagram of RTP whose number and time stamp wrap soon after `number` 0.
    static func datagram(
        payloadType: UInt8,
        number: Int,
        timestamp: Int,
        ssrc: UInt32 = 9,
        payload: [UInt8]
    ) -> [UInt8] {
        let header = RTPHeader(
            payloadType: payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: 65_520 + number),
            timestamp: UInt32(truncatingIfNeeded: timestamp - 4000),
            ssrc: ssrc
        )
        var bytes = [UInt8](repeating: 0, count: RTPHeader.byteCount + payload.count)
        var target = bytes.mutableSpan
        header.serialize(with: payload.span, into: &target)
        return bytes
    }
}
