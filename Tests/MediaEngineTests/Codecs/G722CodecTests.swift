import Foundation
import Testing

@testable import MediaEngine

@Suite struct G722CodecTests {
    private func samples(_ name: String) throws -> [Int16] {
        let bytes = try CodecTest.fixture(name)
        return stride(from: 0, to: bytes.count, by: 2).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }
    }

    private func decoded(_ payload: [UInt8]) throws -> [Int16] {
        let decoder = try G722Codec().makeDecoder(channelCount: 1)
        return stride(from: 0, to: payload.count, by: 160).flatMap { start in
            decoder.samples(of: Array(payload[start..<min(start + 160, payload.count)]))
        }
    }

    /// Fixtures/Codecs/README.md: by ffmpeg and spandsp.
    @Test func `the encoder's bytes are those of two other implementations`() throws {
        let packets = try G722Codec().makeEncoder(EncoderConfiguration()).packets(of: samples("g722-input.pcm"))
        #expect(try Array(packets.joined()) == CodecTest.fixture("g722-input.g722"))
    }

    /// Fixtures/Codecs/README.md: by ffmpeg.
    @Test(arguments: [("g722-input.g722", "g722-output.pcm"), ("g722-random.g722", "g722-random.pcm")])
    func `the decoder's samples are those of another implementation`(payload: String, pcm: String) throws {
        #expect(try decoded(CodecTest.fixture(payload)) == samples(pcm))
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/ffmpeg"), "needs ffmpeg"))
    func `what this encoder makes ffmpeg plays, and the other way round`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "g722-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func ffmpeg(_ arguments: [String]) throws {
            let process = try Process.run(
                URL(filePath: "/usr/bin/ffmpeg"),
                arguments: ["-v", "error", "-y", "-nostdin"] + arguments
            )
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
        }
        let signal = CodecTest.speechLike(rate: 16000, seconds: 2, seed: 4)
        let payload = try G722Codec().makeEncoder(EncoderConfiguration()).packets(of: signal).joined()
        let ours = folder.appending(path: "ours.g722")
        let played = folder.appending(path: "played.pcm")
        let input = folder.appending(path: "input.pcm")
        let theirs = folder.appending(path: "theirs.g722")
        try Data(payload).write(to: ours)
        try signal.withUnsafeBytes { try Data($0).write(to: input) }
        try ffmpeg(["-f", "g722", "-i", ours.path(), "-f", "s16le", played.path()])
        try ffmpeg(["-f", "s16le", "-ar", "16000", "-ac", "1", "-i", input.path(), "-f", "g722", theirs.path()])
        #expect(try Data(contentsOf: theirs) == Data(payload))
        let output = try decoded(Array(payload))
        #expect(try Data(contentsOf: played) == output.withUnsafeBytes { Data($0) })
        // 22 samples: the two filter banks.
        #expect(CodecTest.signalToNoise(signal, output.dropFirst(22)) > 18)
    }

    /// RFC 3551, section 4.5.2.
    @Test func `the clock rate is not the sample rate`() throws {
        let description = G722Codec().description
        #expect(description.clockRate == 8000)
        #expect(description.format == AudioFormat(sampleRate: 16000))
        #expect(description.rtpmap == "G722/8000")
        #expect(try G722Codec().makeEncoder(EncoderConfiguration()).frameCount == 320)
    }

    @Test func `a reset decoder is a new one`() throws {
        let payload = try CodecTest.fixture("g722-random.g722")
        let decoder = try G722Codec().makeDecoder(channelCount: 1)
        _ = decoder.samples(of: payload, room: 8000)
        decoder.reset()
        #expect(try decoder.samples(of: payload, room: 8000) == samples("g722-random.pcm"))
    }
}
