package import Logging

/// The codecs that an engine has, and where each came from.
///
/// A registry is a value: a copy changes on its own, and there is no global one. Everything enters by the same call,
/// the built-in codecs too:
///
///     var registry = PluginRegistry.standard()
///     registry.load(MyCodecs())
///     registry.load("libmsfoo", libmsfoo_init)
///     let codec = try registry.codec(named: "opus")
///
/// A codec registered later under the same name, clock rate and channel count replaces the earlier one in its place in
/// the order of preference, and says whom it replaced. One of another plugin with the same name but other rates goes
/// before its namesakes, so that the bare name means the newest.
/// Thread: control.
public struct PluginRegistry: Sendable {
    /// The codecs, the preferred first.
    public private(set) var codecs: [RegisteredCodec] = []

    /// The ways of processing a microphone's signal.
    package private(set) var voiceProcessing: [any VoiceProcessing] = []

    /// Where look-ups that fail are told.
    package var logger: Logger

    private var entries: [Entry] = []
    /// The entry whose plugin is being run.
    private var registering: Int?
    private var disabled: Set<String> = []

    private struct Entry: Sendable {
        let plugin: any MediaPlugin
        var loaded: LoadedPlugin
        /// Whether another plugin loaded this one, and will do so again in a reload.
        let isNested: Bool
        /// What has to live as long as the plugin is loaded.
        var kept: (any AnyObject & Sendable)?
    }

    /// An empty registry.
    package init(logger: Logger = Logger(label: "media.plugins")) {
        self.logger = logger
    }

    // MARK: Plugins

    /// The plugins, in the order in which they were loaded.
    public var plugins: [LoadedPlugin] { entries.map(\.loaded) }

    /// Loads `plugin`.
    ///
    /// One of the same name that is loaded already is dropped with all that it registered.
    public mutating func load(_ plugin: any MediaPlugin) {
        let known = entries.firstIndex { $0.plugin.name == plugin.name }
        if registering != nil {
            guard known == nil else {
                noteError("The plugin \(plugin.name) is loaded already.")
                return
            }
            run(plugin, isNested: true)
        } else if let known {
            entries.remove(at: known)
            rebuild(with: plugin)
        } else {
            run(plugin, isNested: false)
        }
    }

    /// Rebuilds the list of codecs: every plugin registers again, in the same order; what was disabled stays so.
    ///
    /// What plugins note as missing is then logged, two lines each.
    package mutating func reload() {
        rebuild(with: nil)
        for missing in notedMissing { logMissing(missing.name) }
    }

    private mutating func rebuild(with last: (any MediaPlugin)?) {
        let plugins = entries.filter { !$0.isNested }.map(\.plugin)
        entries = []
        codecs = []
        voiceProcessing = []
        for plugin in plugins { run(plugin, isNested: false) }
        if let last { run(last, isNested: false) }
    }

    private mutating func run(_ plugin: any MediaPlugin, isNested: Bool) {
        let outer = registering
        registering = entries.count
        entries.append(Entry(plugin: plugin, loaded: LoadedPlugin(name: plugin.name), isNested: isNested))
        plugin.register(in: &self)
        registering = outer
    }

    // MARK: What plugins call

    /// Registers `codec` for the plugin that is being loaded, or for the application itself outside of one.
    ///
    /// One whose description cannot be right (a clock rate of 0, say) is refused: see `LoadedPlugin.errors` and the log.
    public mutating func add(_ codec: any AudioCodec) {
        guard let registering else {
            let earlier = entries.lazy.compactMap { $0.plugin as? ApplicationCodecs }.first
            load(ApplicationCodecs(codecs: (earlier?.codecs ?? []) + [codec]))
            return
        }
        if let defect = codec.description.defect {
            let message = "The codec \(codec.description.rtpmap) is refused: \(defect). Mend its description."
            logger.error("\(message)")
            return noteError(message)
        }
        entries[registering].loaded.codecs.append(codec.description.rtpmap)
        let owner = entries[registering].plugin.name
        let key = codec.description.rtpmap.lowercased()
        let known = codecs.firstIndex { $0.key == key }
        let entry = RegisteredCodec(
            codec: codec,
            registeredBy: owner,
            overrides: known.map { codecs[$0].overrides + [codecs[$0].registeredBy] } ?? [],
            isEnabled: !disabled.contains(key)
        )
        if let known {
            codecs[known] = entry
            return
        }
        let namesake = codecs.firstIndex { other in
            other.registeredBy != owner && Self.isSame(other.description.name, codec.description.name)
        }
        codecs.insert(entry, at: namesake ?? codecs.count)
    }

    /// Registers a way of processing a microphone's signal; one of the same name that is there already is replaced.
    package mutating func add(_ voice: any VoiceProcessing) {
        if let registering { entries[registering].loaded.voiceProcessing.append(voice.name) }
        voiceProcessing.removeAll { Self.isSame($0.name, voice.name) }
        voiceProcessing.append(voice)
    }

