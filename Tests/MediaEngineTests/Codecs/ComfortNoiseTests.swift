@testable import MediaEngine
import Testing

@Suite struct ComfortNoiseTests {
    private static func level(_ samples: [Int16]) -> Double {
        (CodecTest.energy(samples[...]) / Double(samples.count)).squareRoot()
    }

    private static func noise(_ payload: [UInt8], count: Int = 8000) -> [Int16] {
        var noise = ComfortNoise(format: AudioFormat(sampleRate: 8000, channelCount: 1))
        noise.begin(payload.span)
        var samples = [Int16](repeating: 0, count: count)
        var target = samples.mutableSpan
        noise.fill(&target, from: 0, to: count)
        return samples
    }

    /// A square wave at full scale is at 0 dBov, so the level is that of the samples themselves.
    @Test(arguments: [(20, 3276.8), (35, 582.7), (40, 327.7), (60, 32.77), (70, 10.36)] as [(UInt8, Double)])
    func `noise is as loud as its packet tells`(_ level: UInt8, _ expected: Double) {
        let found = Self.level(Array(Self.noise([level])[200...]))
        #expect(abs(found / expected - 1) < 0.08, "\(found)")
    }

    @Test func `neither the unused bit nor a spectrum changes the level`() {
        let plain = Self.noise([50])
        #expect(Self.noise([0x80 | 50]) == plain)
        #expect(Self.noise([50, 0, 255, 127]) == plain)
    }

    @Test func `the loudest noise is cut off, the softest is silence, and nothing is no noise`() {
        #expect(Self.level(Self.noise([0])) > 20_000)
        #expect(Self.noise([127]).allSatisfy { $0 == 0 })
        var noise = ComfortNoise(format: AudioFormat(sampleRate: 8000, channelCount: 1))
        let nothing: [UInt8] = []
        noise.begin(nothing.span)
        #expect(!noise.isOn)
    }

    @Test func `noise comes and changes within 10 ms, without a step`() {
        let samples = Self.noise([30], count: 160)
        #expect(Self.level(Array(samples[..<8])) < 0.5 * Self.level(Array(samples[80...])))
    }
}
