public import MediaEngine

/// What happens in a call.
public enum PhoneCallEvent: Sendable {
    /// Before the answer: 180 rings, 183 may bring sound, 302 leads on to somebody else.
    case progress(status: Int)
    case answered
    /// The other side pressed a key.
    case key(Character)
    case held(by: PhoneCallEnd.Side)
    case resumed(by: PhoneCallEnd.Side)
    /// A change, as hold, was refused; all is as before.
    case changeRefused(status: Int)
    /// The other side asks this one to call somebody else: within a minute, `PhoneCall.acceptTransfer` or `refuseTransfer` says
    /// what is done.
    case transferRequested(PhoneTransfer)
    /// Nobody has said so in time: it was refused.
    case transferLapsed
    /// The other side calls whom it was asked to; this is what that call has come to.
    case transferring(status: Int)
    /// It does not, or was refused; this call is resumed.
    case transferFailed(status: Int)
    /// What the engine tells, but keys.
    case media(CallEvent)
    case ended(PhoneCallEnd)
}

/// Whom the other side of a call asks this one to call.
public struct PhoneTransfer: Hashable, Sendable {
    /// Whom to call, such as `sip:carol@example.org`.
    public let target: String
    /// Who asks, as the other side says (Referred-By, RFC 3892), which proves nothing; nil when it does not.
    public let referrer: String?
    /// Whether the target talks with the other side already, and the new call takes the place of that one (RFC 3891).
    public let isAttended: Bool
    /// Which one it is of its call.
    let number: Int
}

extension PhoneCall {
    /// Where a call is.
    public enum State: Hashable, Sendable {
        /// It came, and was not answered.
        case incoming
        /// This side calls, and nothing is known of the other.
        case outgoing
        /// The other side rings.
        case ringing
        /// The other side is heard before its answer.
        case earlyMedia
        /// They talk.
        case talking
        /// This side holds it.
        case held
        /// The other side holds it.
        case heldRemotely
        /// It is over.
        case ended
    }
}
