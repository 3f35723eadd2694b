import Foundation
import Testing

@testable import MediaEngine

@Suite struct OpusDecoderTests {
    static let streams = [
        "auto-audio-20-st", "auto-dtx-20", "auto-lowbw-80", "auto-voip-20", "celt-fb-2.5", "celt-fb-20-cbr",
        "celt-nb-20", "celt-wb-5", "hybrid-fb-20", "hybrid-swb-10", "silk-nb-20", "silk-nb-60", "silk-wb-10",
        "silk-wb-40-dtx",
    ]

    /// corpora own/opus: repeat u32 length, u32 final range, packet, all big-endian; made by libopus's own encoder.
    private func packets(_ name: String) throws -> [(range: UInt32, payload: [UInt8])] {
        let bytes = try CodecTest.fixture("opus/\(name).bit")
        func word(_ offset: Int) -> UInt32 { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        var result: [(UInt32, [UInt8])] = []
        var offset = 0
        while offset + 8 <= bytes.count {
            let length = Int(word(offset))
            result.append((word(offset + 4), Array(bytes[offset + 8..<offset + 8 + length])))
            offset += 8 + length
        }
        return result
    }

    @Test(arguments: streams) func `every packet ends in the encoder's range state`(name: String) throws {
        let decoder = try OpusDecoder(channelCount: 2)
        let packets = try packets(name)
        #expect(packets.count > 50)
        for (index, packet) in packets.enumerated() {
            let samples = decoder.samples(of: packet.payload)
            #expect(samples.count == 2 * decoder.frameCount(of: packet.payload.span))
            #expect(decoder.finalRange == packet.range, "packet \(index)")
        }
    }

    @Test func `a lost packet is recovered from the next much better than it is concealed`() throws {
        var configuration = EncoderConfiguration()
        configuration.usesFEC = true
        configuration.expectedLossPercent = 20
        configuration.bitrate = 32000
        let packets = try OpusCodec().makeEncoder(configuration)
            .packets(of: CodecTest.speechLike(rate: 48000, seconds: 4))
        let reference = try OpusDecoder(channelCount: 1)
        let whole = packets.map { reference.samples(of: $0) }
        var recoveredNoise = 0.0
        var concealedNoise = 0.0
        var recoveredCount = 0
        for loss in stride(from: 10, to: packets.count - 1, by: 7) {
            let decoder = try OpusDecoder(channelCount: 1)
            let concealer = try OpusDecoder(channelCount: 1)
            for packet in packets[loss - 8..<loss] {
                _ = decoder.samples(of: packet)
                _ = concealer.samples(of: packet)
            }
            let recovered = decoder.recovered(from: packets[loss + 1], frameCount: 960)
            guard !recovered.isEmpty else { continue }
            recoveredCount += 1
            recoveredNoise += CodecTest.energy(zip(whole[loss], recovered).map { $0 &- $1 })
            concealedNoise += CodecTest.energy(zip(whole[loss], concealer.concealed(960)).map { $0 &- $1 })
        }
        #expect(recoveredCount > 15)
        #expect(recoveredNoise < concealedNoise / 4)
    }

    @Test func `without FEC in the next packet there is nothing to recover`() throws {
        let packets = try OpusCodec().makeEncoder(EncoderConfiguration())
            .packets(of: CodecTest.speechLike(rate: 48000, seconds: 1))
        let decoder = try OpusDecoder(channelCount: 1)
        #expect(packets.allSatisfy { decoder.recovered(from: $0, frameCount: 960).isEmpty })
    }

    @Test func `concealment continues the sound and any length of it is written`() throws {
        let encoder = try OpusCodec().makeEncoder(EncoderConfiguration())
        let decoder = try OpusDecoder(channelCount: 1)
        for packet in encoder.packets(of: CodecTest.tone(300, rate: 48000, count: 48000)) {
            _ = decoder.samples(of: packet)
        }
        let first = decoder.concealed(960)
        #expect(CodecTest.energy(first) / 960 > 1_000_000)
        for count in [1, 119, 121, 441, 5761, 20000] {
            #expect(decoder.concealed(count).count == count)
        }
        #expect(CodecTest.energy(decoder.concealed(4800)) / 4800 < 10_000)
    }

    @Test func `after a reset the past is forgotten`() throws {
        let packets = try packets("silk-wb-10")
        let used = try OpusDecoder(channelCount: 1)
        for packet in packets { _ = used.samples(of: packet.payload) }
        used.reset()
        let new = try OpusDecoder(channelCount: 1)
        for packet in packets.prefix(50) {
            #expect(used.samples(of: packet.payload) == new.samples(of: packet.payload))
        }
    }

    @Test func `no bytes make it trap`() throws {
        var random = CodecTestRandom(seed: 99)
        let decoder = try OpusDecoder(channelCount: 2)
        for _ in 0..<600 {
            let most = Bool.random(using: &random) ? 60 : 4000
            let count = Int.random(in: 0...most, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = decoder.frameCount(of: bytes.span)
            #expect(decoder.samples(of: bytes).count <= 5760 * 2)
            _ = decoder.recovered(from: bytes, frameCount: 960)
        }
    }

    @Test(arguments: ["silk-wb-10", "auto-lowbw-80", "hybrid-fb-20"])
    func `every truncation of a packet is taken or refused`(name: String) throws {
        let decoder = try OpusDecoder(channelCount: 1)
        for packet in try packets(name).prefix(6) {
            for count in 0..<packet.payload.count {
                _ = decoder.samples(of: Array(packet.payload[..<count]))
                _ = decoder.recovered(from: Array(packet.payload[..<count]), frameCount: 960)
            }
        }
        #expect(decoder.samples(of: []).isEmpty)
    }
}
