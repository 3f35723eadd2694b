import MediaEngine
import TestSupport
import Testing

/// The ends of keys that are repeated in later packets (RFC 2198).
@Suite struct RedundantKeyTests {
    /// The payload types in a payload of redundant audio, the primary one last.
    private static func types(in payload: ArraySlice<UInt8>) -> [UInt8] {
        var types: [UInt8] = []
        var rest = payload
        while let first = rest.first {
            types.append(first & 0x7F)
            guard first & 0x80 != 0 else { break }
            rest = rest.dropFirst(4)
        }
        return types
    }

    /// Offsets count in the clock of the primary block: an event of another clock would seem to lie elsewhere.
    @Test(.tags(.rfc), arguments: [8000, 48_000]) func `audio repeats the end of a key only on the same clock`(
        clockRate: Int
    ) async throws {
        let engine = try CallEngine(.virtual())
        let (near, far) = MemoryLink.pair()
        var configuration = CallConfiguration(network: .link(near, local: near.localAddress))
        configuration.agreement.remote = far.localAddress
        configuration.agreement.codec = "opus"
        configuration.agreement.redPayloadType = 121
        configuration.agreement.telephoneEvents?.clockRate = clockRate
        configuration.source = .samples([Int16](repeating: 5000, count: 48_000), AudioFormat(sampleRate: 48_000))
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        try call.sendDTMF("1", duration: .milliseconds(80), gap: .zero)
        var repeating = 0
        var keys = 0
        for _ in 0..<50 {
            try engine.advance(by: .milliseconds(10))
            var bytes = [UInt8](repeating: 0, count: 1500)
            while true {
                var target = bytes.mutableSpan
                guard let datagram = far.receive(into: &target, at: engine.now) else { break }
                let type = bytes[1] & 0x7F
                if type == 101 { keys += 1 }
                guard type == 121 else { continue }
                let types = Self.types(in: bytes[12..<datagram.byteCount])
                if types.last != 101, types.contains(101) { repeating += 1 }
            }
        }
        #expect(keys > 3)
        #expect(repeating == (clockRate == 48_000 ? 2 : 0))
        try await call.end()
    }
}
