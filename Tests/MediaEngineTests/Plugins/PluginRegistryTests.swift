import CMediaPlugin
import Testing

@testable import MediaEngine

@Suite struct PluginRegistryTests {
    private struct Codecs: MediaPlugin {
        var name = "extra"
        var codecs: [any AudioCodec] = [G711Codec(.muLaw)]
        var nested: [any MediaPlugin] = []

        func register(in registry: inout PluginRegistry) {
            for codec in codecs { registry.add(codec) }
            for plugin in nested { registry.load(plugin) }
        }
    }

    private func names(_ registry: PluginRegistry) -> [String] { registry.codecs.map(\.description.rtpmap) }

    @Test func `the standard registry has the built-in codecs in order of preference`() throws {
        let registry = PluginRegistry.standard()
        let builtIn = registry.codecs.filter { $0.registeredBy == "built-in" }.map(\.description.rtpmap)
        #expect(
            builtIn == [
                "opus/48000/2", "G722/8000", "PCMU/8000", "PCMA/8000", "L16/44100", "L16/44100/2", "L16/48000",
                "L16/48000/2", "L16/16000", "L16/8000",
            ]
        )
        #expect(registry.codecs.allSatisfy { $0.isEnabled && $0.overrides.isEmpty })
        #expect(registry.plugins.first?.state == .active)
    }

    @Test(arguments: [
        ("opus", "opus/48000/2"), ("OPUS", "opus/48000/2"), ("opus/48000", "opus/48000/2"), ("pcmu", "PCMU/8000"),
        ("G722", "G722/8000"), ("L16", "L16/44100"), ("l16/44100/2", "L16/44100/2"), ("L16/48000", "L16/48000"),
        ("L16/44100/1", "L16/44100"),
    ])
    func `a codec is found by its name, and by its rates`(name: String, rtpmap: String) throws {
        #expect(try PluginRegistry.standard().codec(named: name).description.rtpmap == rtpmap)
    }

    /// RFC 3551, tables 4 and 5.
    @Test(arguments: [(0, "PCMU"), (8, "PCMA"), (9, "G722"), (10, "L16"), (11, "L16")] as [(UInt8, String)])
    func `a static payload type names its codec`(type: UInt8, name: String) {
        #expect(PluginRegistry.standard().codec(staticPayloadType: type)?.description.name == name)
        #expect(PluginRegistry.standard().codec(staticPayloadType: 77) == nil)
    }

    @Test func `asking for an absent codec logs two lines and says what to do`() throws {
        let log = LogCapture()
        let registry = PluginRegistry.standard(logger: log.logger)
        let error = #expect(throws: CodecError.self) { try registry.codec(named: "SILK") }
        #expect(log.lines == ["Could not find encoder for SILK", "Could not find decoder for SILK"])
        #expect(error?.code == .unknownCodec)
        #expect(error?.message.contains("Use opus.") == true)
        let strange = #expect(throws: CodecError.self) { try registry.codec(named: "nonesuch") }
        #expect(strange?.message.contains("Choose from opus/48000/2, G722/8000") == true)
    }

    @Test(arguments: ["", "/", "opus/", "opus/x", "opus/48000/2/1", "opus/48000/1", "L16/12345", "é/\u{0}"])
    func `a name that makes no sense is not found`(name: String) {
        #expect(throws: CodecError.self) { try PluginRegistry.standard().codec(named: name) }
    }

    @Test func `a later registration wins in the same place, and says whom it replaced`() throws {
        var registry = PluginRegistry.standard()
        let before = names(registry)
        registry.load(Codecs())
        registry.load(Codecs(name: "third"))
        #expect(names(registry) == before)
        let entry = try #require(registry.codecs.first { $0.description.name == "PCMU" })
        #expect(entry.registeredBy == "third")
        #expect(entry.overrides == ["built-in", "extra"])
        #expect(registry.plugins.first { $0.name == "extra" }?.codecs == ["PCMU/8000"])
    }

    /// L16 by another description.
    private struct Described: AudioCodec {
        let description: CodecDescription

        func makeEncoder(_ configuration: EncoderConfiguration) throws(CodecError) -> any AudioEncoder {
            try L16Codec(sampleRate: 8000).makeEncoder(configuration)
        }

        func makeDecoder(channelCount: Int) throws(CodecError) -> any AudioDecoder {
            try L16Codec(sampleRate: 8000).makeDecoder(channelCount: channelCount)
        }
    }

    private static let narrow = AudioFormat(sampleRate: 8000)

    @Test(arguments: [
        CodecDescription(name: "x", clockRate: 0, format: narrow),
        CodecDescription(name: "x", clockRate: -8000, format: narrow),
        CodecDescription(name: "x", clockRate: 1 << 24, format: narrow),
        CodecDescription(name: "x", clockRate: 8000, format: AudioFormat(sampleRate: 0)),
        CodecDescription(name: "x", clockRate: 8000, format: AudioFormat(sampleRate: 8000, channelCount: 0)),
        CodecDescription(name: "", clockRate: 8000, format: narrow),
        CodecDescription(name: "a/b", clockRate: 8000, format: narrow),
        CodecDescription(name: "x", clockRate: 8000, format: narrow, staticPayloadType: 128),
        CodecDescription(name: "x", clockRate: 8000, format: narrow, defaultPtime: .zero),
        CodecDescription(name: "x", clockRate: 8000, format: narrow, ptimes: .zero ... .milliseconds(20)),
        CodecDescription(name: "x", clockRate: 8000, format: narrow, defaultPtime: .seconds(1)),
        CodecDescription(name: "x", clockRate: 8000, format: narrow, ptimeStep: .zero),
    ])
    func `a codec whose description cannot be right is refused, and that is told`(description: CodecDescription) {
        let log = LogCapture()
        var registry = PluginRegistry.standard(logger: log.logger)
        let before = names(registry)
        registry.load(Codecs(codecs: [Described(description: description), L16Codec(sampleRate: 32000)]))
        #expect(names(registry).count == before.count + 1)
        let plugin = registry.plugins.first { $0.name == "extra" }
        #expect(plugin?.errors.count == 1 && plugin?.errors.first?.contains("refused") == true)
        #expect(log.lines.count == 1)
        registry.add(Described(description: description))
        #expect(names(registry).count == before.count + 1)
    }

    @Test func `a bare name means the newest of its rates`() throws {
        var registry = PluginRegistry.standard()
        registry.load(Codecs(codecs: [L16Codec(sampleRate: 32000)]))
        #expect(try registry.codec(named: "L16").description.clockRate == 32000)
        #expect(try registry.codec(named: "L16/44100").description.clockRate == 44100)
    }

    @Test func `a copy changes on its own`() throws {
        let original = PluginRegistry.standard()
        var copy = original
        copy.load(Codecs())
        try copy.setEnabled(false, codecsNamed: "opus")
        #expect(original.plugins.count == copy.plugins.count - 1)
        #expect(try original.codec(named: "opus").description.name == "opus")
        #expect(original.codecs.allSatisfy { $0.overrides.isEmpty && $0.isEnabled })
    }

    @Test func `a disabled codec is not found, also after a reload, until it is enabled`() throws {
        var registry = PluginRegistry.standard()
        try registry.setEnabled(false, codecsNamed: "l16")
        registry.reload()
        let error = #expect(throws: CodecError.self) { try registry.codec(named: "L16/48000") }
        #expect(error?.message == "The codec L16/48000 is disabled. Enable it, or choose another.")
        #expect(registry.codec(staticPayloadType: 11) == nil)
        #expect(registry.codecs.filter { !$0.isEnabled }.count == 6)
        try registry.setEnabled(true, codecsNamed: "L16")
        #expect(try registry.codec(named: "L16").description.clockRate == 44100)
        #expect(throws: CodecError.self) { try registry.setEnabled(true, codecsNamed: "SILK") }
    }

    @Test func `a reload rebuilds the same list and logs what plugins lack`() {
        let log = LogCapture()
        var registry = PluginRegistry.standard(logger: log.logger)
        registry.load(Codecs())
        registry.add(L16Codec(sampleRate: 24000))
        let before = names(registry)
        #expect(log.lines.isEmpty)
        registry.reload()
        #expect(names(registry) == before)
        #expect(registry.plugins.map(\.name).suffix(2) == ["extra", "application"])
        #expect(log.lines.contains("Could not find encoder for SILK"))
        #expect(log.lines.contains("Could not find decoder for SILK"))
        let lacking = Set(log.lines.map { $0.split(separator: " ").last })
        #expect(log.lines.count == 2 * lacking.count)
    }

    @Test func `a plugin loaded twice is there once, last`() {
        var registry = PluginRegistry.standard()
        let count = registry.plugins.count
        registry.load(BuiltInCodecs())
        registry.load("libmssilk", libmssilk_init)
        #expect(registry.plugins.count == count)
        #expect(registry.plugins.suffix(2).map(\.name) == ["built-in", "libmssilk"])
        #expect(registry.codecs.allSatisfy { $0.overrides.isEmpty })
    }

    @Test func `what the application adds itself is listed as its own`() throws {
        var registry = PluginRegistry()
        registry.add(G711Codec(.muLaw))
        registry.add(G711Codec(.aLaw))
        #expect(names(registry) == ["PCMU/8000", "PCMA/8000"])
        #expect(registry.plugins.map(\.name) == ["application"])
        #expect(registry.plugins.map(\.summary) == ["registered PCMU/8000, PCMA/8000"])
    }

    @Test func `a plugin may load others, but not itself`() {
        var registry = PluginRegistry()
        let inner = Codecs(name: "inner", codecs: [G711Codec(.aLaw)])
        let selfish = Codecs(name: "outer", nested: [inner, Codecs(name: "outer")])
        registry.load(selfish)
        for _ in 0..<2 {
            #expect(registry.plugins.map(\.name) == ["outer", "inner"])
            #expect(registry.plugins.map(\.state) == [.faulty, .active])
            #expect(registry.plugins.first?.errors == ["The plugin outer is loaded already."])
            registry.reload()
        }
    }

    @Test func `an empty registry says that it is empty`() {
        let log = LogCapture()
        let error = #expect(throws: CodecError.self) { try PluginRegistry(logger: log.logger).codec(named: "opus") }
        #expect(error?.message == "There is no codec opus: none is registered. Load a plugin that offers it.")
    }
}

