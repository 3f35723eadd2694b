import MediaEngine
import TestSupport
import Testing

/// Opus calls of the repository's speech over networks that lose and delay, in virtual time, against the same call over
/// a network that does neither.
@Suite struct ImpairedCallTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let lossPercent: Double
        let jitter: Int
        /// The longest delay from mouth to ear, in ms, when the network's base delay is 20 ms.
        let delay: Double
        /// The greatest spectral distance from the clean call, in dB.
        let distance: Double
        /// The most that may be invented, of 20 s, in ms.
        let concealed: Double

        var testDescription: String { "\(lossPercent) % loss, \(jitter) ms jitter" }
    }

    static let rows = [
        Row(lossPercent: 0, jitter: 0, delay: 80, distance: 0.5, concealed: 0),
        Row(lossPercent: 0, jitter: 60, delay: 135, distance: 1.5, concealed: 200),
        Row(lossPercent: 5, jitter: 30, delay: 115, distance: 2.5, concealed: 900),
        Row(lossPercent: 5, jitter: 60, delay: 135, distance: 2.5, concealed: 900),
        Row(lossPercent: 10, jitter: 60, delay: 140, distance: 4, concealed: 1800),
        Row(lossPercent: 10, jitter: 100, delay: 175, distance: 4, concealed: 1800),
    ]

    private static func run(_ row: Row?, seed: UInt64, fec: Bool) async throws -> (leg: LegReport, heard: [Int16]) {
        let engine = try CallEngine(.virtual(seed: seed))
        let (left, right) = MemoryLink.pair()
        let format = AudioFormat(sampleRate: 48000)
        var calling = CallConfiguration(network: .link(left, local: left.localAddress))
        calling.agreement.remote = right.localAddress
        calling.stream.encoder.bitrate = 24000
        calling.stream.fec = fec ? .on : .off
        calling.source = .file(TestFiles.speech, repetition: .forever(pause: .milliseconds(300)))
        calling.sink = .none
        var called = CallConfiguration(network: .link(right, local: right.localAddress))
        called.agreement.remote = left.localAddress
        called.stream = calling.stream
        called.source = .silence
        var impairment = Impairment()
        impairment.delay = .milliseconds(20)
        if let row {
            impairment.lossPercent = row.lossPercent
            impairment.burstLength = 1.5
            impairment.jitter = .milliseconds(row.jitter)
        }
        called.impairment = impairment
        called.impairmentSeed = seed
        let collector = CallCollector()
        called.sink = .filter(collector.filter(format))
        let calls = try await engine.makeCalls([calling, called])
        try engine.advance(by: .seconds(20))
        return (calls[1].report(hearing: calls[0]), collector.samples)
    }

    @Test(arguments: thorough(rows, quick: [rows[3]]), thorough([7, 19] as [UInt64], quick: [7]))
    func `delay, concealment and sound stay within bounds`(_ row: Row, _ seed: UInt64) async throws {
        let fec = row.lossPercent > 0
        let clean = try await Self.run(nil, seed: seed, fec: fec)
        let (leg, heard) = try await Self.run(row, seed: seed, fec: fec)
        let told = try #require(leg.mouthToEarMs)
        let cleanDelay = try #require(clean.leg.mouthToEarMs)
        #expect(told <= row.delay)
        #expect(leg.received.concealedMs <= row.concealed)
        #expect(leg.received.late <= 12)
        #expect(leg.stretchedMs <= 400, "\(leg.stretchedMs) ms stretched")
        let distance = SpectralDistance.between(
            clean.heard,
            heard,
            format: AudioFormat(sampleRate: 48000),
            delay: .nanoseconds(Int64((told - cleanDelay) * 1e6))
        )
        #expect(distance <= row.distance, "\(distance) dB at \(told) ms, \(leg.received)")
        if fec { #expect(leg.received.fecRecovered * 10 >= leg.received.lost * 4) }
    }
}
