import Foundation
import Testing

@testable import MediaEngine

/// The fixtures were written by ffmpeg 5.1 (`-c:a CODING`) from these samples.
private let ramp: [Int16] = [0, 1, -1, 256, -256, 1000, -1000, 32767, -32768, 12345, -23456, 8192]

@Suite struct WAVReaderTests {
    @Test(arguments: ["pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"])
    func `codings that hold 16 bits give them back exactly`(coding: String) throws {
        let (format, samples) = try WAVFile.read(TestFiles.fixture("wav/\(coding).wav"))
        #expect(format == AudioFormat(sampleRate: 8000, channelCount: 2))
        #expect(samples == ramp)
    }

    @Test func `8-bit samples are unsigned`() throws {
        let (_, samples) = try WAVFile.read(TestFiles.fixture("wav/pcm_u8.wav"))
        #expect(samples == ramp.map { ($0 >> 8) << 8 })
    }

    @Test func `extensible, RF64 and streamed headers are understood`() throws {
        let six = try WAVFile.read(TestFiles.fixture("wav/six.wav"))
        #expect(six.0.channelCount == 6 && six.1 == ramp)
        #expect(try WAVFile.read(TestFiles.fixture("wav/rf64.wav")).1 == ramp)
        let streamed = try WAVReader(path: TestFiles.fixture("wav/streamed.wav"))
        #expect(streamed.header.declaredByteCount == nil && !streamed.isTruncated && streamed.frameCount == 12)
        #expect(try WAVFile.read(TestFiles.fixture("wav/streamed.wav")).1 == ramp)
    }

