import Foundation
@testable import MediaEngine
import Testing

/// Limits of ITU-T Q.24 (AT&T's column of annex A where administrations differ), and of the project's own corpus.
struct DTMFDetectorTests {
    private static let hasFetched = ToneTestSignal.fetched != nil

    @Test func `the labelled corpus comes out as its index says`() throws {
        struct Index: Decodable {
            struct Case: Decodable {
                let file: String
                let digits: String
            }
            let cases: [Case]
        }
        let index = try JSONDecoder().decode(
            Index.self,
            from: Data(contentsOf: ToneTestSignal.fixtures.appending(path: "index.json"))
        )
        #expect(index.cases.count == 14)
        for item in index.cases {
            let (samples, rate) = try ToneTestSignal.wav(ToneTestSignal.fixtures.appending(path: item.file))
            #expect(try ToneTestSignal.digits(in: samples, rate: rate) == item.digits, "\(item.file)")
        }
    }

    /// From tino1b2be/DTMF-Decoder, `samples/`: the digits are those of the file names, four bursts in each.
    ///
    /// multimon-ng hears the same, except that it hears the 6 of the complete sequence (under noise as loud) twice.
    @Test(
        .enabled(if: hasFetched, "needs shared/corpora/fetched"),
        arguments: [
            ("a-8kHz", "AAAA"), ("five-8kHz", "5555"), ("hash-8kHz", "####"), ("nine-8kHz", "9999"),
            ("one_distorted", "1"),
            ("complete-sequence-8kHz", "1234567890*#ABCD"),
        ]
    )
    func `recordings of others are heard`(name: String, digits: String) throws {
        let folder = try #require(ToneTestSignal.fetched).appending(path: "dtmf-decoder")
        let (samples, rate) = try ToneTestSignal.wav(folder.appending(path: name + ".wav"))
        #expect(try ToneTestSignal.digits(in: samples, rate: rate) == digits)
    }

    @Test(
        .enabled(if: hasFetched, "needs shared/corpora/fetched"),
        arguments: ["speech/jfk-0-5s-16k.wav", "webrtc-audio/audio_tiny16.wav", "webrtc-audio/audio_tiny8.wav"]
    )
    func `speech holds no digits`(path: String) throws {
        let (samples, rate) = try ToneTestSignal.wav(try #require(ToneTestSignal.fetched).appending(path: path))
        #expect(try ToneTestSignal.digits(in: samples, rate: rate) == "")
    }

    @Test(arguments: DTMFDigit.all)
    func `every digit is heard at Q.24's frequency limit, and not beyond`(digit: DTMFDigit) throws {
        for (deviation, isHeard) in [(0.0, true), (0.015, true), (-0.015, true), (0.035, false), (-0.035, false)] {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            for low in [1.0, deviation == 0.015 || deviation == -0.015 ? -1 : 1] {
                signal.add(.init(digit: digit, lowDeviation: low * deviation, highDeviation: deviation), 50)
                signal.silence(50)
            }
            #expect(try signal.digits == (isHeard ? "\(digit)\(digit)" : ""), "\(deviation)")
        }
    }

    @Test func `the limits of tune, noise and twist hold together`() throws {
        for twist in [4.0, -2.0] {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            for digit in DTMFDigit.all {
                signal.add(
                    .init(
                        digit: digit,
                        lowDeviation: 0.015,
                        highDeviation: -0.015,
                        lowLevel: -13 + twist / 2,
                        highLevel: -13 - twist / 2
                    ),
                    50
                )
                signal.silence(50)
            }
            signal.addNoise(ratio: 15, below: -10, seed: 9)
            #expect(try signal.digits == "0123456789*#ABCD")
        }
    }

    @Test(arguments: DTMFDigit.all)
    func `one tone out of tune is enough to refuse`(digit: DTMFDigit) throws {
        for (low, high) in [(0.035, 0.0), (-0.035, 0), (0, 0.035), (0, -0.035)] {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            signal.add(.init(digit: digit, lowDeviation: low, highDeviation: high), 100)
            signal.silence(50)
            #expect(try signal.digits == "")
        }
    }

    /// Lengths in ms: 40 must be heard, 23 must not; 10 of interruption is none, 40 is a pause.
    @Test(arguments: [
        ([40.0], "7"), ([50], "7"), ([23], ""), ([20], ""), ([10], ""), ([3000], "7"),
        ([40, 40, 40], "77"), ([50, 10, 50], "7"), ([30, 10, 30], "7"), ([25, 5, 25], "7"), ([60, 8, 60, 8, 60], "7"),
        ([100, 20, 100], "7"), ([50, 45, 50], "77"), ([22, 40, 22], ""),
    ])
    func `lengths and pauses decide as Q.24 asks`(milliseconds: [Double], digits: String) throws {
        for offset in 0..<8 {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50 + Double(offset) * 0.625)
            for (index, length) in milliseconds.enumerated() {
                if index.isMultiple(of: 2) {
                    signal.add(.init(digit: ToneTestSignal.digit("7")), length)
                } else {
                    signal.silence(length)
                }
            }
            signal.silence(60)
            #expect(try signal.digits == digits, "\(offset)")
        }
    }