@Suite struct PluginStubTests {
    typealias Initialize = @convention(c) @Sendable (OpaquePointer?) -> Void

    static let stubs: [(String, Initialize, [String])] = [
        ("libmssilk", libmssilk_init, ["SILK"]), ("libmsamr", libmsamr_init, ["AMR", "AMR-WB"]),
        ("libmsx264", libmsx264_init, ["H264"]), ("libmsopenh264", libmsopenh264_init, ["H264"]),
        ("libmswebrtc", libmswebrtc_init, ["iSAC"]),
    ]

    @Test func `a stub registers nothing and says what is missing, why, and what to do`() throws {
        for (name, initialize, missing) in Self.stubs {
            var registry = PluginRegistry()
            registry.load(name, initialize)
            let plugin = try #require(registry.plugins.first)
            #if WebRTC
            let state: LoadedPlugin.State = name == "libmswebrtc" ? .active : .stub
            #else
            let state = LoadedPlugin.State.stub
            #endif
            #expect(plugin.name == name && plugin.state == state && registry.codecs.isEmpty)
            #expect(plugin.missing.map(\.name) == missing)
            #expect(plugin.missing.allSatisfy { !$0.reason.isEmpty && !$0.remedy.isEmpty })
            #expect(registry.missing.prefix(missing.count).map(\.name) == missing)
        }
    }

    @Test func `without a registry a stub does nothing`() {
        for (_, initialize, _) in Self.stubs { initialize(nil) }
        libmsbcg729_init(nil)
    }

    @Test func `well-known codecs are listed once, and no longer when registered`() {
        let missing = PluginRegistry.standard().missing.map(\.name)
        #expect(Set(missing).count == missing.count)
        #expect(Set(["SILK", "AMR", "AMR-WB", "H264", "iSAC", "iLBC", "speex"]).isSubset(of: missing))
        #expect(!missing.contains("opus"))
        #expect(PluginRegistry().missing.contains { $0.name == "GSM" })
    }
}
