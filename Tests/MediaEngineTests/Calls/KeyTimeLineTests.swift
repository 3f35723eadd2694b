import MediaEngine
import TestSupport
import Testing

/// The time stamps of telephone events, which lie on the line of the audio where both have one clock (RFC 4733, section 2.1).
@Suite struct KeyTimeLineTests {
    @Test(.tags(.rfc)) func `keys lie among the audio after a codec of another clock`() async throws {
        let engine = try CallEngine(.virtual())
        let (near, far) = MemoryLink.pair()
        var configuration = CallConfiguration(network: .link(near, local: near.localAddress))
        configuration.agreement.remote = far.localAddress
        configuration.agreement.codec = "opus"
        configuration.agreement.telephoneEvents?.clockRate = 8000
        configuration.source = .samples([Int16](repeating: 5000, count: 96_000), AudioFormat(sampleRate: 48_000))
        configuration.sink = .none
        let call = try await engine.makeCall(configuration)
        var audio: UInt32?
        var key: UInt32?
        func advance(_ ticks: Int) throws {
            var bytes = [UInt8](repeating: 0, count: 1500)
            for _ in 0..<ticks {
                try engine.advance(by: .milliseconds(10))
                while true {
                    var target = bytes.mutableSpan
                    guard far.receive(into: &target, at: engine.now) != nil else { break }
                    let timestamp = bytes[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                    switch bytes[1] & 0x7F {
                    case 0: if key == nil { audio = timestamp }
                    case 101: key = key ?? timestamp
                    default: break
                    }
                }
            }
        }
        try advance(100)
        var agreement = call.agreement
        agreement.codec = "PCMU"
        try await call.update(agreement)
        try advance(10)
        try call.sendDTMF("1", duration: .milliseconds(80), gap: .zero)
        try advance(30)
        // The key begins when the packet of audio before it ends, or in the middle of one.
        let distance = try #require(key) &- #require(audio)
        #expect((80...320).contains(distance), "\(distance) units of 8000 Hz")
        try await call.end()
    }
}
