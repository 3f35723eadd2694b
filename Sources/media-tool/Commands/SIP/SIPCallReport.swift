import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// What one call by SIP came to.
struct SIPCallReport: Sendable {
    let end: CallEnd
    let peer: String
    let callID: String
    let setup: Duration?
    let ringing: Duration?
    let talk: Duration?
    let media: CallReport?
    let counts: (sent: Int, received: Int, repeats: Int)
    let keys: String
    var security: CallSecurity?
    let soundFailure: String?
    var securityFailure: String?
    /// The file with its story; nil when none was written.
    var story: String?

    /// What failed, with the remedy; nil when nothing did.
    var failure: String? {
        if case .failed(.unanswered) = end.cause, soundFailure == nil, let securityFailure { return securityFailure }
        return soundFailure ?? end.failure(peer)
    }
    var status: String { soundFailure == nil ? end.status : "failed" }

    var members: [(String, JSONValue)] {
        [
            ("status", .string(status)),
            ("code", end.code.map { .integer($0) } ?? .null),
            ("phrase", .string(end.response?.reasonPhrase ?? (end.code == 200 ? "OK" : ""))),
            ("reason", .string(end.reason ?? "none")),
            ("endedBy", .string(end.sideName)),
            ("callID", .string(callID)),
            ("setupMs", setup.map { .number($0.roundedMilliseconds) } ?? .null),
            ("ringingMs", ringing.map { .number($0.roundedMilliseconds) } ?? .null),
            ("talkSeconds", .number(talk?.roundedSeconds ?? 0)),
            ("legs", .array(media?.legs.map(\.json) ?? [])),
            (
                "sip",
                .object([
                    ("sent", .integer(counts.sent)), ("received", .integer(counts.received)),
                    ("retransmissions", .integer(counts.repeats)),
                ])
            ),
            ("dtmf", .string(keys)),
            ("srtp", security.map(\.json) ?? .null),
            ("story", JSONValue(story)),
        ]
    }

    var text: String {
        var lines = ["Ended by \(end.sideName) after \(talk?.roundedSeconds ?? 0) s of talk."]
        if !keys.isEmpty { lines.append("Keys heard: \(keys)") }
        if let security { lines.append(security.text) }
        return lines.joined(separator: "\n") + "\n" + (media?.table ?? "")
    }
}

extension SIPParty {
    /// Messages of the agent, of all its calls.
    func counts() async -> (sent: Int, received: Int, repeats: Int) {
        await endpoint.perform { agent, _ in (agent.sentCount, agent.receivedCount, agent.repeatCount) }
    }
}

extension StoryRecorder {
    /// Writes the story of a call that had no sound.
    func finish(_ end: CallEnd) throws {
        try finish(callID: nil, status: end.status, code: end.code, reason: end.reason ?? "none", failure: nil)
    }

    /// Writes the story of a call that is over at `now`.
    func finish(_ report: SIPCallReport, at now: MediaTime = SIPEndpoint<UserAgent>.now) throws {
        note(report.media, at: now)
        try finish(
            callID: report.callID,
            status: report.status,
            code: report.end.code,
            reason: report.end.reason ?? "none",
            failure: report.failure
        )
    }
}
