import Foundation
@testable import MediaEngine
import Testing

struct CallProgressTonesTests {
    @Test(arguments: CallProgressTones.all)
    func `every tone of every country can be played`(country: CallProgressTones) throws {
        #expect(country.tones.starts(with: [.dial, .ringback, .busy, .congestion]))
        for tone in country.tones {
            let spec = try #require(try CallProgressTones.of(country: country.country.lowercased())[tone])
            #expect(spec == country[tone])
            for rate in [8000, 48_000] { _ = try PreparedTone(spec, sampleRate: rate) }
        }
    }

    /// Frequencies and ms of sound and silence: ITU-T E.180 Supplement 2; BT SIN 350; Telcordia GR-506.
    @Test(
        arguments: [
            ("US", CallProgressTone.busy, [480.0, 620], [500, 500]), ("US", .ringback, [440, 480], [2000, 4000]),
            ("US", .congestion, [480, 620], [250, 250]), ("FR", .ringback, [440], [1500, 3500]),
            ("DE", .busy, [425], [480, 480]), ("UK", .ringback, [400, 450], [400, 200, 400, 2000]),
            ("GB", .congestion, [400], [400, 350, 225, 525]), ("JP", .busy, [400], [500, 500]),
        ] as [(String, CallProgressTone, [Double], [Int])]
    )
    func `known tones are as published`(
        country: String,
        tone: CallProgressTone,
        frequencies: [Double],
        milliseconds: [Int]
    ) throws {
        let spec = try #require(try CallProgressTones.of(country: country)[tone])
        #expect(spec.steps.first?.components.map(\.frequency) == frequencies)
        #expect(spec.steps.map(\.duration) == milliseconds.map { .milliseconds($0) })
    }

    @Test func `Japan's ringback is amplitude-modulated by 16 Hz`() throws {
        let spec = try #require(try CallProgressTones.of(country: "JP")[.ringback])
        let generator = ToneGenerator(format: AudioFormat(sampleRate: 8000))
        generator.play(try PreparedTone(spec, sampleRate: 8000))
        var samples = [Int16](repeating: 0, count: 8000)
        var span = samples.mutableSpan
        generator.render(into: &span)
        let middle = [Int16](samples[500..<7500])
        let carrier = ToneTestSignal.power(of: 400, in: middle, rate: 8000)
        for side in [384.0, 416] {
            let ratio = (ToneTestSignal.power(of: side, in: middle, rate: 8000) / carrier).squareRoot()
            // A side band has half the depth of modulation, 85 %.
            #expect(abs(ratio - 0.425) < 0.01)
        }
        #expect(ToneTestSignal.power(of: 16, in: middle, rate: 8000) < carrier * 1e-4)
    }

    @Test func `an unknown country is answered with those that are known`() {
        let country = #expect(throws: ToneError.self) { try CallProgressTones.of(country: "XX") }
        #expect(country?.code == .unknownCountry)
        #expect(country?.message.contains("DE") == true && country?.message.contains("JP") == true)
    }

    @Test(arguments: [
        ToneSpec(steps: []),
        ToneSpec(frequencies: [5000]),
        ToneSpec(frequencies: [0]),
        ToneSpec(frequencies: [.nan]),
        ToneSpec(frequencies: [400], level: Decibels(10)),
        ToneSpec(frequencies: [400], level: Decibels(.nan)),
        ToneSpec(frequencies: [1, 2, 3, 4, 5]),
        ToneSpec(frequencies: [400], cadence: Cadence([.zero])),
        ToneSpec(frequencies: [400], cadence: Cadence([.milliseconds(-5)])),
        ToneSpec(frequencies: [400], cadence: Cadence([.seconds(4000)])),
        ToneSpec(frequencies: [400], repeatCount: 0),
        ToneSpec(steps: [ToneStep([], for: nil), ToneStep([], for: .seconds(1))]),
        ToneSpec([ToneComponent(frequency: 400, level: Decibels(0), modulation: 16, modulationDepth: 2)]),
    ])
    func `what cannot be played is refused`(spec: ToneSpec) {
        let error = #expect(throws: ToneError.self) { try PreparedTone(spec, sampleRate: 8000) }
        #expect(error?.code == .invalidTone)
    }
}
