import MediaEngine
import TestSupport
import Testing

/// Two legs in one engine of virtual time, over a simulated network.
@Suite struct VirtualCallTests {
    struct Outcome {
        var legs: [LegReport]
        var heard: [Int16]
        var sent: [Int16]
        var format: AudioFormat
    }

    static func speechLike(seconds: Double, format: AudioFormat) -> [Int16] { chirps(seconds, format) }

    private func run(
        codec: String = "opus",
        seconds: Double = 6,
        impairment: Impairment = Impairment(),
        seed: UInt64 = 1,
        keys: String = "",
        configure: (inout AudioStreamConfiguration) -> Void = { _ in }
    ) async throws -> Outcome {
        let engine = try CallEngine(.virtual(seed: seed))
        let (left, right) = MemoryLink.pair()
        let collector = CallCollector()
        let codecFormat = try engine.registry.codec(named: codec).description.format
        let signal = Self.speechLike(seconds: seconds - 1, format: codecFormat)
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.name = "A"
        calling.agreement.remote = right.localAddress
        calling.agreement.codec = AgreedCodec(codec)
        configure(&calling.stream)
        calling.source = .samples(signal, codecFormat)
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.name = "B"
        called.agreement.remote = left.localAddress
        called.stream = calling.stream
        called.agreement.codec = calling.agreement.codec
        called.impairment = impairment
        called.source = .samples(signal, codecFormat)
        called.sink = .filter(collector.filter(codecFormat))
        let calls = try await engine.makeCalls([calling, called])
        if !keys.isEmpty { try calls[0].sendDTMF(keys) }
        try engine.advance(by: .milliseconds(Int64(seconds * 1000)))
        let legs = [calls[0].report(hearing: calls[1]), calls[1].report(hearing: calls[0])]
        return Outcome(legs: legs, heard: collector.samples, sent: signal, format: codecFormat)
    }

    @Test(arguments: ["opus", "PCMU", "PCMA", "G722", "L16"]) func `a clean call loses nothing`(codec: String)
        async throws
    {
        let outcome = try await run(codec: codec)
        for leg in outcome.legs {
            // L16 sends 10 ms in a packet, the others 20.
            let count = codec == "L16" ? 600 : 300
            #expect(leg.sent.packets == count)
            #expect(leg.received.packets >= count - 1)
            #expect(leg.received.lost == 0 && leg.received.late == 0)
            #expect(leg.received.concealedMs == 0)
            #expect(leg.received.fecRecovered == 0)
            #expect(leg.rtcp.fractionLost == 0)
        }
    }

    @Test(arguments: thorough(["PCMU", "L16", "opus"], quick: ["PCMU"]))
    func `the measured mouth to ear is what correlation finds`(codec: String)
        async throws
    {
        let outcome = try await run(codec: codec)
        let told = try #require(outcome.legs[1].mouthToEarMs)
        let rate = Double(outcome.format.sampleRate) / 1000
        let around = Int((told - 20) * rate)...Int((told + 20) * rate)
        let found = Double(delay(of: outcome.heard, behind: outcome.sent, among: around)) / rate
        #expect(abs(told - found) <= 1, "told \(told), found \(found)")
    }

    @Test func `loss is concealed, counted and reported back`() async throws {
        var impairment = Impairment()
        impairment.lossPercent = 10
        let outcome = try await run(codec: "PCMU", seconds: 20, impairment: impairment)
        let leg = outcome.legs[1]
        #expect(leg.received.lost > 60 && leg.received.lost < 140)
        #expect(abs(leg.received.concealedMs - Double(leg.received.lost) * 20) <= 40)
        #expect((outcome.legs[0].rtcp.fractionLost ?? 0) > 0.02)
        #expect(outcome.legs[0].received.lost == 0)
    }

    @Test func `under loss FEC turns on by itself and the decoder takes it`() async throws {
        var impairment = Impairment()
        impairment.lossPercent = 10
        let auto = try await run(seconds: 20, impairment: impairment)
        #expect(auto.legs[1].received.fecRecovered > 20)
        let off = try await run(seconds: 20, impairment: impairment) { $0.fec = .off }
        #expect(off.legs[1].received.fecRecovered == 0)
        #expect(off.legs[1].received.concealedMs > auto.legs[1].received.concealedMs + 400)
    }

