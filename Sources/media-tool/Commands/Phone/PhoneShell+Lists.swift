import CallCore
import Glibc
import MediaEngine

/// Which calls are on, and which are over.
extension PhoneShell {
    /// Lists what is on, with its quality.
    func list() async {
        var items: [JSONValue] = []
        var lines: [String] = []
        for (number, call) in calls.sorted(by: { $0.key < $1.key }) {
            let made = await phone?.call(of: call.uuid)
            let (media, encryption) = (await made?.media, await made?.encryption ?? .none)
            let leg = media?.report()
            let score = leg?.quality.mosListening
            let state =
                call.update.isHeld ? "held" : call.isTalking ? "talking" : call.isOutgoing ? "calling" : "ringing"
            items.append(
                .object([
                    ("call", .integer(number)), ("remote", .string(call.update.remote)), ("state", .string(state)),
                    ("muted", .bool(call.isMuted)), ("grouped", .bool(call.update.isGrouped)),
                    ("receivedPackets", leg.map { .integer(Int($0.received.packets)) } ?? .null),
                    ("mosListening", score.map { .number($0) } ?? .null),
                    ("srtp", .string(SRTPWish(encryption).rawValue)),
                ])
            )
            let quality = score.map { ", quality \($0) of 5" } ?? ""
            lines.append(
                "\(number)  \(call.update.remote.printable)  \(state)\(call.update.isGrouped ? " in the conference" : "")"
                    + "\(call.isMuted ? ", muted" : "")\(quality)\(encryption == .none ? "" : ", secured")"
            )
        }
        teller.tell(
            "calls",
            [("calls", .array(items))],
            text: lines.isEmpty ? "No calls." : lines.joined(separator: "\n")
        )
    }

    /// Lists what is over, which have been seen then.
    func listPast(_ phone: Phone) async {
        let (entries, missedCount) = (await phone.callLog, await phone.missedCallCount)
        await phone.resetMissedCalls()
        let lines = entries.map(Self.text)
        teller.tell(
            "log",
            [("missed", .integer(missedCount)), ("calls", .array(entries.map { .object(Self.members(of: $0)) }))],
            text: lines.isEmpty ? "No calls so far." : lines.joined(separator: "\n")
        )
    }

    /// A call that nobody took, as soon as it is over.
    func note(_ entry: CallLogEntry) {
        guard entry.outcome == .missed else { return }
        teller.tell("missed", Self.members(of: entry), text: "Missed: \(Self.text(entry))")
    }

    private static func members(of entry: CallLogEntry) -> [(String, JSONValue)] {
        [
            ("callID", .string(entry.id)), ("remote", .string(entry.remote)),
            ("displayName", JSONValue(entry.remoteName)), ("outgoing", .bool(entry.isOutgoing)),
            ("unixSeconds", .integer(Int(entry.unixSeconds))), ("talkSeconds", .number(entry.talkSeconds)),
            ("outcome", .string(entry.outcome.rawValue)),
        ]
    }

    private static func text(_ entry: CallLogEntry) -> String {
        let way = entry.isOutgoing ? "to" : "from"
        let name = entry.remoteName.map { "\($0.printable) " } ?? ""
        let words: String =
            switch entry.outcome {
            case .talked: "talked for \(Int(entry.talkSeconds.rounded())) s"
            case .missed: "missed"
            case .declined: "declined"
            case .answeredElsewhere: "answered by another phone"
            case .declinedElsewhere: "declined by another phone"
            case .cancelled: "taken back"
            case .refused: "refused"
            case .unanswered: "not answered"
            case .failed: "failed"
            }
        return "\(localTime(entry.unixSeconds))  \(way) \(name)\(entry.remote.printable)  \(words)"
    }

    private static func localTime(_ unixSeconds: Int64) -> String {
        var (seconds, parts) = (time_t(unixSeconds), tm())
        localtime_r(&seconds, &parts)
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return
            "\(1900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) \(two(parts.tm_hour)):\(two(parts.tm_min))"
    }
}
