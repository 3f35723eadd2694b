import CallBasics
import CallCore
import SIP

/// Prints what happens, as it does: a line of text, or of JSON, or nothing where only the end is asked for.
struct SIPTeller: Sendable {
    let isJSON: Bool
    let hasEvents: Bool

    func tell(_ event: String, _ members: [(String, JSONValue)] = [], text: @autoclosure () -> String) {
        guard isJSON else { return StandardOutput.write(text() + "\n") }
        guard hasEvents else { return }
        StandardOutput.write(JSONValue.object([("event", .string(event))] + members).text + "\n")
    }
}

/// The word of a report for the status of a refusal.
enum SIPStatusWord {
    static func of(_ code: Int) -> String {
        switch code {
        case 401, 407, 403: "unauthorized"
        case 486, 600: "busy"
        case 408, 480: "timeout"
        default: "rejected"
        }
    }
}

extension CallEnd {
    /// The word of a report.
    var status: String {
        switch cause {
        case .hungUp, .replaced: "ok"
        case .cancelled: ReportedEnd(self) == .declinedElsewhere ? "declinedElsewhere" : "cancelled"
        case .refused(let code): SIPStatusWord.of(code)
        case .timeout: "timeout"
        case .failed: "unreachable"
        case .unacknowledged, .expired, .unacceptable: "failed"
        }
    }

    /// The code that ended it, 200 where all went well; nil when no message did.
    var code: Int? {
        switch cause {
        case .hungUp, .replaced: 200
        case .refused(let code): code
        case .cancelled: 487
        case .timeout: 408
        case .failed, .unacknowledged, .expired, .unacceptable: response?.statusCode
        }
    }

    var sideName: String {
        switch side {
        case .us: "us"
        case .them: "them"
        case .network: "network"
        }
    }

    /// What failed, with the remedy; nil when nothing did.
    func failure(_ peer: String) -> String? {
        switch cause {
        case .hungUp, .replaced: return nil
        case .cancelled: return "The call was taken back before it was answered."
        case .refused(let code):
            let words = "\(code) \(response?.reasonPhrase ?? "")".trimmed
            if code == 401 || code == 407 {
                return "\(peer) wants a password (\(words)). Give --account with --password-file."
            }
            return "\(peer) refused the call: \(words)."
        case .timeout:
            return side == .us
                ? "\(peer) did not answer the call in time."
                : "Nothing answered at \(peer). Try --transport tcp; is the port right?"
        case .failed(let failure): return failure.text(peer)
        case .unacknowledged:
            return "The answer to the call was never acknowledged. See whether messages to \(peer) arrive."
        case .expired: return "\(peer) did not refresh the session in time."
        case .unacceptable: return "\(peer) described sound that cannot be taken. Offer another --codec."
        }
    }
}

extension RequestFailure {
    /// The word of a report.
    var status: String {
        switch self {
        case .unanswered(.timeout, _): "timeout"
        case .invalid: "failed"
        case .unresolved, .unanswered: "unreachable"
        }
    }

    /// What failed, with the remedy.
    func text(_ peer: String) -> String {
        switch self {
        case .unresolved(let error): return error.message
        case .invalid(let error): return error.message
        case .unanswered(let failure, let count):
            let where_ = count > 1 ? "\(count) targets of \(peer)" : peer
            switch failure {
            case .timeout: return "Nothing answered at \(where_). Try --transport tcp; is the port right?"
            case .unreachable: return "\(where_) cannot be reached. Is somebody listening there?"
            case .unavailable: return "\(where_) cannot serve now (503). Try later."
            case .closed: return "\(where_) asked to be left alone for a while (503). Try later."
            }
        }
    }
}

extension String {
    var trimmed: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
