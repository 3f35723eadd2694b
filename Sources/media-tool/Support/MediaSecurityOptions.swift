import ArgumentParser
import CallCore

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

    /// Has all calls of a phone secured so.
    ///
    /// - Throws: As `way`
    func secure(_ configuration: inout PhoneConfiguration) async throws {
        (configuration.mediaEncryption, configuration.ice) = (srtp.encryption, try await way())
    }
}
