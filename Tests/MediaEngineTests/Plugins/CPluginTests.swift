import CMediaPlugin
import CTestPlugin
import Testing

@testable import MediaEngine

/// The C side counts what is alive in a global: one test after the other.
@Suite(.serialized) struct CPluginTests {
    private func registry(
        _ name: String,
        _ initialize: @escaping @convention(c) @Sendable (OpaquePointer?) -> Void
    ) -> PluginRegistry {
        var registry = PluginRegistry.standard()
        registry.load(name, initialize)
        return registry
    }

    @Test func `a codec in C encodes and decodes, and is freed`() throws {
        let alive = libmstest_alive_count()
        do {
            let codec = try registry("libmstest", libmstest_init).codec(named: "x-invert")
            #expect(codec.description.rtpmap == "X-INVERT/16000")
            #expect(codec.description.format == AudioFormat(sampleRate: 16000))
            #expect(codec.receiveParameters(for: EncoderConfiguration()) == "mode=inverted")
            let signal = CodecTest.tone(440, rate: 16000, count: 3200)
            let packets = try codec.makeEncoder(EncoderConfiguration()).packets(of: signal)
            let decoder = try codec.makeDecoder(channelCount: 1)
            #expect(packets.count == 10)
            #expect(packets[0][0] == ~UInt8(truncatingIfNeeded: signal[0] >> 8))
            #expect(packets.flatMap { decoder.samples(of: $0) } == signal)
            // Without a callback of its own, the engine's concealment continues the tone.
            #expect(CodecTest.energy(decoder.concealed(160)) / 160 > 1_000_000)
            #expect(libmstest_alive_count() == alive + 1)
        }
        #expect(libmstest_alive_count() == alive)
    }

    @Test func `a codec in C replaces a built-in one and conceals by itself`() throws {
        let registry = registry("libmspcmu", libmspcmu_init)
        let entry = try #require(registry.codecs.first { $0.registeredBy == "libmspcmu" })
        #expect(entry.overrides == ["built-in"])
        let codec = try registry.codec(named: "PCMU")
        let packets = try codec.makeEncoder(EncoderConfiguration()).packets(of: [Int16](repeating: 9, count: 160))
        #expect(packets == [[UInt8](repeating: 0x55, count: 160)])
        // It writes half of what was asked; the rest is silence.
        let concealed = try codec.makeDecoder(channelCount: 1).concealed(160)
        #expect(concealed == [Int16](repeating: 77, count: 80) + [Int16](repeating: 0, count: 80))
    }

    @Test func `a reload runs the init function again`() throws {
        var registry = registry("libmstest", libmstest_init)
        registry.reload()
        #expect(registry.codecs.filter { $0.registeredBy == "libmstest" }.count == 1)
        #expect(registry.plugins.last?.summary == "registered X-INVERT/16000")
    }

    @Test func `unsound descriptions are refused, each with its reason`() throws {
        let registry = registry("libmsbad", libmsbad_init)
        let plugin = try #require(registry.plugins.last)
        #expect(libmsbad_accepted_count() == 0)
        // One of them came without a registry to note it in.
        #expect(plugin.errors.count == Int(libmsbad_count()) - 1)
        #expect(plugin.state == .faulty)
        #expect(plugin.codecs.isEmpty)
        #expect(plugin.errors.contains("X-BAD: sample rate in Hz 7999 is not 8000 to 192000 in steps of 100."))
        #expect(plugin.errors.contains { $0.hasPrefix("It was built for plugin ABI 2") })
    }

    @Test func `counts out of range are not believed`() throws {
        let registry = registry("libmsliar", libmsliar_init)
        let codec = try registry.codec(named: "X-LIAR")
        let encoder = try codec.makeEncoder(EncoderConfiguration())
        for sample in [-1, 0, 1] as [Int16] {
            #expect(encoder.packets(of: [Int16](repeating: sample, count: 320)) == [[]])
        }
        let decoder = try codec.makeDecoder(channelCount: 1)
        for first in [0xFF, 0xFE] as [UInt8] {
            #expect(decoder.frames(of: [first, 0]) == 0)
        }
        for second in [0, 1, 2] as [UInt8] {
            #expect(decoder.samples(of: [10, second]).isEmpty)
        }
        #expect(decoder.frames(of: []) == 0)
        #expect(decoder.concealed(160) == [Int16](repeating: 0, count: 160))
    }

    @Test func `a plugin that makes no encoder or decoder is an error`() throws {
        let codec = try registry("libmsliar", libmsliar_init).codec(named: "X-NULL")
        let first = #expect(throws: CodecError.self) { try codec.makeEncoder(EncoderConfiguration()) }
        let second = #expect(throws: CodecError.self) { try codec.makeDecoder(channelCount: 1) }
        #expect(first?.code == .libraryFailure && second?.code == .libraryFailure)
    }

    @Test func `a registry used after its call refuses`() {
        let registry = registry("libmslate", libmslate_init)
        #expect(libmslate_use_now() == MS_PLUGIN_REFUSED)
        #expect(registry.plugins.last?.state == .stub)
        withExtendedLifetime(registry) {}
    }
}
