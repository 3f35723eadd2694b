import Foundation
import Testing

@testable import MediaEngine

@Suite struct OpusCodecTests {
    private func encoder(_ change: (inout EncoderConfiguration) -> Void = { _ in }) throws -> any AudioEncoder {
        var configuration = EncoderConfiguration()
        change(&configuration)
        return try OpusCodec().makeEncoder(configuration)
    }

    @Test(arguments: [10, 20, 40, 60, 80, 100, 120]) func `every packet length goes through`(ptime: Int) throws {
        let encoder = try encoder { $0.ptime = .milliseconds(ptime) }
        let decoder = try OpusCodec().makeDecoder(channelCount: 1)
        let signal = CodecTest.speechLike(rate: 48000, seconds: 1.2)
        var output: [Int16] = []
        for packet in encoder.packets(of: signal) {
            #expect(decoder.frameCount(of: packet.span) == ptime * 48)
            output += decoder.samples(of: packet)
        }
        // libopus's algorithmic delay at 48 kHz: 6.5 ms.
        let delay = 312
        #expect(CodecTest.signalToNoise(signal, output.dropFirst(delay)) > 5)
    }

    @Test func `two channels stay two`() throws {
        let left = CodecTest.tone(440, rate: 48000, count: 48000)
        let right = CodecTest.tone(1000, rate: 48000, count: 48000)
        let samples = zip(left, right).flatMap { [$0, $1] }
        let encoder = try encoder {
            $0.channelCount = 2
            $0.bitrate = 96000
        }
        let decoder = try OpusCodec().makeDecoder(channelCount: 2)
        let output = encoder.packets(of: samples).flatMap { decoder.samples(of: $0) }
        let outLeft = stride(from: 0, to: output.count, by: 2).map { output[$0] }
        let outRight = stride(from: 1, to: output.count, by: 2).map { output[$0] }
        #expect(CodecTest.signalToNoise(left[4800..<40000], outLeft.dropFirst(4800 + 312)) > 12)
        #expect(CodecTest.signalToNoise(right[4800..<40000], outRight.dropFirst(4800 + 312)) > 12)
    }

    @Test func `only values that Opus has are taken`() {
        let wrong: [(inout EncoderConfiguration) -> Void] = [
            { $0.ptime = .milliseconds(30) }, { $0.ptime = .milliseconds(5) }, { $0.channelCount = 3 },
            { $0.channelCount = 0 }, { $0.bitrate = 5999 }, { $0.bitrate = 510_001 }, { $0.complexity = 11 },
            { $0.complexity = -1 }, { $0.expectedLossPercent = 101 },
        ]
        for change in wrong {
            #expect(throws: CodecError.self) { try encoder(change) }
        }
        #expect(throws: CodecError.self) { try OpusCodec().makeDecoder(channelCount: 0) }
    }

    @Test func `silence is left out with DTX and sent without`() throws {
        let silence = [Int16](repeating: 0, count: 48000 * 2)
        let skipped = try encoder { $0.usesDTX = true }.packets(of: silence).filter(\.isEmpty).count
        #expect(skipped > 70)
        #expect(try encoder().packets(of: silence).allSatisfy { !$0.isEmpty })
    }

    @Test func `a change of rate takes effect`() throws {
        let signal = CodecTest.speechLike(rate: 48000, seconds: 1)
        let encoder = try encoder { $0.bitrate = 64000 }
        let before = encoder.packets(of: signal).reduce(0) { $0 + $1.count }
        encoder.adapt(bitrate: 12000, usesFEC: false, expectedLossPercent: 0)
        let after = encoder.packets(of: signal).reduce(0) { $0 + $1.count }
        #expect(after < before / 2)
    }

    @Test func `what the receiver asks is what this encoder is told`() {
        var configuration = EncoderConfiguration()
        #expect(OpusCodec().receiveParameters(for: configuration) == "minptime=10;useinbandfec=1")
        configuration.channelCount = 2
        configuration.usesDTX = true
        #expect(OpusCodec().receiveParameters(for: configuration) == "minptime=10;stereo=1;useinbandfec=1;usedtx=1")
    }
}
