/// What one direction of a role stands for, and who says so.
public struct CardBinding: Hashable, Sendable {
    /// A PCM, the name or identity of a card, or "null".
    public let device: String
    /// "flag", "environment MEDIA_ENGINE_AU", "PATH:3", "application" or "default".
    package let source: String
    /// Whether a person has said it.
    package var isByHand: Bool { source != "default" }

    /// A binding to `device`: a PCM, the name or identity of a card, or "null".
    public init(_ device: String) { self.init(device: device, source: "application") }

    /// A binding to `device` by `source`.
    package init(device: String, source: String) {
        self.device = device
        self.source = source
    }
}

/// What the roles "AU: Audio Unit Receiver" and "AQ: Audio Queue Device" stand for.
///
/// The first that speaks wins: a flag, the environment, the configuration file, the PCM `default`.
///
///     environment                  file          binds
///     MEDIA_ENGINE_AU              au            the call card, both directions
///     MEDIA_ENGINE_AU_PLAYBACK     au.playback   its playback
///     MEDIA_ENGINE_AU_CAPTURE      au.capture    its capture
///     MEDIA_ENGINE_AQ              aq            the ringer card
///
/// The file is `$XDG_CONFIG_HOME/media-engine/config`, or `~/.config/media-engine/config`: lines `key = value`, blank
/// lines, and comments from `#` at the start of a line. It is read by hand, since who mistypes a key is to be told its line: the
/// reader of swift-configuration passes over keys that nobody asks for, and would be the engine's second dependency.
public struct CardBindings: Hashable, Sendable {
    /// Playback of the call card.
    public var callPlayback = CardBinding(device: "default", source: "default")
    /// Capture of the call card.
    public var callCapture = CardBinding(device: "default", source: "default")
    /// The ringer card.
    public var ringer = CardBinding(device: "default", source: "default")

    /// Both roles on the PCM `default`.
    public init() {}

    /// Reads the bindings from the environment and the configuration file.
    ///
    /// Thread: it blocks while the file is read.
    /// - Parameter environment: The process's environment.
    /// - Throws: `CardError` with the line of the file that is wrong.
    public init(environment: [String: String]) throws(CardError) {
        try self.init(flags: [:], environment: environment)
    }

    /// Reads the bindings from all that may speak.
    ///
    /// - Parameters:
    ///   - flags: Bindings by key as in the file ("au", "au.playback", "au.capture", "aq"), which win over all.
    ///   - environment: The process's environment.
    /// - Throws: `CardError` with the line of the file, or the flag, that is wrong.
    package init(flags: [String: String], environment: [String: String]) throws(CardError) {
        if let path = Self.filePath(environment), SystemFile.realPath(path) != nil {
            guard let text = SystemFile.readAll(path) else {
                throw CardError(.configuration, "\(path) cannot be read. Check its permissions, or remove it.")
            }
            try read(text, path: path)
        }
        for key in Self.keys {
            let name = "MEDIA_ENGINE_" + key.uppercased().replacing(".", with: "_")
            guard let device = environment[name], !device.isEmpty else { continue }
            bind(key, CardBinding(device: device, source: "environment \(name)"))
        }
        for key in flags.keys where !Self.keys.contains(key) {
            throw CardError(.configuration, "There is no role \(key). Use \(Self.keys.joined(separator: ", ")).")
        }
        for key in Self.keys {
            if let device = flags[key] { bind(key, CardBinding(device: device, source: "flag")) }
        }
    }

    /// Where the configuration file is, whether or not it exists.
    package static func filePath(_ environment: [String: String]) -> String? {
        if let folder = environment["XDG_CONFIG_HOME"], !folder.isEmpty { return "\(folder)/media-engine/config" }
        guard let home = environment["HOME"], !home.isEmpty else { return nil }
        return "\(home)/.config/media-engine/config"
    }

    /// Reads the lines of a configuration file.
    ///
    /// - Throws: `CardError` with path and line.
    mutating func read(_ text: String, path: String) throws(CardError) {
        var found: [String: CardBinding] = [:]
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let place = "\(path):\(index + 1)"
            let content = Self.trim(line)
            guard !content.isEmpty, !content.hasPrefix("#") else { continue }
            guard let equals = content.firstIndex(of: "=") else {
                throw CardError(.configuration, "\(place) has no `=`. Write it as `au = PCM`.")
            }
            let key = Self.trim(content[..<equals]).lowercased()
            let device = Self.trim(content[content.index(after: equals)...])
            guard Self.keys.contains(key) else {
                throw CardError(
                    .configuration,
                    "\(place) has the unknown key \(key). Use \(Self.keys.joined(separator: ", "))."
                )
            }
            guard !device.isEmpty else {
                throw CardError(.configuration, "\(place) binds \(key) to nothing. Name a PCM after the `=`.")
            }
            found[key] = CardBinding(device: device, source: place)
        }
        for key in Self.keys {
            if let binding = found[key] { bind(key, binding) }
        }
    }

    /// The general key before those that refine it.
    private static let keys = ["au", "au.playback", "au.capture", "aq"]

    private mutating func bind(_ key: String, _ binding: CardBinding) {
        switch key {
        case "au":
            callPlayback = binding
            callCapture = binding
        case "au.playback": callPlayback = binding
        case "au.capture": callCapture = binding
        default: ringer = binding
        }
    }

    private static func trim(_ text: some StringProtocol) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(String(text.drop(while: isBlank)).reversed().drop(while: isBlank).reversed())
    }
}
