internal import CallBasics
internal import SIP

/// A call that is over, as a list of calls shows it.
public struct CallLogEntry: Hashable, Sendable, Codable, Identifiable {
    /// What became of it.
    public enum Outcome: String, Hashable, Sendable, Codable, CaseIterable {
        /// They talked.
        case talked
        /// It came, and nobody took it.
        case missed
        /// It came, and was declined here.
        case declined
        /// It came, and another phone of the user has answered it.
        case answeredElsewhere
        /// It came, and another phone of the user has declined it.
        case declinedElsewhere
        /// It was taken back here before the answer.
        case cancelled
        /// The other side has refused it.
        case refused
        /// The other side did not answer.
        case unanswered
        /// It could not be made, or broke off before the answer.
        case failed
    }

    /// The Call-ID; empty for a call that only a push has told of, and which did not say.
    public let id: String
    /// The address of the other side.
    public let remote: String
    /// The name that the other side showed of itself; it proves nothing.
    public let remoteName: String?
    /// Whether this side called.
    public let isOutgoing: Bool
    /// When it began, in seconds since 1970, UTC.
    public let unixSeconds: Int64
    /// How long they talked, in seconds.
    public let talkSeconds: Double
    /// What became of it.
    public let outcome: Outcome
}

/// The calls of a phone that are over, and those that are to be; it asks no clock.
///
/// Source: what another phone has answered is not missed (RFC 3326, `Reason: SIP;cause=200`)
struct CallLog: Sendable {
    /// Calls that are kept.
    static let capacity = 256

    private struct Running: Sendable {
        let id: String
        let remote: String
        let remoteName: String?
        let isOutgoing: Bool
        let unixSeconds: Int64
        var answered: MediaTime?
    }

    private var running: [CallHandle: Running] = [:]
    /// The newest first.
    private(set) var entries: [CallLogEntry] = []
    private(set) var missedCount = 0

    mutating func begin(
        _ handle: CallHandle,
        _ id: String,
        with remote: (uri: String, name: String?),
        isOutgoing: Bool,
        unixSeconds: Int64
    ) {
        running[handle] = Running(
            id: id,
            remote: remote.uri,
            remoteName: remote.name,
            isOutgoing: isOutgoing,
            unixSeconds: unixSeconds
        )
    }

    mutating func noteAnswered(_ handle: CallHandle, at now: MediaTime) {
        if running[handle]?.answered == nil { running[handle]?.answered = now }
    }

    /// Writes a call down that has ended; nil where none had begun.
    mutating func noteEnd(_ handle: CallHandle, _ end: CallEnd, at now: MediaTime) -> CallLogEntry? {
        guard let call = running.removeValue(forKey: handle) else { return nil }
        // What its push has told of is written down already.
        if case .refused(410) = end.cause, entries.contains(where: { $0.id == call.id && $0.outcome == .missed }) {
            return nil
        }
        let outcome =
            call.answered != nil ? .talked : call.isOutgoing ? Self.outcome(ofOwn: end) : Self.outcome(ofForeign: end)
        let talk = call.answered.map { now - $0 } ?? .zero
        return add(
            CallLogEntry(
                id: call.id,
                remote: call.remote,
                remoteName: call.remoteName,
                isOutgoing: call.isOutgoing,
                unixSeconds: call.unixSeconds,
                talkSeconds: talk.milliseconds.rounded() / 1000,
                outcome: outcome
            )
        )
    }

    /// Writes a call down that a push has told of, and whose INVITE never came.
    mutating func noteMissed(_ id: String?, _ update: CallUpdate, unixSeconds: Int64) -> CallLogEntry {
        add(
            CallLogEntry(
                id: id ?? "",
                remote: update.remote,
                remoteName: update.displayName,
                isOutgoing: false,
                unixSeconds: unixSeconds,
                talkSeconds: 0,
                outcome: .missed
            )
        )
    }

    mutating func resetMissed() { missedCount = 0 }

    private mutating func add(_ entry: CallLogEntry) -> CallLogEntry {
        entries.insert(entry, at: 0)
        if entries.count > Self.capacity { entries.removeLast() }
        if entry.outcome == .missed { missedCount += 1 }
        return entry
    }

    private static func outcome(ofOwn end: CallEnd) -> CallLogEntry.Outcome {
        switch end.cause {
        case .cancelled, .hungUp, .replaced: .cancelled
        case .timeout: .unanswered
        case .refused(408), .refused(480): .unanswered
        case .refused: .refused
        case .failed, .unacknowledged, .expired, .unacceptable: .failed
        }
    }

    private static func outcome(ofForeign end: CallEnd) -> CallLogEntry.Outcome {
        switch end.cause {
        case .refused(let status) where end.side == .us:
            // It has rung for too long, or nobody was there.
            [480, 486].contains(status) ? .missed : .declined
        case .cancelled where end.side != .us:
            switch end.reason.flatMap({ ReportedEnd(reason: $0) }) {
            case .answeredElsewhere: .answeredElsewhere
            case .declinedElsewhere: .declinedElsewhere
            default: .missed
            }
        case .cancelled, .hungUp, .replaced: .declined
        case .timeout, .refused: .missed
        case .failed, .unacknowledged, .expired, .unacceptable: .failed
        }
    }
}
