internal import CallBasics
internal import SIP

/// How a call ended; it is an error for who waits for an answer.
public struct PhoneCallEnd: Error, Hashable, Sendable, CustomStringConvertible {
    /// Who ends a call; the network is neither of both.
    public enum Side: Hashable, Sendable { case us, them, network }

    /// Why a call ends.
    public enum Cause: Hashable, Sendable {
        /// After it was answered.
        case hungUp
        /// Another call has taken its place.
        case replaced
        /// Taken back before it was answered.
        case cancelled
        /// Refused before it was answered: 486 is busy, 603 declined.
        case refused(status: Int)
        /// Nobody answered in time.
        case unanswered
        /// No way leads to the other side, or it is gone.
        case unreachable
        /// The two sides did not agree, or the sound could not be had.
        case failed
    }

    /// Who ended it.
    public let side: Side
    /// Why it ended.
    public let cause: Cause
    /// The value of the header Reason that came with the end (RFC 3326), such as `Q.850;cause=16`.
    public let reason: String?
    /// One sentence.
    public let description: String

    init(_ side: Side, _ cause: Cause, reason: String? = nil, _ description: String) {
        (self.side, self.cause, self.reason, self.description) = (side, cause, reason, description)
    }

    /// What the agent tells; by TLS with why there was no connection.
    init(_ end: CallEnd, with peer: String, securityFailure: String? = nil) {
        let side: Side =
            switch end.side {
            case .us: .us
            case .them: .them
            case .network: .network
            }
        let words = end.response.map { " (\($0.statusCode ?? 0) \($0.reasonPhrase))" } ?? ""
        let (cause, text): (Cause, String) =
            switch end.cause {
            case .hungUp: (.hungUp, side == .us ? "This side hung up." : "\(peer) hung up.")
            case .replaced: (.replaced, "Another call has taken its place.")
            case .cancelled: (.cancelled, "The call was taken back before it was answered.")
            case .refused(let status): (.refused(status: status), "The call was refused\(words).")
            case .timeout: (.unanswered, "\(peer) did not answer in time\(words).")
            case .failed(.unresolved(let error)): (.unreachable, error.message)
            case .failed(.invalid(let error)): (.failed, error.message)
            case .failed(.unanswered): (.unreachable, securityFailure ?? "\(peer) cannot be reached\(words).")
            case .unacknowledged: (.failed, "The answer to the call was never acknowledged.")
            case .expired: (.failed, "The session was not refreshed in time.")
            case .unacceptable: (.failed, "The two sides have no codec in common, or no sound that can flow.")
            }
        self.init(side, cause, reason: end.reason, text)
    }
}
