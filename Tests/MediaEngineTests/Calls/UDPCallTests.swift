import Foundation
import MediaEngine
import Testing

/// Calls over real sockets in real time: few, and short.
@Suite(.tags(.realtime), .serialized) struct UDPCallTests {
    private func configuration(_ name: String, codec: String, host: String) throws -> CallConfiguration {
        let local = try #require(SocketAddress(host: host, port: 0))
        var configuration = CallConfiguration(network: .udp(local: local))
        configuration.name = name
        configuration.stream.codec = codec
        configuration.source = .filter(SineSource())
        configuration.sink = .none
        return configuration
    }

    @Test(arguments: [("opus", "127.0.0.1"), ("PCMU", "::1")])
    func `two legs hear each other, the callee by symmetric RTP`(
        codec: String,
        host: String
    ) async throws {
        let engine = try CallEngine()
        defer { engine.shutDown() }
        let callee = try engine.makeCall(try configuration("B", codec: codec, host: host))
        var calling = try configuration("A", codec: codec, host: host)
        calling.remote = callee.localAddress
        let caller = try engine.makeCall(calling)
        try await Task.sleep(for: .milliseconds(300))
        try caller.sendDTMF("42")
        try await Task.sleep(for: .milliseconds(900))
        engine.flushEvents()
        let (near, far) = (caller.report(hearing: callee), callee.report(hearing: caller))
        #expect(far.received.packets > 20 && near.received.packets > 20)
        #expect(far.received.lost == 0 && near.received.lost == 0)
        #expect(far.dtmf == "42")
        #expect(far.heardLevel > -60)
        #expect((far.mouthToEarMs ?? 0) > 20 && (far.mouthToEarMs ?? 0) < 200)
        #expect(engine.tickStatistics.count > 50)
        #expect(engine.scheduling != nil)
    }

    @Test func `junk, strangers and unknown payload types are counted and the call goes on`() async throws {
        let engine = try CallEngine()
        defer { engine.shutDown() }
        let callee = try engine.makeCall(try configuration("B", codec: "PCMU", host: "127.0.0.1"))
        var calling = try configuration("A", codec: "PCMU", host: "127.0.0.1")
        calling.remote = callee.localAddress
        let caller = try engine.makeCall(calling)
        try await Task.sleep(for: .milliseconds(300))
        let stranger = try UDPSocket(bind: .loopback(port: 0))
        var generator = SeededGenerator(seed: 3)
        for round in 0..<400 {
            var bytes = (0..<Int(generator.next() % 300)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            if round % 3 == 0, bytes.count > 12 { (bytes[0], bytes[1]) = (0x80, UInt8(round % 2)) }
            stranger.send(bytes.span, to: callee.localAddress, at: MonotonicClock.current)
        }
        try await Task.sleep(for: .milliseconds(500))
        let report = callee.report(hearing: caller)
        #expect(report.received.rejected > 300)
        #expect(report.received.lost == 0)
        #expect(report.received.packets > 30)
    }

    @Test func `a port that is taken is an error`() throws {
        let engine = try CallEngine()
        defer { engine.shutDown() }
        let taken = try UDPSocket(bind: .loopback(port: 0))
        let error = #expect(throws: EngineError.self) {
            try engine.makeCall(CallConfiguration(network: .udp(local: taken.localAddress)))
        }
        guard case .network(let network) = error else {
            Issue.record("expected a network error, got \(String(describing: error))")
            return
        }
        #expect(network.code == .portInUse)
    }

    @Test func `a warm key sounds within a tick in real time`() async throws {
        let engine = try CallEngine()
        defer { engine.shutDown() }
        try engine.setRingerDevice("null")
        let stream = try engine.startDTMFStream()
        try await Task.sleep(for: .milliseconds(60))
        for digit in DTMFDigit.all.prefix(6) {
            try engine.playDTMF(digit, for: .milliseconds(50))
            try await Task.sleep(for: .milliseconds(113))
        }
        let times = stream.keyToSample
        #expect(times.count == 6)
        // A tick and what a busy machine adds.
        #expect(times.allSatisfy { $0 > .milliseconds(-1) && $0 < .milliseconds(25) }, "\(times)")
    }
}

/// 440 Hz that never end: on a busy machine a test may sleep for far longer than it wished.
private final class SineSource: Filter, @unchecked Sendable {
    private static let rate = 48000
    private var frame = 0

    init() {
        let format = AudioFormat(sampleRate: Self.rate)
        super.init(FilterDescription(name: "sine", purpose: "gives 440 Hz", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in 0..<samples.count {
            samples[index] = Int16(8000 * sin(Double(frame) * 2 * .pi * 440 / Double(Self.rate)))
            frame = (frame + 1) % Self.rate
        }
    }
}
