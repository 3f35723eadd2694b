import ArgumentParser
import CallCore
import MediaEngine

/// What secures the sound of calls by SIP, and how it finds its way to the other side.
struct MediaSecurityOptions: ParsableArguments {
    @Option(help: SRTPWish.help)
    var srtp = SRTPWish.off

    @Flag(help: "Find the way by ICE (RFC 8445), through NATs, too, where the sound is secured by DTLS.")
    var ice = false

    @OptionGroup var servers: NATServerOptions
    @OptionGroup var secrets: KeyLogOption

    func validate() throws {
        guard !ice || srtp == .dtls || srtp == .auto else {
            throw ValidationError(
                "'--ice' goes with keys by DTLS. Add '--srtp dtls' or '--srtp auto', or leave it out."
            )
        }
        guard secrets.keyLog == nil || srtp == .dtls || srtp == .auto else {
            throw ValidationError(
                "'--key-log' is about keys by DTLS. Add '--srtp dtls' or '--srtp auto', or leave it out."
            )
        }
        try servers.requireSearch(ice, by: "--ice")
    }

    /// How the way is found; nil where no ICE was asked for.
    ///
    /// - Throws: `ToolFailure` when a server has no address, or its password is not there or cannot be read
    func way() async throws -> ICEConfiguration? { ice ? try await servers.configuration() : nil }

    /// The sound of one call, with ports of its own.
    ///
    /// - Parameters:
    ///   - engine: Makes the call.
    ///   - host: The own address.
    ///   - format: How it travels.
    ///   - ice: How the way is found, by `way`.
    ///   - isPrivate: Whether nobody on the way reads the descriptions.
    ///   - ends: Says where the sound comes from and goes to.
    /// - Returns: The sound, whose ports are open.
    /// - Throws: `EngineError` and `PhoneError` as `CallSound`
    func sound(
        of engine: CallEngine,
        at host: String,
        _ format: MediaFormatOptions,
        ice: ICEConfiguration?,
        isPrivate: Bool = false,
        _ ends: @escaping @Sendable (inout CallConfiguration) -> Void
    ) async throws -> CallSound {
        try await CallSound(
            engine,
            at: host,
            codecs: format.codecs,
            packetTime: format.ptime,
            encryption: srtp.encryption,
            ice: ice,
            isPrivate: isPrivate,
            ends
        )
    }

    /// Has all calls of a phone secured so.
    ///
    /// - Throws: As `way`
    func secure(_ configuration: inout PhoneConfiguration) async throws {
        (configuration.mediaEncryption, configuration.ice) = (srtp.encryption, try await way())
    }
}
