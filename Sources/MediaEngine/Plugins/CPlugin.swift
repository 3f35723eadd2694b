internal import CMediaPlugin
import Synchronization

extension PluginRegistry {
    /// Loads a plugin that is written in C, as `ms_plugin.h` of the module CMediaPlugin describes.
    ///
    ///     registry.load("libmsfoo", libmsfoo_init)
    ///
    /// - Parameters:
    ///   - name: The name under which the registry lists it.
    ///   - initialize: Called now and in each `reload`, with a pointer that is good during the call.
    public mutating func load(
        _ name: String,
        _ initialize: @escaping @convention(c) @Sendable (OpaquePointer?) -> Void
    ) {
        load(CPlugin(name: name, initialize: initialize))
    }
}

/// A plugin that enters by an init function that takes an opaque registry.
struct CPlugin: MediaPlugin {
    let name: String
    let initialize: @convention(c) @Sendable (OpaquePointer?) -> Void

    func register(in registry: inout PluginRegistry) {
        let session = CPluginSession()
        initialize(session.pointer)
        let offer = session.close()
        // A plugin that uses its registry after the call is then refused, and no crash.
        registry.keep(session)
        for codec in offer.codecs { registry.add(codec) }
        for voice in offer.voiceProcessing { registry.add(voice) }
        for missing in offer.missing { registry.noteMissing(missing) }
        for error in offer.errors { registry.noteError(error) }
    }
}

/// What a C plugin sees as `ms_registry` during its init function; it collects what the plugin offers.
final class CPluginSession: Sendable {
    struct Offer: Sendable {
        var codecs: [any AudioCodec] = []
        var voiceProcessing: [any VoiceProcessing] = []
        var missing: [MissingCodec] = []
        var errors: [String] = []
    }

    private let offer = Mutex<Offer?>(Offer())
    private static let mostOffers = 256

    /// The session as C sees it.
    var pointer: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// The session behind a pointer that C has handed back.
    static func at(_ pointer: OpaquePointer?) -> CPluginSession? {
        pointer.map { Unmanaged<CPluginSession>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
    }

    /// Ends the session and answers what was offered; from then on everything is refused.
    func close() -> Offer {
        offer.withLock { offer in
            defer { offer = nil }
            return offer ?? Offer()
        }
    }

    /// Takes a codec; answers whether there was room.
    @discardableResult
    func add(_ codec: any AudioCodec) -> Bool {
        offer.withLock { offer in
            guard let count = offer?.codecs.count, count < Self.mostOffers else { return false }
            offer?.codecs.append(codec)
            return true
        }
    }

    /// Takes a way of processing a voice.
    func add(_ voice: any VoiceProcessing) {
        offer.withLock { $0?.voiceProcessing.append(voice) }
    }

    /// Takes the note that a codec is missing; answers whether there was room.
    @discardableResult
    func noteMissing(_ codec: MissingCodec) -> Bool {
        offer.withLock { offer in
            guard let count = offer?.missing.count, count < Self.mostOffers else { return false }
            offer?.missing.append(codec)
            return true
        }
    }

    /// Takes the reason why something was refused.
    func noteError(_ message: String) {
        offer.withLock { offer in
            guard let count = offer?.errors.count, count < Self.mostOffers else { return }
            offer?.errors.append(message)
        }
    }
}

@_cdecl("ms_registry_add_codec")
func registerCodecFromC(_ registry: OpaquePointer?, _ description: UnsafePointer<ms_codec>?) -> Int32 {
    guard let session = CPluginSession.at(registry) else { return MS_PLUGIN_REFUSED }
    do throws(CPluginError) {
        let codec = try CCodec(checking: description)
        return session.add(codec) ? MS_PLUGIN_OK : MS_PLUGIN_REFUSED
    } catch {
        session.noteError(error.message)
        return MS_PLUGIN_REFUSED
    }
}

@_cdecl("ms_registry_note_missing")
func noteMissingFromC(
    _ registry: OpaquePointer?,
    _ codec: UnsafePointer<CChar>?,
    _ reason: UnsafePointer<CChar>?,
    _ remedy: UnsafePointer<CChar>?
) -> Int32 {
    guard
        let session = CPluginSession.at(registry),
        let name = CString.token(codec),
        let reason = CString.line(reason),
        let remedy = CString.line(remedy),
        session.noteMissing(MissingCodec(name: name, reason: reason, remedy: remedy))
    else { return MS_PLUGIN_REFUSED }
    return MS_PLUGIN_OK
}
