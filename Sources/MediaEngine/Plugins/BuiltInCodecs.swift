internal import CMediaPlugin
public import Logging

/// What needs no more than this package: the codecs Opus, G.722, G.711 and L16, and the voice processing.
package struct BuiltInCodecs: MediaPlugin {
    /// "built-in".
    package let name = "built-in"

    /// The plugin.
    package init() {}

    /// Registers the codecs in the order in which an offer prefers them.
    package func register(in registry: inout PluginRegistry) {
        registry.add(OpusCodec())
        registry.add(G722Codec())
        registry.add(G711Codec(.muLaw))
        registry.add(G711Codec(.aLaw))
        registry.add(L16Codec())
        registry.add(L16Codec(sampleRate: 44100, channelCount: 2))
        registry.add(L16Codec(sampleRate: 48000))
        registry.add(L16Codec(sampleRate: 48000, channelCount: 2))
        registry.add(L16Codec(sampleRate: 16000))
        registry.add(L16Codec(sampleRate: 8000))
        registry.add(BuiltInVoiceProcessing())
    }
}

/// GSM 06.10 by libgsm where the package trait GSM is on; else a stub.
package struct GSMPlugin: MediaPlugin {
    /// "gsm".
    package let name = "gsm"

    /// The plugin.
    package init() {}

    /// Registers GSM, or notes that it is not in this build.
    package func register(in registry: inout PluginRegistry) {
        #if GSM
        registry.add(GSMCodec())
        #else
        registry.noteMissing(.gsm)
        #endif
    }
}

extension PluginRegistry {
    /// Makes a registry with everything that this build has.
    ///
    /// These are the built-in codecs and the optional plugins; of those, what was not compiled in is a stub.
    ///
    /// - Parameter logger: Where look-ups that fail are told.
    /// - Returns: The registry.
    public static func standard(logger: Logger = Logger(label: "media.plugins")) -> PluginRegistry {
        var registry = PluginRegistry(logger: logger)
        registry.load(BuiltInCodecs())
        registry.load(GSMPlugin())
        registry.load("libmsbcg729", libmsbcg729_init)
        registry.load("libmssilk", libmssilk_init)
        registry.load("libmsamr", libmsamr_init)
        registry.load("libmsx264", libmsx264_init)
        registry.load("libmsopenh264", libmsopenh264_init)
        registry.load("libmswebrtc", libmswebrtc_init)
        return registry
    }
}
