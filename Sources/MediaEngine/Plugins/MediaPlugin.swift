/// Something that brings codecs: the built-in set, an optional library, an application's own.
///
/// Thread: control.
public protocol MediaPlugin: Sendable {
    /// The name under which the registry lists it; a second plugin of that name replaces the first.
    var name: String { get }

    /// Hands what the plugin offers to `registry`, by `add` and `noteMissing`.
    ///
    /// It runs when the plugin is loaded and again in each `reload`.
    func register(in registry: inout PluginRegistry)
}

/// A codec in a registry: who brought it, whom that replaced, and whether it may be used.
public struct RegisteredCodec: Sendable {
    /// The codec.
    package let codec: any AudioCodec
    /// The name of the plugin that registered it.
    public let registeredBy: String
    /// The plugins whose codec of the same name and rates this one replaced, oldest first.
    public let overrides: [String]
    /// Whether look-ups find it.
    public internal(set) var isEnabled: Bool

    /// What the codec says of itself.
    public var description: CodecDescription { codec.description }

    /// The codec's `rtpmap` without regard to case: what makes two codecs the same one.
    var key: String { codec.description.rtpmap.lowercased() }
}

/// What became of a plugin.
public struct LoadedPlugin: Sendable {
    /// The kinds of outcome.
    package enum State: String, Sendable {
        /// It registered codecs.
        case active
        /// It registered nothing.
        case stub
        /// Something that it offered was refused.
        case faulty
    }

    /// The plugin's name.
    public let name: String
    /// The codecs that it registered, as in `a=rtpmap`, also those that another plugin has overridden since.
    package internal(set) var codecs: [String] = []
    /// The ways of processing a voice that it registered.
    package internal(set) var voiceProcessing: [String] = []
    /// What it would offer if it could.
    package internal(set) var missing: [MissingCodec] = []
    /// Why something that it offered was refused.
    package internal(set) var errors: [String] = []

    /// What became of it, in one word.
    package var state: State {
        if !errors.isEmpty { return .faulty }
        return codecs.isEmpty && voiceProcessing.isEmpty ? .stub : .active
    }

    /// What became of it, in one line.
    public var summary: String {
        let offer = codecs + voiceProcessing.map { "voice processing \($0)" }
        var parts = [offer.isEmpty ? "nothing registered" : "registered \(offer.joined(separator: ", "))"]
        parts += missing.map { "\($0.name) is missing: \($0.reason) \($0.remedy)" }
        parts += errors.map { "refused: \($0)" }
        return parts.joined(separator: "; ")
    }
}