    @Test(arguments: thorough([2.0, 5.0], quick: [5.0]))
    func `also under little loss the FEC that is on recovers packets`(loss: Double) async throws {
        var impairment = Impairment()
        impairment.lossPercent = loss
        let outcome = try await run(seconds: thorough(60, quick: 30), impairment: impairment)
        #expect(outcome.legs[1].received.fecRecovered > 5)
    }

    @Test func `keys arrive once each, also under loss`() async throws {
        var impairment = Impairment()
        impairment.lossPercent = 20
        impairment.reorderPercent = 5
        impairment.duplicatePercent = 5
        #expect(try await run(codec: "PCMU", impairment: impairment, keys: "159#").legs[1].dtmf == "159#")
        let clean = try await run(codec: "opus", keys: "0123456789*#ABCD").legs[1]
        #expect(clean.dtmf == "0123456789*#ABCD")
        #expect(clean.received.concealedMs == 0 && clean.received.late == 0)
    }

    @Test func `the same seed gives the same call`() async throws {
        var impairment = Impairment()
        impairment.lossPercent = 5
        impairment.jitter = .milliseconds(30)
        let first = try await run(impairment: impairment, seed: 5)
        let second = try await run(impairment: impairment, seed: 5)
        let other = try await run(impairment: impairment, seed: 6)
        #expect(first.heard == second.heard && first.legs == second.legs)
        #expect(first.heard != other.heard)
    }

    @Test(arguments: thorough([10, 20, 40, 60, 80, 100, 120], quick: [10, 60])) func `every ptime of Opus works`(
        ptime: Int
    ) async throws {
        let outcome = try await run(configure: { stream in
            stream.encoder.ptime = .milliseconds(ptime)
            stream.playoutDelay = .fixed(.milliseconds(max(60, ptime)))
        })
        #expect(outcome.legs[1].received.packets >= 6000 / ptime - 1)
        #expect(outcome.legs[1].received.concealedMs == 0)
    }

    @Test func `stereo Opus arrives in two channels`() async throws {
        let engine = try CallEngine(.virtual())
        let (left, right) = MemoryLink.pair()
        let stereo = AudioFormat(sampleRate: 48000, channelCount: 2)
        // Sound on the left, silence on the right.
        let signal: [Int16] = chirps(2, AudioFormat(sampleRate: 48000)).flatMap { sample in [sample, 0] }
        let collector = CallCollector()
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.stream.encoder.channelCount = 2
        calling.stream.encoder.bitrate = 96000
        calling.source = .samples(signal, stereo)
        calling.sink = .none
        var called = calling
        called.network = .link(right, local: right.localAddress)
        called.agreement.remote = left.localAddress
        called.source = .silence
        called.sink = .filter(collector.filter(stereo))
        _ = try await engine.makeCalls([calling, called])
        try engine.advance(by: .seconds(3))
        let heard = collector.samples
        func energy(_ channel: Int) -> Double {
            stride(from: channel, to: heard.count, by: 2).reduce(0) { $0 + pow2(heard[$1]) }
        }
        #expect(energy(0) > 1000 * energy(1))
        #expect(energy(0) > 0)
    }

    /// By how many frames `late` lags behind `early`: where the correlation of the first chirp is highest.
    private func delay(of late: [Int16], behind early: [Int16], among lags: ClosedRange<Int>) -> Int {
        func correlation(_ lag: Int) -> Double {
            // In the middle, where the delay has settled.
            stride(from: early.count * 6 / 10, to: early.count * 7 / 10, by: 3).reduce(0) { sum, index in
                sum + Double(early[index]) * Double(late[index + lag])
            }
        }
        return lags.map { ($0, correlation($0)) }.max { $0.1 < $1.1 }?.0 ?? 0
    }

    private func pow2(_ sample: Int16) -> Double { Double(sample) * Double(sample) }
}

/// Keeps what a call plays.
final class CallCollector {
    private var sink: CollectingSink?

    func filter(_ format: AudioFormat) -> Filter {
        let sink = CollectingSink(format: format, capacity: format.sampleRate * format.channelCount * 120)
        self.sink = sink
        return sink
    }

    var samples: [Int16] { sink?.collected ?? [] }
}
