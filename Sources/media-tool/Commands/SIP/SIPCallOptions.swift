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

    func validate() throws {
        try Quantity.check("--session-expires", sessionExpires.map(Int.init), in: 90...86_400, "s")
    }

    /// What calls ask of the agent.
    func change(_ agent: inout AgentConfiguration) {
        agent.wantsReliableProvisionals = hundredRel
        agent.takesTransfers = followTransfers
        agent.sessionTimer = SessionTimer.Wishes(seconds: sessionExpires)
    }
}

/// The keys that are sent in calls by SIP.
struct SIPKeyOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Keys to send, from 0.5 s after the answer on.", valueName: "digits"))
    var dtmf: Digits?

    @Option(help: "How keys are sent: rtp, info or inband. Default: rtp where it was agreed on, else info.")
    var dtmfWay: DTMFWay?

    func validate() throws {
        try dtmf?.validate(limit: 64)
        guard dtmfWay == nil || dtmf != nil else {
            throw ValidationError("'--dtmf-way' says how keys are sent. Give '--dtmf', or leave it out.")
        }
    }

    /// What is done in a call.
    func wishes(_ session: SIPSessionOptions) -> SIPCallRun.Wishes {
        SIPCallRun.Wishes(keys: dtmf?.sequence, keyWay: dtmfWay, followsTransfers: session.followTransfers)
    }
}
