import ArgumentParser
import CallCore
import MediaEngine
import SIP

/// How keys travel.
enum DTMFWay: String, ExpressibleByArgument, CaseIterable {
    /// Telephone events, by RTP.
    case rtp
    case info
    case inband
}

/// The sound and the keys of calls by SIP.
struct SIPCallOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The WAV file to send, once. With it, or --output, no card is used. \(InputPath.help)",
            valueName: "file"
        ),
        completion: .file(extensions: ["wav"])
    )
    var input: String?

    @Option(
        help: ArgumentHelp("The WAV file to write what is heard to.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @Option(
        help: ArgumentHelp("The card to call with, in the place of --au.", valueName: "device"),
        completion: DeviceName.completion
    )
    var device: String?

    @Option(help: ArgumentHelp("A codec, see `codecs`; more for more, the preferred one first.", valueName: "name"))
    var codec: [String] = []

    @Option(help: ArgumentHelp("Audio per packet that is asked for, 10 to 120.", valueName: "ms"))
    var ptime: Int?

    @Option(help: ArgumentHelp("Keys to send, from 0.5 s after the answer on.", valueName: "digits"))
    var dtmf: Digits?

    @Option(help: "How keys are sent: rtp, info or inband. Default: rtp where it was agreed on, else info.")
    var dtmfWay: DTMFWay?

    @Flag(
        name: .customLong("100rel"),
        help: "Have ringing acknowledged (PRACK): calls require it, and callers who know it are answered so."
    )
    var hundredRel = false

    @Option(
        help: ArgumentHelp(
            "How long a session lasts that is not refreshed, 90 to 86400. Default: as the other side says.",
            valueName: "s"
        )
    )
    var sessionExpires: UInt32?

    @Flag(help: "Call whom the other side asks to call, in its place (REFER). Default: that is refused.")
    var followTransfers = false

    @Option(help: SRTPWish.help)
    var srtp = SRTPWish.off

    @Option(
        help: ArgumentHelp("The capture (pcap) of all RTP and RTCP to write.", valueName: "file"),
        completion: .file(extensions: ["pcap"])
    )
    var pcap: String?

    @OptionGroup var roles: BindingOptions

    func validate() throws {
        try srtp.check()
        if device != nil, let other = roles.given.first(where: \.1)?.0 {
            throw ValidationError("'--device' names the call card, as '\(other)' does. Leave out one.")
        }
        try Quantity.check("--session-expires", sessionExpires.map(Int.init), in: 90...86_400, "s")
        try Quantity.check("--ptime", ptime, in: 10...120, "ms")
        if let ptime, ptime % 10 != 0 {
            throw ValidationError("The value '\(ptime)' of '--ptime' is no multiple of 10 ms. Give 10, 20, 40, 60.")
        }
        try dtmf?.validate(limit: 64)
        guard dtmfWay == nil || dtmf != nil else {
            throw ValidationError("'--dtmf-way' says how keys are sent. Give '--dtmf', or leave it out.")
        }
        try roles.check(device: device, beside: "--input", input)
        try roles.check(device: device, beside: "--output", output)
    }

    /// What calls ask of the agent.
    func change(_ agent: inout AgentConfiguration) {
        agent.wantsReliableProvisionals = hundredRel
        agent.takesTransfers = followTransfers
        agent.sessionTimer = SessionTimer.Wishes(seconds: sessionExpires)
    }

    /// How the engine is made that has the sound.
    func engineConfiguration() throws -> CallEngineConfiguration { try roles.engineConfiguration(device: device) }

    /// Files that are read and written; an error names two that are one.
    func check(_ files: inout FileArguments) throws {
        try files.read("--input", input.map { InputPath.path(of: $0) })
        try files.write("--output", output)
        try files.write("--pcap", pcap)
    }

    var encryption: MediaEncryption { srtp.encryption }

    var codecs: [String] { codec.isEmpty ? ["opus", "G722", "PCMU", "PCMA"] : codec }

    /// Where a call's sound comes from and goes to.
    func ends(echo: Bool = false) -> @Sendable (inout CallConfiguration) -> Void {
        let (input, output, pcap) = (input.map { InputPath.path(of: $0) }, output, pcap)
        return { configuration in
            configuration.capturePath = pcap
            guard !echo else { return CallSound.echo(&configuration) }
            guard input != nil || output != nil else { return }
            configuration.source = input.map { .file($0) } ?? .silence
            configuration.sink = output.map { .file($0) } ?? .none
        }
    }
}
