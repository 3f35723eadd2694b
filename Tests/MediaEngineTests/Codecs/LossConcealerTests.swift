import Foundation
import TestSupport
import Testing

@testable import MediaEngine

@Suite struct LossConcealerTests {
    /// Plays `signal` in 20 ms packets through a concealer that never sees those in `lost`.
    private func concealed(_ signal: [Int16], format: AudioFormat, lost: (Int) -> Bool) -> [Int16] {
        let concealer = LossConcealer(format: format)
        let frames = format.sampleRate / 50
        let size = frames * format.channelCount
        return stride(from: 0, through: signal.count - size, by: size).flatMap { start -> [Int16] in
            var packet = Array(signal[start..<start + size])
            var samples = packet.mutableSpan
            if lost(start / size) {
                concealer.conceal(frameCount: frames, into: &samples)
            } else {
                concealer.receive(&samples, frameCount: frames)
            }
            return packet
        }
    }

    private func zeroFilled(_ signal: [Int16], size: Int, lost: (Int) -> Bool) -> [Int16] {
        signal.indices.map { lost($0 / size) ? 0 : signal[$0] }
    }

    private func repeated(_ signal: [Int16], size: Int, lost: (Int) -> Bool) -> [Int16] {
        signal.indices.map { index in
            var packet = index / size
            while packet > 0, lost(packet) { packet -= 1 }
            return signal[packet * size + index % size]
        }
    }

    private func losses(packetCount: Int, percent: Int, seed: UInt64) -> Set<Int> {
        var random = CodecTestRandom(seed: seed)
        return Set((5..<packetCount).filter { _ in Int.random(in: 0..<100, using: &random) < percent })
    }

    static let rates = [8000, 16000, 44100, 48000]

    @Test(arguments: rates) func `a tone goes on through lost packets`(rate: Int) {
        let signal = CodecTest.tone(440, rate: rate, count: rate)
        let lost: Set = [10, 20, 21, 35]
        let output = concealed(signal, format: AudioFormat(sampleRate: rate)) { lost.contains($0) }
        let size = rate / 50
        let range = 10 * size..<11 * size
        // 10 ms are steady, the next 10 ms lose up to 20 %.
        #expect(CodecTest.signalToNoise(signal[range], output[range]) > 15)
        #expect(CodecTest.largestStep(output) <= CodecTest.largestStep(signal) * 3 / 2)
    }

    @Test(arguments: rates) func `speech under 5 % loss sounds better than silence or repetition`(rate: Int) {
        let signal = CodecTest.speechLike(rate: rate, seconds: 6)
        let size = rate / 50
        var noise = (ours: 0.0, zero: 0.0, again: 0.0)
        for seed in 1...thorough(5, quick: 1) {
            let lost = losses(packetCount: signal.count / size, percent: 5, seed: UInt64(seed))
            func difference(_ output: [Int16]) -> Double {
                CodecTest.energy(zip(signal, output).map { $0 &- $1 })
            }
            noise.ours += difference(concealed(signal, format: AudioFormat(sampleRate: rate)) { lost.contains($0) })
            noise.zero += difference(zeroFilled(signal, size: size) { lost.contains($0) })
            noise.again += difference(repeated(signal, size: size) { lost.contains($0) })
        }
        #expect(noise.ours < noise.zero / 2)
        #expect(noise.ours < noise.again / 2)
    }

    @Test(arguments: rates) func `there is no click at the seams`(rate: Int) {
        let signal = CodecTest.speechLike(rate: rate, seconds: 4, seed: 7)
        let size = rate / 50
        let lost = losses(packetCount: signal.count / size, percent: 10, seed: 11)
        let ours = concealed(signal, format: AudioFormat(sampleRate: rate)) { lost.contains($0) }
        let zero = zeroFilled(signal, size: size) { lost.contains($0) }
        func seams(_ output: [Int16]) -> Int {
            var largest = 0
            for packet in lost {
                for seam in [packet * size, (packet + 1) * size] where seam > 0 && seam < output.count {
                    largest = max(largest, abs(Int(output[seam]) - Int(output[seam - 1])))
                }
            }
            return largest
        }
        #expect(CodecTest.largestStep(ours) <= CodecTest.largestStep(signal) * 5 / 4)
        #expect(seams(ours) <= CodecTest.largestStep(signal))
        #expect(rate < 44100 || seams(ours) < seams(zero))
    }

