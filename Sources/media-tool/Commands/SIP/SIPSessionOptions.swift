import ArgumentParser
import SIP

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
