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

/// How calls by SIP are made and answered, whatever is heard in them.
struct SIPSessionOptions: ParsableArguments {
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

    @OptionGroup var security: MediaSecurityOptions

    func validate() throws {
        try Quantity.check("--session-expires", sessionExpires.map(Int.init), in: 90...86_400, "s")
    }

    /// What calls ask of the agent.
    func change(_ agent: inout AgentConfiguration) {
        agent.wantsReliableProvisionals = hundredRel
        agent.takesTransfers = followTransfers
        agent.sessionTimer = SessionTimer.Wishes(seconds: sessionExpires)
    }

    var encryption: MediaEncryption { security.srtp.encryption }

    /// The sound of one call, with ports of its own.
    ///
    /// - Parameters:
    ///   - engine: Makes the call.
    ///   - host: The own address.
    ///   - format: How it travels.
    ///   - ice: How the way is found, by `security`.
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
            encryption: encryption,
            ice: ice,
            isPrivate: isPrivate,
            ends
        )
    }
}

/// The sound and the keys of calls by SIP.
struct SIPCallOptions: ParsableArguments {
    @OptionGroup var audio: CallSoundOptions

    @Option(help: ArgumentHelp("Keys to send, from 0.5 s after the answer on.", valueName: "digits"))
    var dtmf: Digits?

    @Option(help: "How keys are sent: rtp, info or inband. Default: rtp where it was agreed on, else info.")
    var dtmfWay: DTMFWay?

    @OptionGroup var session: SIPSessionOptions

    func validate() throws {
        try dtmf?.validate(limit: 64)
        guard dtmfWay == nil || dtmf != nil else {
            throw ValidationError("'--dtmf-way' says how keys are sent. Give '--dtmf', or leave it out.")
        }
    }

    /// What is done in a call.
    var wishes: SIPCallRun.Wishes {
        SIPCallRun.Wishes(keys: dtmf?.sequence, keyWay: dtmfWay, followsTransfers: session.followTransfers)
    }
}