    @Test(arguments: rates) func `a long gap fades to silence at 60 ms and comes back smoothly`(rate: Int) {
        let signal = CodecTest.tone(300, rate: rate, count: rate)
        let size = rate / 50
        let output = concealed(signal, format: AudioFormat(sampleRate: rate)) { (10..<20).contains($0) }
        func level(_ from: Int, _ until: Int) -> Double {
            let range = 10 * size + from * rate / 1000..<10 * size + until * rate / 1000
            return (CodecTest.energy(output[range]) / Double(range.count)).squareRoot() / 7071
        }
        #expect(abs(level(0, 10) - 1) < 0.05)
        #expect(abs(level(20, 30) - 0.7) < 0.08)
        #expect(abs(level(40, 50) - 0.3) < 0.08)
        #expect(level(60, 200) == 0)
        #expect(CodecTest.largestStep(output) <= CodecTest.largestStep(signal) * 5 / 4)
        #expect(output.dropFirst(22 * size) == signal.dropFirst(22 * size))
    }

    @Test func `without loss nothing is changed`() {
        let signal = CodecTest.speechLike(rate: 8000, seconds: 1)
        #expect(concealed(signal, format: AudioFormat(sampleRate: 8000)) { _ in false } == signal)
    }

    @Test func `both channels are concealed each as itself`() {
        let left = CodecTest.tone(400, rate: 44100, count: 44100)
        let right = CodecTest.tone(500, rate: 44100, count: 44100, amplitude: 5000)
        let signal = zip(left, right).flatMap { [$0, $1] }
        let output = concealed(signal, format: AudioFormat(sampleRate: 44100, channelCount: 2)) { $0 == 10 }
        let range = 10 * 882..<10 * 882 + 441
        #expect(CodecTest.signalToNoise(left[range], range.map { output[2 * $0] }) > 15)
        #expect(CodecTest.signalToNoise(right[range], range.map { output[2 * $0 + 1] }) > 15)
    }

    @Test func `before any audio and after a reset a gap is silent`() {
        let concealer = LossConcealer(format: AudioFormat(sampleRate: 8000))
        var block = [Int16](repeating: 5, count: 160)
        func conceal() -> [Int16] {
            var samples = block.mutableSpan
            concealer.conceal(frameCount: 160, into: &samples)
            return block
        }
        #expect(conceal().allSatisfy { $0 == 0 })
        block = CodecTest.tone(300, rate: 8000, count: 160)
        var samples = block.mutableSpan
        concealer.receive(&samples, frameCount: 160)
        concealer.reset()
        #expect(conceal().allSatisfy { $0 == 0 })
    }

    @Test(arguments: [1, 7, 80, 400, 5000]) func `blocks of any size do`(size: Int) {
        var random = CodecTestRandom(seed: UInt64(size))
        let concealer = LossConcealer(format: AudioFormat(sampleRate: 16000))
        for _ in 0..<200 {
            var block = (0..<size).map { _ in Int16.random(in: .min ... .max, using: &random) }
            var samples = block.mutableSpan
            if Bool.random(using: &random) {
                concealer.conceal(frameCount: size, into: &samples)
            } else {
                concealer.receive(&samples, frameCount: size)
            }
        }
    }

    @Test func `a codec's decoder conceals what it decoded`() throws {
        let signal = CodecTest.tone(440, rate: 8000, count: 1600)
        let decoder = try G711Codec(.aLaw).makeDecoder(channelCount: 1)
        for packet in try G711Codec(.aLaw).makeEncoder(EncoderConfiguration()).packets(of: signal) {
            _ = decoder.samples(of: packet)
        }
        let next = CodecTest.tone(440, rate: 8000, count: 1680)[1600...]
        #expect(CodecTest.signalToNoise(next, decoder.concealed(160)) > 15)
    }
}