    /// Low minus high, in dB: Q.24 asks for +8 (normal twist) and -4 (reverse).
    @Test(arguments: [(8.0, true), (-4, true), (0, true), (4, true), (13, false), (-9, false)])
    func `twist is accepted within its limits`(twist: Double, isHeard: Bool) throws {
        for digit in DTMFDigit.all {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            let pair = ToneTestSignal.Pair(
                digit: digit,
                lowLevel: -13 - max(0, -twist),
                highLevel: -13 - max(0, twist)
            )
            signal.add(pair, 50)
            signal.silence(50)
            #expect(try signal.digits == (isHeard ? digit.description : ""))
        }
    }

    /// Level of each tone in dBm0; 0 to -25 must be heard (0 dBm0 is 3.17 dB below the loudest sine).
    @Test(arguments: [(0.0, true), (-25, true), (-36, true), (-55, false)])
    func `levels are accepted within their range`(level: Double, isHeard: Bool) throws {
        for digit in DTMFDigit.all {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            signal.add(.init(digit: digit, lowLevel: level - 3.17, highLevel: level - 3.17), 50)
            signal.silence(50)
            #expect(try signal.digits == (isHeard ? digit.description : ""))
        }
    }

    /// Noise below the pair's power, in dB: Q.24 asks for 15.
    @Test(arguments: [24.0, 15, 12])
    func `digits of 50 ms are heard in noise`(ratio: Double) throws {
        for seed in UInt64(1)...4 {
            var signal = ToneTestSignal(rate: 8000)
            signal.silence(50)
            for digit in DTMFDigit.all {
                signal.add(.init(digit: digit), 50)
                signal.silence(50)
            }
            signal.addNoise(ratio: ratio, below: -10, seed: seed)
            #expect(try signal.digits == "0123456789*#ABCD", "\(seed)")
        }
    }

    @Test(arguments: [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000])
    func `start and length are right to 5 ms at every rate`(rate: Int) throws {
        for digit in DTMFDigit.all {
            var signal = ToneTestSignal(rate: rate)
            signal.silence(83)
            signal.add(.init(digit: digit), 61)
            signal.silence(70)
            let found = try ToneTestSignal.detections(in: signal.int16, rate: rate)
            try #require(found.map(\.phase) == [.began, .ended])
            #expect(found.allSatisfy { $0.digit == digit })
            #expect(abs(Double(found[1].startFrame) / Double(rate) - 0.083) < 0.005)
            #expect(abs(Double(found[1].frameCount) / Double(rate) - 0.061) < 0.005)
        }
    }

    @Test func `a digit that sounds to the end is told by finish`() throws {
        var signal = ToneTestSignal(rate: 8000)
        signal.silence(20)
        signal.add(.init(digit: ToneTestSignal.digit("D")), 60)
        let found = try ToneTestSignal.detections(in: signal.int16, rate: 8000)
        try #require(found.count == 2)
        #expect(abs(found[1].frameCount - 480) < 40)
        #expect(found[1].startFrame + found[1].frameCount <= signal.samples.count)
    }

    @Test func `block size and channels make no difference`() throws {
        let (samples, rate) = try ToneTestSignal.wav(ToneTestSignal.fixtures.appending(path: "clean.wav"))
        let whole = try ToneTestSignal.detections(in: samples, rate: rate)
        let detector = try DTMFDetector(sampleRate: rate)
        var found: [DTMFDetection] = []
        for sample in samples {
            detector.process([sample, sample].span, channelCount: 2)
            while let detection = detector.nextDetection() { found.append(detection) }
        }
        detector.finish()
        while let detection = detector.nextDetection() { found.append(detection) }
        #expect(found == whole)
    }

    @Test func `digits that follow without a pause are all heard`() throws {
        var signal = ToneTestSignal(rate: 8000)
        signal.silence(30)
        for digit in DTMFDigit.all { signal.add(.init(digit: digit), 60) }
        #expect(try signal.digits == "0123456789*#ABCD")
    }

    @Test(arguments: [7999, 0, 192_001])
    func `other rates are refused with the remedy`(rate: Int) {
        #expect(throws: ToneError.self) { try DTMFDetector(sampleRate: rate) }
    }
}
