import CMediaPlugin
import Foundation
import Testing

@testable import MediaEngine

/// Codecs behind package traits: `swift test --traits GSM,G729` runs what is skipped without.
@Suite struct OptionalCodecTests {
    private static let hasGSM = PluginRegistry.standard().codec(staticPayloadType: 3) != nil
    private static let hasG729 = PluginRegistry.standard().codec(staticPayloadType: 18) != nil

    private func roundTrip(_ name: String, packetBytes: Int) throws {
        let codec = try PluginRegistry.standard().codec(named: name)
        let signal = CodecTest.speechLike(rate: 8000, seconds: 2)
        let packets = try codec.makeEncoder(EncoderConfiguration()).packets(of: signal)
        #expect(packets.allSatisfy { $0.count == packetBytes })
        let decoder = try codec.makeDecoder(channelCount: 1)
        let output = packets.flatMap { decoder.samples(of: $0) }
        let delay = CodecTest.delay(of: Array(output.prefix(8000)), against: Array(signal.prefix(8000)), most: 200)
        #expect(CodecTest.signalToNoise(signal, output.dropFirst(delay)) > 3)
        #expect(CodecTest.energy(decoder.concealed(160)) > 0)
        decoder.reset()

        var random = CodecTestRandom(seed: 8)
        for _ in 0..<300 {
            let count = Int.random(in: 0...200, using: &random)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(decoder.samples(of: bytes).count == decoder.frames(of: bytes))
        }
    }

    @Test(.enabled(if: hasGSM, "needs the package trait GSM")) func `GSM goes through`() throws {
        try roundTrip("GSM", packetBytes: 33)
        let codec = try PluginRegistry.standard().codec(named: "gsm")
        var configuration = EncoderConfiguration()
        configuration.ptime = .milliseconds(30)
        #expect(throws: CodecError.self) { try codec.makeEncoder(configuration) }
        #expect(try codec.makeDecoder(channelCount: 1).frames(of: [UInt8](repeating: 0, count: 33)) == 0)
    }

    @Test(.enabled(if: hasG729, "needs the package trait G729")) func `G729 goes through`() throws {
        try roundTrip("G729", packetBytes: 20)
        let codec = try PluginRegistry.standard().codec(named: "G729")
        #expect(codec.receiveParameters(for: EncoderConfiguration()) == "annexb=no")
        let decoder = try codec.makeDecoder(channelCount: 1)
        // Two speech frames and a comfort noise frame: RFC 3551, section 4.5.6.
        #expect(decoder.frames(of: [UInt8](repeating: 0, count: 22)) == 240)
        #expect(decoder.frames(of: [UInt8](repeating: 0, count: 21)) == 0)
    }

    @Test(.enabled(if: !hasG729, "runs where the package trait G729 is off"))
    func `without its trait G729 is missing, and the remedy names the trait`() throws {
        let error = #expect(throws: CodecError.self) { try PluginRegistry.standard().codec(named: "G729") }
        #expect(error?.message.contains("--traits default,G729") == true)
    }

    @Test(.enabled(if: !hasGSM, "runs where the package trait GSM is off"))
    func `without its trait GSM is missing, and the remedy names the trait`() throws {
        let error = #expect(throws: CodecError.self) { try PluginRegistry.standard().codec(named: "GSM") }
        #expect(error?.message.contains("--traits default,GSM") == true)
    }
}
