import ArgumentParser
import CallBasics
import CallCore
import MediaEngine
import SIPTransport

/// This side of ICE.
enum ICEWish: String, ExpressibleByArgument, CaseIterable {
    case lite, full
}

/// The sound of calls with browsers.
struct WebRTCOptions: ParsableArguments {
    @OptionGroup var audio: CallSoundOptions

    @Flag(help: "Send back what is heard.")
    var echo = false

    @Option(help: ArgumentHelp("Keys to send, from 0.5 s after the sound began.", valueName: "digits"))
    var dtmf: Digits?

    @Option(
        help: ArgumentHelp(
            "The own address that sound comes to. Default: that of the way to other networks, else 127.0.0.1.",
            valueName: "address"
        )
    )
    var media: LocalAddress?

    @Option(
        help:
            "This side of ICE (RFC 8445): lite, which has to be reached at its own address, or full, which finds the way itself, through NATs, too."
    )
    var ice = ICEWish.lite

    @OptionGroup var servers: NATServerOptions
    @OptionGroup var secrets: KeyLogOption

    @Option(help: ArgumentHelp("End after so long.", valueName: "n"))
    var seconds: Double?

    func validate() throws {
        try dtmf?.validate(limit: 64)
        try Quantity.check("--seconds", seconds, in: Quantity.seconds, "s")
        try audio.check(echo: echo)
        try servers.requireSearch(ice == .full, by: "--ice full")
        guard media.map({ $0.address.port == 0 && !$0.address.isUnspecified }) ?? true else {
            throw ValidationError("The value of '--media' is one address of this machine, without a port.")
        }
    }

    /// Whether several calls at once do not take each other's card or files.
    var isForSeveral: Bool {
        echo && audio.pcap == nil || audio.input != nil && audio.output == nil && audio.pcap == nil
    }

    /// The own address that sound comes to.
    func host() async -> String {
        if let media { return media.address.host }
        // Nothing is sent there (RFC 5737).
        let outside = SocketAddress(ipv4: 0xC000_0201, port: 9)
        return await SourceAddress.towards(outside)?.host ?? SocketAddress.loopback(port: 0).host
    }

    /// This side of ICE.
    ///
    /// - Throws: `ToolFailure` when a server has no address, or its password is not there or cannot be read
    func way() async throws -> ICEConfiguration {
        try await ice == .lite ? .lite : servers.configuration()
    }

    /// The sound of one call, with ports of its own.
    ///
    /// - Parameters:
    ///   - engine: Makes the call.
    ///   - ice: How the way is found, by `way`.
    /// - Returns: The sound, whose ports are open.
    /// - Throws: `EngineError` when there is no port or no such codec, `PhoneError` when there can be no certificate
    func sound(of engine: CallEngine, ice: ICEConfiguration) async throws -> CallSound {
        let ends = audio.ends(echo: echo)
        return try await CallSound(
            engine,
            at: await host(),
            codecs: audio.format.codecs,
            packetTime: audio.format.ptime,
            encryption: .dtls,
            ice: ice
        ) { configuration in
            ends(&configuration)
            configuration.name = "webrtc"
        }
    }
}
