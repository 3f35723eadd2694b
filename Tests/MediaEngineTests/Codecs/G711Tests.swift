import Foundation
import Testing

@testable import MediaEngine

@Suite struct G711Tests {
    private struct Tables: Decodable {
        let alaw: [Int16]
        let ulaw: [Int16]
    }

    /// corpora own/g711/decode.json: computed from ITU-T G.711.
    private func tables() throws -> Tables {
        try JSONDecoder().decode(Tables.self, from: Data(try CodecTest.fixture("decode.json")))
    }

    private let everySample = (Int(Int16.min)...Int(Int16.max)).map { Int16($0) }
    private let everyCode = (0...255).map { UInt8($0) }

    private func encoded(_ codec: some AudioCodec) throws -> [UInt8] {
        // 65536 samples are no whole number of packets: 64 more samples of silence are.
        let samples = everySample + [Int16](repeating: 0, count: 64)
        let packets = try codec.makeEncoder(EncoderConfiguration()).packets(of: samples)
        return Array(packets.joined().prefix(65536))
    }

    @Test func `every A-law code decodes to the recommendation's value`() throws {
        #expect(try G711Codec(.aLaw).makeDecoder(channelCount: 1).samples(of: everyCode) == tables().alaw)
    }

    @Test func `every µ-law code decodes to the recommendation's value`() throws {
        #expect(try G711Codec(.muLaw).makeDecoder(channelCount: 1).samples(of: everyCode) == tables().ulaw)
    }

    /// corpora own/g711/alaw-encode.bin: equal to the sweep of the ITU-T software tool library.
    @Test func `every sample encodes to the A-law code of the ITU tool library`() throws {
        let codes = try encoded(G711Codec(.aLaw))
        #expect(try codes == CodecTest.fixture("alaw-encode.bin"))
    }

    /// ITU-T G.711, table 2a: 16 intervals per segment, whose last decision values these are (in 14-bit units); the
    /// innermost segment has one interval of 1 and 15 of 2.
    @Test func `every sample encodes to the µ-law code between whose decision values it lies`() throws {
        var decisionValues: [Int] = [0, 1]
        for step in 1...15 { decisionValues.append(1 + 2 * step) }
        for (width, last) in [(4, 95), (8, 223), (16, 479), (32, 991), (64, 2015), (128, 4063), (256, 8159)] {
            for step in (0..<16).reversed() { decisionValues.append(last - width * step) }
        }
        let codes = try encoded(G711Codec(.muLaw))
        for (index, code) in codes.enumerated() {
            let sample = index - 32768
            let magnitude = abs(sample)
            let interval = min(127, (decisionValues.lastIndex { $0 * 4 <= magnitude } ?? 0))
            let expected = UInt8(sample < 0 ? 0x7F - interval : 0xFF - interval)
            guard code != expected else { continue }
            // At a negative decision value itself, the neighbour is as near.
            let isTie = sample < 0 && decisionValues.contains { $0 * 4 == magnitude }
            #expect(isTie && abs(Int(code) - Int(expected)) == 1, "sample \(sample): \(code), not \(expected)")
        }
    }

    @Test func `a code survives decoding and encoding`() throws {
        let decoded = try G711Codec(.muLaw).makeDecoder(channelCount: 1).samples(of: everyCode)
        let padded = decoded + [Int16](repeating: 0, count: 64)
        let again = try G711Codec(.muLaw).makeEncoder(EncoderConfiguration()).packets(of: padded).joined().prefix(256)
        // 0x7F and 0xFF both mean zero.
        #expect(zip(everyCode, again).allSatisfy { $0 == $1 || ($0 == 0x7F && $1 == 0xFF) })
    }

    @Test(arguments: [10, 20, 30, 120]) func `a packet has the asked length`(milliseconds: Int) throws {
        var configuration = EncoderConfiguration()
        configuration.ptime = .milliseconds(milliseconds)
        #expect(try G711Codec(.muLaw).makeEncoder(configuration).frameCount == milliseconds * 8)
        #expect(try G711Codec(.aLaw).makeEncoder(configuration).frameCount == milliseconds * 8)
    }

    @Test func `a length that no packet has and a second channel are refused`() {
        var long = EncoderConfiguration()
        long.ptime = .milliseconds(130)
        var stereo = EncoderConfiguration()
        stereo.channelCount = 2
        for configuration in [long, stereo] {
            #expect(throws: CodecError.self) { try G711Codec(.muLaw).makeEncoder(configuration) }
            #expect(throws: CodecError.self) { try G711Codec(.aLaw).makeEncoder(configuration) }
        }
        #expect(throws: CodecError.self) { try G711Codec(.muLaw).makeDecoder(channelCount: 2) }
    }

    @Test func `a payload that does not fit is refused`() throws {
        let decoder = try G711Codec(.muLaw).makeDecoder(channelCount: 1)
        #expect(decoder.samples(of: everyCode, room: 255).isEmpty)
        #expect(decoder.samples(of: []).isEmpty)
    }
}
