@testable import MediaEngine
import Testing

@Suite struct L16CodecTests {
    @Test func `samples travel in network byte order`() throws {
        var configuration = EncoderConfiguration()
        configuration.channelCount = 2
        let codec = L16Codec(sampleRate: 8000, channelCount: 2)
        let samples = (0..<160).map { Int16($0 * 201 - 16000) }
        let packets = try codec.makeEncoder(configuration).packets(of: samples)
        #expect(packets.count == 1)
        let big = samples.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        #expect(packets.first == big)
        #expect(try codec.makeDecoder(channelCount: 2).samples(of: big) == samples)
    }

    /// RFC 3551, table 4.
    @Test func `44100 Hz has its static payload types and others have none`() {
        #expect(L16Codec().description.staticPayloadType == 11)
        #expect(L16Codec(sampleRate: 44100, channelCount: 2).description.staticPayloadType == 10)
        #expect(L16Codec(sampleRate: 48000).description.staticPayloadType == nil)
        #expect(L16Codec(sampleRate: 44100, channelCount: 2).description.rtpmap == "L16/44100/2")
    }

    @Test(arguments: [8000, 16000, 44100, 48000, 96000], [1, 2])
    func `the longest packet fits into a payload`(rate: Int, channelCount: Int) throws {
        let codec = L16Codec(sampleRate: rate, channelCount: channelCount)
        var configuration = EncoderConfiguration()
        configuration.channelCount = channelCount
        configuration.ptime = codec.description.ptimes.upperBound
        let encoder = try codec.makeEncoder(configuration)
        let packets = encoder.packets(of: [Int16](repeating: 7, count: encoder.frameCount * channelCount))
        #expect(packets.map(\.count) == [encoder.frameCount * channelCount * 2])
    }

    @Test func `half a frame is refused`() throws {
        let decoder = try L16Codec(sampleRate: 44100, channelCount: 2).makeDecoder(channelCount: 2)
        #expect(decoder.samples(of: [1, 2, 3]).isEmpty)
        #expect(decoder.samples(of: [1, 2]).isEmpty)
        #expect(decoder.samples(of: [1, 2, 3, 4]) == [0x0102, 0x0304])
    }
}
