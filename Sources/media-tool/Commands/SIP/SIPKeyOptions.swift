import ArgumentParser
import MediaEngine

/// How keys travel.
enum DTMFWay: String, ExpressibleByArgument, CaseIterable {
    /// Telephone events, by RTP.
    case rtp
    case info
    case inband
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