    /// Source: ITU-T G.711; the tables are those of another implementation.
    @Test func `every code of G.711 is expanded as the recommendation says`() throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: TestFiles.fixture("Codecs/decode.json")))
        let tables = try JSONDecoder().decode([String: [Int16]].self, from: bytes)
        for (name, coding) in [("alaw", WAVSampleCoding.aLaw), ("ulaw", WAVSampleCoding.muLaw)] {
            let table = try #require(tables[name])
            var samples = [Int16](repeating: 0, count: 256)
            let codes = (0...255).map(UInt8.init)
            codes.withUnsafeBytes { codes in samples.withUnsafeMutableBufferPointer { coding.decode(codes, into: $0) } }
            #expect(samples == table)
        }
    }

    @Test func `floats are clipped, and what is no number is silence`() throws {
        let values: [Float] = [2, -2, .nan, .infinity, -.infinity, 0.5, 1e-9]
        let bytes = values.flatMap { withUnsafeBytes(of: $0.bitPattern.littleEndian, Array.init) }
        let reader = try WAVReader(bytes: wav(tag: 3, bits: 32, data: bytes))
        #expect(try samples(reader) == [32767, -32768, 0, 32767, -32768, 16384, 0])
    }

    @Test func `chunks before the samples are skipped, odd ones with their pad byte`() throws {
        let extra = chunk("LIST", [1, 2, 3]) + chunk("fact", [0, 0, 0, 0]) + chunk("junk", [])
        let reader = try WAVReader(bytes: wav(extra: extra, data: [1, 0, 2, 0], after: chunk("LIST", [9, 9, 9, 9])))
        #expect(try samples(reader) == [1, 2])
        #expect(!reader.isTruncated)
    }

    struct Refusal: CustomTestStringConvertible, Sendable {
        let bytes: [UInt8]
        let code: WAVFault
        let testDescription: String
        init(_ testDescription: String, _ bytes: [UInt8], _ code: WAVFault) {
            (self.testDescription, self.bytes, self.code) = (testDescription, bytes, code)
        }
    }

    @Test(arguments: [
        Refusal("empty", [], .empty),
        Refusal("one byte", [0x52], .truncatedHeader),
        Refusal("text", Array("hello, this is no wave file".utf8), .notWAV),
        Refusal("AVI", Array("RIFF\u{20}\u{0}\u{0}\u{0}AVI LIST".utf8), .notWAV),
        Refusal("no channels", wav(channels: 0, data: [1, 2]), .unsupported),
        Refusal("too many channels", wav(channels: 65535, data: [1, 2]), .unsupported),
        Refusal("no rate", wav(rate: 0, data: [1, 2]), .unsupported),
        Refusal("no bits", wav(bits: 0, data: [1, 2]), .unsupported),
        Refusal("40 bits", wav(bits: 40, data: [1, 2]), .unsupported),
        Refusal("16-bit floats", wav(tag: 3, bits: 16, data: [1, 2]), .unsupported),
        Refusal("ADPCM", wav(tag: 2, bits: 4, data: [1, 2]), .unsupported),
        Refusal("MP3", wav(tag: 0x55, data: [1, 2]), .unsupported),
        Refusal("samples before the format", Array("RIFF\u{20}\0\0\0WAVEdata\u{4}\0\0\0\0\0\0\0".utf8), .unsupported),
        Refusal("chunk longer than the file", Array("RIFF\u{20}\0\0\0WAVEjunk\u{7f}\0\0\0abc".utf8), .truncatedHeader),
    ])
    func `what cannot be read is refused with a remedy`(refusal: Refusal) throws {
        let error = try #require(throws: WAVError.self) { try WAVReader(bytes: refusal.bytes, name: "x.wav") }
        #expect(error.code == refusal.code)
        #expect(error.message.hasPrefix("x.wav") && error.message.filter { $0 == "." }.count >= 2)
    }

    @Test func `a file cut off at any byte is refused, or plays the frames that are there`() throws {
        let whole = try TestFiles.bytes(TestFiles.fixture("wav/pcm_s24le.wav"))
        let start = whole.count - ramp.count * 3
        for count in 0..<whole.count {
            let cut = Array(whole[..<count])
            guard count >= start else {
                #expect(throws: WAVError.self) { try WAVReader(bytes: cut) }
                continue
            }
            let reader = try WAVReader(bytes: cut)
            #expect(reader.isTruncated)
            let frames = (count - start) / 6
            #expect(reader.frameCount == frames)
            #expect(try samples(reader) == Array(ramp[..<(frames * 2)]))
        }
    }

    @Test func `a data size of zero is open only where nothing says otherwise`() throws {
        #expect(try samples(try WAVReader(bytes: wav(riff: 36, data: [1, 0], declared: 0))) == [1])
        #expect(try samples(try WAVReader(bytes: wav(riff: 0, data: [1, 0], declared: 0))) == [1])
        // SoX, through a pipe: as many whole frames as 0x7FFFF000 bytes hold.
        for channels in [1, 3] {
            let open = 0x7FFF_F000 / (2 * channels) * 2 * channels
            let bytes = wav(riff: open + 36, channels: channels, data: [1, 0, 2, 0, 3, 0], declared: open)
            let reader = try WAVReader(bytes: bytes)
            #expect(reader.header.declaredByteCount == nil && !reader.isTruncated)
            #expect(try samples(reader) == [1, 2, 3])
        }
        let empty = wav(data: [], after: chunk("LIST", [1, 0, 2, 0]))
        #expect(try samples(try WAVReader(bytes: empty)).isEmpty)
    }

    @Test(arguments: 0..<20) func `random bytes and random damage never trap`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let whole = try TestFiles.bytes(TestFiles.fixture("wav/six.wav"))
        for _ in 0..<200 {
            var bytes = whole
            for _ in 0..<4 {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? samples(try WAVReader(bytes: bytes))
            let noise = (0..<64).map { _ in UInt8.random(in: 0...255, using: &generator) }
            _ = try? samples(try WAVReader(bytes: Array("RIFF".utf8) + noise.prefix(4) + Array("WAVE".utf8) + noise))
        }
    }

    @Test(.enabled(if: TestFiles.fetchedCorpora != nil, "needs shared/corpora/fetched"))
    func `files that broke other parsers are read or refused`() throws {
        let folder = try #require(TestFiles.fetchedCorpora).appendingPathComponent("pjsip-fuzz/audio")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!names.isEmpty)
        for name in names { _ = try? WAVFile.read(folder.appendingPathComponent(name).path) }
    }

    @Test func `a missing file, a directory and a long file are refused`() throws {
        #expect(try #require(throws: WAVError.self) { try WAVReader(path: "/no/such.wav") }.code == .unreadable)
        #expect(try #require(throws: WAVError.self) { try WAVReader(path: "/tmp") }.code == .unreadable)
        let path = TestFiles.fixture("wav/pcm_s16le.wav")
        #expect(try #require(throws: WAVError.self) { try WAVFile.read(path, limit: 11) }.code == .tooLarge)
    }

    /// Bytes of which nobody knows how many there are, as of a pipe.
    private final class Stream: ByteSource {
        let name = "stream"
        let byteCount: Int? = nil
        private let memory: MemoryByteSource

        init(_ bytes: [UInt8]) {
            memory = MemoryByteSource(bytes, name: "stream")
        }

        func read(into target: UnsafeMutableRawBufferPointer) throws(WAVError) -> Int { try memory.read(into: target) }
        func seek(to offset: Int) -> Bool { false }
    }

    @Test(arguments: [1 << 62, 1 << 33, 1 << 33 - 1]) func `a stream of days does not say how long it is`(
        claimed: Int
    ) throws {
        let whole = wav(bits: 8, data: [0x81, 0x82, 0x83, 0x84])
        let sizes = little(0, 8) + little(claimed, 8) + little(0, 12)
        let long = [0xFF, 0xFF, 0xFF, 0xFF] as [UInt8]
        let bytes =
            Array("RF64".utf8) + long + Array("WAVE".utf8) + chunk("ds64", sizes) + whole[12..<40] + long + whole[44...]
        let reader = try WAVReader(source: Stream(bytes))
        let isCounted = claimed < WAVReader.largestFrameCount
        #expect(reader.frameCount == (isCounted ? claimed : nil) && reader.format.sampleRate == 8000)
        let feed = WAVFeed(reader, format: AudioFormat(sampleRate: 48_000))
        #expect(feed.frameCount == (isCounted ? 6 * claimed : nil))
        while !feed.isComplete { feed.serve() }
        var target = [Int16](repeating: 0, count: 100)
        var span = target.mutableSpan
        #expect(feed.read(into: &span) == 24)
    }

    @Test func `rewinding gives the samples again`() throws {
        let reader = try WAVReader(path: TestFiles.fixture("wav/pcm_s16le.wav"))
        #expect(try samples(reader) == ramp)
        try reader.rewind()
        #expect(try samples(reader) == ramp)
    }
}

private func samples(_ reader: WAVReader) throws -> [Int16] {
    try WAVFile.readAll(reader, limit: 1 << 20, name: "test")
}

private func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 0xFF) } }

private func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + little(content.count, 4) + content + (content.count % 2 == 1 ? [0] : [])
}

/// A WAV file by the book (IBM and Microsoft, 1991), with whatever must be wrong in it.
private func wav(
    riff: Int? = nil,
    tag: Int = 1,
    channels: Int = 1,
    rate: Int = 8000,
    bits: Int = 16,
    extra: [UInt8] = [],
    data: [UInt8],
    declared: Int? = nil,
    after: [UInt8] = []
) -> [UInt8] {
    let frame = (bits + 7) / 8 * channels
    let format =
        little(tag, 2) + little(channels, 2) + little(rate, 4) + little(rate * frame, 4) + little(frame, 2)
        + little(bits, 2)
    let body =
        Array("WAVE".utf8) + chunk("fmt ", format) + extra + Array("data".utf8)
        + little(declared ?? data.count, 4) + data + after
    return Array("RIFF".utf8) + little(riff ?? body.count, 4) + body
}
