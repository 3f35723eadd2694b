internal import SDP
package import SIP

extension ReportedEnd {
    /// What a screen is told of an end; a call that another phone has taken says so by its Reason (RFC 3326).
    package init(_ end: CallEnd) {
        let elsewhere = end.reason.flatMap { ReportedEnd(reason: $0) }
        self =
            switch end.cause {
            case .cancelled: end.side == .us ? .remoteEnded : elsewhere ?? .remoteEnded
            case .hungUp, .replaced: .remoteEnded
            case .timeout: .unanswered
            // Own refusals that no action of the screen made: it has rung for too long, or could not be answered.
            case .refused(let status) where end.side == .us: status == 486 ? .unanswered : .failed
            case .refused(408), .refused(480): .unanswered
            case .refused(let status): [486, 600, 603].contains(status) ? .remoteEnded : .failed
            case .failed, .unacknowledged, .expired, .unacceptable: .failed
            }
    }

    /// Nil when no other phone is named.
    init?(reason: String) {
        let reason = reason.lowercased().filter { $0 != " " }
        guard reason.hasPrefix("sip;") else { return nil }
        let parts = reason.split(separator: ";")
        let cause = parts.first { $0.hasPrefix("cause=") }.flatMap { Int($0.dropFirst(6)) }
        switch cause {
        case 200?: self = .answeredElsewhere
        case 486?, 600?, 603?: self = .declinedElsewhere
        default: return nil
        }
    }
}

extension CallUpdate {
    /// What an INVITE says.
    package init(_ invite: SIPMessage, from remote: (uri: String, name: String?)) {
        self.init(remote: remote.uri, displayName: remote.name)
        let offer = try? invite.sessionDescription()
        hasVideo = offer?.media.contains { $0.kind == "video" && $0.port != 0 } ?? false
    }
}