    /// Notes that the plugin that is being loaded cannot offer a codec in this build; outside of one it does nothing.
    public mutating func noteMissing(_ codec: MissingCodec) {
        guard let registering else { return }
        entries[registering].loaded.missing.append(codec)
    }

    /// Notes that something was refused, with the plugin that is being loaded.
    mutating func noteError(_ message: String) {
        guard let registering else { return }
        entries[registering].loaded.errors.append(message)
    }

    /// Keeps `object` alive as long as the plugin that is being loaded.
    mutating func keep(_ object: any AnyObject & Sendable) {
        guard let registering else { return }
        entries[registering].kept = object
    }

    // MARK: Look-up

    /// Finds an enabled codec by "NAME", "NAME/RATE" or "NAME/RATE/CHANNELS", without regard to case.
    ///
    /// Of several that match, the preferred one. A name that is not there leaves two lines in the log.
    ///
    /// - Parameter name: The name, as in `a=rtpmap`.
    /// - Returns: The codec.
    /// - Throws: `CodecError` with code `unknownCodec`, which says why and what to do.
    public func codec(named name: String) throws(CodecError) -> any AudioCodec {
        if let found = matches(name).first(where: \.isEnabled) { return found.codec }
        logMissing(name)
        throw CodecError(.unknownCodec, explanation(of: name))
    }

    /// Finds the enabled codec to which RFC 3551 gives `payloadType` for good; nil when there is none.
    package func codec(staticPayloadType payloadType: UInt8) -> (any AudioCodec)? {
        codecs.first { $0.isEnabled && $0.description.staticPayloadType == payloadType }?.codec
    }

    /// Finds a way of processing a microphone's signal by its name, without regard to case.
    ///
    /// - Throws: `VoiceProcessingError` when it is not registered.
    package func voiceProcessing(named name: String) throws(VoiceProcessingError) -> any VoiceProcessing {
        if let found = voiceProcessing.first(where: { Self.isSame($0.name, name) }) { return found }
        let names = voiceProcessing.map(\.name).joined(separator: ", ")
        throw VoiceProcessingError(
            .unknown,
            "There is no voice processing \(name). Choose from \(names), or build with the trait that offers it."
        )
    }

    /// Lets look-ups find the codecs of a name, or hides them; `reload` does not change that.
    ///
    /// - Parameters:
    ///   - isEnabled: Whether they may be used.
    ///   - name: A name as for `codec(named:)`; a bare one means all rates.
    /// - Throws: `CodecError` with code `unknownCodec` when nothing of that name is registered.
    public mutating func setEnabled(_ isEnabled: Bool, codecsNamed name: String) throws(CodecError) {
        let keys = Set(matches(name).map(\.key))
        guard !keys.isEmpty else { throw CodecError(.unknownCodec, explanation(of: name)) }
        if isEnabled { disabled.subtract(keys) } else { disabled.formUnion(keys) }
        for index in codecs.indices where keys.contains(codecs[index].key) {
            codecs[index].isEnabled = isEnabled
        }
    }

    /// Well-known codecs that are not registered; those that a plugin has noted come first.
    public var missing: [MissingCodec] {
        absent(in: notedMissing + MissingCodec.wellKnown)
    }

    private var notedMissing: [MissingCodec] {
        absent(in: entries.flatMap(\.loaded.missing))
    }

    private func absent(in candidates: [MissingCodec]) -> [MissingCodec] {
        var result: [MissingCodec] = []
        for candidate in candidates where matches(candidate.name).isEmpty {
            if !result.contains(where: { Self.isSame($0.name, candidate.name) }) { result.append(candidate) }
        }
        return result
    }

    private func matches(_ name: String) -> [RegisteredCodec] {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard let bareName = parts.first, parts.count <= 3 else { return [] }
        return codecs.filter { entry in
            let description = entry.description
            return Self.isSame(description.name, bareName)
                && (parts.count < 2 || Int(parts[1]) == description.clockRate)
                && (parts.count < 3 || Int(parts[2]) == description.rtpmapChannelCount)
        }
    }

    private static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.lowercased() == right.lowercased()
    }

    private func logMissing(_ name: String) {
        logger.notice("Could not find encoder for \(name)")
        logger.notice("Could not find decoder for \(name)")
    }

    private func explanation(of name: String) -> String {
        if !matches(name).isEmpty { return "The codec \(name) is disabled. Enable it, or choose another." }
        if let missing = missing.first(where: { Self.isSame($0.name, name) }) {
            return "There is no codec \(missing.name): \(missing.reason) \(missing.remedy)"
        }
        let names = codecs.filter(\.isEnabled).map(\.description.rtpmap)
        guard !names.isEmpty else {
            return "There is no codec \(name): none is registered. Load a plugin that offers it."
        }
        return "There is no codec \(name). "
            + "Choose from \(names.joined(separator: ", ")), or load a plugin that offers it."
    }
}

/// The codecs that an application added without a plugin of its own.
private struct ApplicationCodecs: MediaPlugin {
    let name = "application"
    let codecs: [any AudioCodec]

    func register(in registry: inout PluginRegistry) {
        for codec in codecs { registry.add(codec) }
    }
}
