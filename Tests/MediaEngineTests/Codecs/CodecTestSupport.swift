import Foundation

@testable import MediaEngine

/// SplitMix64: the same numbers for the same seed, everywhere.
struct CodecTestRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Uniform in -1...1.
    mutating func nextUnit() -> Double { Double(Int64(bitPattern: next()) >> 11) / Double(1 << 52) }
}

/// Signals and measures for the tests of codecs.
enum CodecTest {
    static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/Codecs")

    static func fixture(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: fixtures.appending(path: name)))
    }

    static func tone(_ frequency: Double, rate: Int, count: Int, amplitude: Double = 10000) -> [Int16] {
        (0..<count).map { Int16(amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
    }

    /// A voice without words: a pulse train of gliding pitch through three gliding resonances, in syllables.
    static func speechLike(rate: Int, seconds: Double, seed: UInt64 = 1) -> [Int16] {
        var random = CodecTestRandom(seed: seed)
        let count = Int(Double(rate) * seconds)
        var phase = 0.0
        var pending = 0.0
        var memory = [Double](repeating: 0, count: 6)
        var output = [Double](repeating: 0, count: count)
        for index in 0..<count {
            let time = Double(index) / Double(rate)
            let step = (125 + 15 * sin(2 * .pi * 0.4 * time)) / Double(rate)
            phase += step
            var excitation = random.nextUnit() * 0.02 + pending
            pending = 0
            if phase >= 1 {
                phase -= 1
                // Pulses lie between samples: on whole samples the pitch would tremble.
                excitation += phase / step
                pending = 1 - phase / step
            }
            let glide = sin(2 * .pi * 0.5 * time)
            let resonances = [(600 + 200 * glide, 80.0), (1300 - 400 * glide, 100.0), (2500 + 200 * glide, 150.0)]
            var value = excitation
            for (stage, (frequency, width)) in resonances.enumerated() {
                let radius = exp(-.pi * width / Double(rate))
                let angle = 2 * .pi * frequency / Double(rate)
                let resonated =
                    value * (1 - radius) + 2 * radius * cos(angle) * memory[2 * stage]
                    - radius * radius * memory[2 * stage + 1]
                memory[2 * stage + 1] = memory[2 * stage]
                memory[2 * stage] = resonated
                value = resonated
            }
            output[index] = value * (0.55 + 0.45 * sin(2 * .pi * 3 * time))
        }
        let peak = output.map(abs).max() ?? 1
        return output.map { Int16($0 / peak * 16000) }
    }

    /// The ratio of signal to difference in dB.
    static func signalToNoise(_ signal: some Sequence<Int16>, _ received: some Sequence<Int16>) -> Double {
        var power = 0.0
        var noise = 1e-9
        for (left, right) in zip(signal, received) {
            power += Double(left) * Double(left)
            noise += pow(Double(left) - Double(right), 2)
        }
        return 10 * log10(power / noise)
    }

    /// The delay up to `most` samples at which `received` resembles `signal` best.
    static func delay(of received: [Int16], against signal: [Int16], most: Int) -> Int {
        (0...most).max { left, right in
            signalToNoise(signal, received.dropFirst(left)) < signalToNoise(signal, received.dropFirst(right))
        } ?? 0
    }

    static func energy(_ samples: some Sequence<Int16>) -> Double {
        samples.reduce(0) { $0 + Double($1) * Double($1) }
    }

    static func largestStep(_ samples: some Collection<Int16>) -> Int {
        zip(samples, samples.dropFirst()).map { abs(Int($1) - Int($0)) }.max() ?? 0
    }
}

extension AudioEncoder {
    /// The payloads of whole packets in `samples`; a packet that need not be sent is empty.
    func packets(of samples: [Int16]) -> [[UInt8]] {
        let size = frameCount * format.channelCount
        var buffer = [UInt8](repeating: 0, count: PacketBatch.maximumPayloadByteCount)
        return stride(from: 0, through: samples.count - size, by: size).map { start in
            let chunk = Array(samples[start..<start + size])
            var payload = buffer.mutableSpan
            let count = encode(chunk.span, into: &payload)
            return Array(buffer[..<count])
        }
    }
}

extension AudioDecoder {
    func frames(of payload: [UInt8]) -> Int { frameCount(of: payload.span) }

    func samples(of payload: [UInt8], room: Int = 5760) -> [Int16] {
        var buffer = [Int16](repeating: 0, count: room * format.channelCount)
        var output = buffer.mutableSpan
        let count = decode(payload.span, into: &output)
        return Array(buffer[..<(count * format.channelCount)])
    }

    func concealed(_ frameCount: Int) -> [Int16] {
        var buffer = [Int16](repeating: 1, count: frameCount * format.channelCount)
        var output = buffer.mutableSpan
        conceal(frameCount: frameCount, into: &output)
        return buffer
    }

    func recovered(from next: [UInt8], frameCount: Int) -> [Int16] {
        var buffer = [Int16](repeating: 0, count: frameCount * format.channelCount)
        var output = buffer.mutableSpan
        let count = decodeFEC(in: next.span, frameCount: frameCount, into: &output)
        return Array(buffer[..<(count * format.channelCount)])
    }
}
