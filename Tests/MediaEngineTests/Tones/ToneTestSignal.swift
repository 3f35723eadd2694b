import Foundation
@testable import MediaEngine

/// Signals for the tone tests, made with `sin` and a seeded generator, independently of the engine's own oscillator.
struct ToneTestSignal {
    let rate: Int
    var samples: [Double] = []

    /// A sine pair whose parts differ from the digit's own, as Q.24's tests ask.
    struct Pair {
        var digit: DTMFDigit
        /// Relative deviation of both frequencies.
        var lowDeviation = 0.0
        var highDeviation = 0.0
        /// In dB below the loudest sine.
        var lowLevel = -13.0
        var highLevel = -13.0
    }

    static func digit(_ character: Character) -> DTMFDigit {
        DTMFDigit(character) ?? DTMFDigit.all[0]
    }

    mutating func silence(_ milliseconds: Double) {
        samples += [Double](repeating: 0, count: Int(milliseconds * Double(rate) / 1000))
    }

    mutating func add(_ pair: Pair, _ milliseconds: Double) {
        let low = 2 * Double.pi * pair.digit.lowFrequency * (1 + pair.lowDeviation) / Double(rate)
        let high = 2 * Double.pi * pair.digit.highFrequency * (1 + pair.highDeviation) / Double(rate)
        let lowPeak = 32767 * pow(10, pair.lowLevel / 20)
        let highPeak = 32767 * pow(10, pair.highLevel / 20)
        let start = Double(samples.count)
        for index in 0..<Int(milliseconds * Double(rate) / 1000) {
            let time = start + Double(index)
            samples.append(lowPeak * sin(low * time) + highPeak * sin(high * time + 1))
        }
    }

    /// Adds white noise `decibels` below a power of `reference` dB relative to the loudest sine's.
    mutating func addNoise(ratio decibels: Double, below reference: Double, seed: UInt64) {
        var random = ToneTestRandom(seed: seed)
        let power = pow(10, (reference - decibels) / 10) * 32767 * 32767 / 2
        for index in samples.indices {
            samples[index] += random.gaussian() * power.squareRoot()
        }
    }

    var int16: [Int16] { samples.map { Int16(max(-32768, min(32767, $0.rounded()))) } }

    /// The digits that a detector hears in `samples`, given in blocks of 10 ms.
    static func detections(in samples: [Int16], rate: Int, channelCount: Int = 1) throws -> [DTMFDetection] {
        let detector = try DTMFDetector(sampleRate: rate)
        var found: [DTMFDetection] = []
        var start = 0
        while start < samples.count {
            let end = min(samples.count, start + rate / 100 * channelCount)
            detector.process(samples[start..<end].span, channelCount: channelCount)
            while let detection = detector.nextDetection() { found.append(detection) }
            start = end
        }
        detector.finish()
        while let detection = detector.nextDetection() { found.append(detection) }
        return found
    }

    static func digits(in samples: [Int16], rate: Int) throws -> String {
        try detections(in: samples, rate: rate).filter { $0.phase == .ended }.map(\.digit.description).joined()
    }

    var digits: String { get throws { try Self.digits(in: int16, rate: rate) } }

    /// The power of a sine of `frequency` Hz in `samples`, by direct correlation under a Hann window.
    static func power(of frequency: Double, in samples: [Int16], rate: Int) -> Double {
        var real = 0.0
        var imaginary = 0.0
        var sum = 0.0
        for (index, sample) in samples.enumerated() {
            let weight = 0.5 - 0.5 * cos(2 * .pi * (Double(index) + 0.5) / Double(samples.count))
            let angle = 2 * Double.pi * frequency * Double(index) / Double(rate)
            real += weight * Double(sample) * cos(angle)
            imaginary += weight * Double(sample) * sin(angle)
            sum += weight
        }
        return 2 * (real * real + imaginary * imaginary) / (sum * sum)
    }

    /// The samples of a 16-bit PCM WAV, and its rate: enough for the corpora.
    static func wav(_ url: URL) throws -> (samples: [Int16], rate: Int) {
        let bytes = [UInt8](try Data(contentsOf: url))
        func word(_ at: Int) -> Int { Int(bytes[at]) | Int(bytes[at + 1]) << 8 }
        func long(_ at: Int) -> Int { word(at) | word(at + 2) << 16 }
        var rate = 0
        var offset = 12
        while offset + 8 <= bytes.count {
            let name = String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self)
            let size = long(offset + 4)
            if name == "fmt " { rate = long(offset + 12) }
            if name == "data" {
                let end = min(bytes.count, offset + 8 + size) - 1
                let samples = stride(from: offset + 8, to: end, by: 2).map { Int16(truncatingIfNeeded: word($0)) }
                return (samples, rate)
            }
            offset += 8 + size + size % 2
        }
        throw CocoaError(.fileReadCorruptFile)
    }

    static let packageRoot = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static let fixtures = packageRoot.appending(path: "Tests/MediaEngineTests/Fixtures/Tones")

    /// Corpora of others, read in place; nil where they are not.
    static let fetched: URL? = {
        for up in ["../shared", "../../shared"] {
            let url = packageRoot.appending(path: up).appending(path: "corpora/fetched").standardizedFileURL
            if FileManager.default.fileExists(atPath: url.path) { return url }
        }
        return nil
    }()
}

/// SplitMix64 with a normal distribution.
struct ToneTestRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    mutating func gaussian() -> Double {
        (-2 * log(1 - uniform())).squareRoot() * cos(2 * .pi * uniform())
    }
}
