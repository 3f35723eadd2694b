import CallCore
import MediaEngine

/// What calls tell beyond what the screen is told.
extension PhoneShell {
    /// Tells what happens in a call, to its end.
    func listen(to call: PhoneCall, _ uuid: CallUUID?) async {
        let number = uuid.map { self.number(of: $0) }
        for await event in call.events {
            switch event {
            case .progress(180): await play(.ringback)
            // It brings sound of its own.
            case .progress(183): await play(nil)
            case .key(let key): tell("digit", number, [("digit", .string("\(key)"))], "Key \(key).")
            case .held(by: .them): tell("held", number, [("by", .string("them"))], "The other side holds the call.")
            case .resumed(by: .them): tell("resumed", number, [("by", .string("them"))], "The other side is back.")
            case .transferRequested(let transfer):
                if let number { calls[number]?.transfer = transfer }
                let who = transfer.target.printable
                tell(
                    "transferRequested",
                    number,
                    [
                        ("to", .string(transfer.target)), ("by", JSONValue(transfer.referrer)),
                        ("attended", .bool(transfer.isAttended)),
                    ],
                    "The other side wants you to talk with \(who). Say follow, or stay."
                )
            case .transferLapsed:
                if let number { calls[number]?.transfer = nil }
                tell("transferLapsed", number, [], "You have not said follow in time: it was refused.")
            case .transferring(let status):
                tell("transfer", number, [("status", .integer(status))], "The transfer goes on: \(status).")
            case .transferFailed(let status):
                tell("transfer", number, [("failed", .integer(status))], "The transfer has failed: \(status).")
            case .ended(let end):
                tell("report", number, Self.members(of: end, await call.report), end.description)
            default: break
            }
        }
    }

    private static func members(of end: PhoneCallEnd, _ report: CallReport?) -> [(String, JSONValue)] {
        let leg = report?.legs.first
        let score = leg?.quality.mosListening
        return [
            ("reason", .string(end.description)),
            ("sentPackets", leg.map { .integer(Int($0.sent.packets)) } ?? .null),
            ("receivedPackets", leg.map { .integer(Int($0.received.packets)) } ?? .null),
            ("mosListening", score.map { .number($0) } ?? .null),
        ]
    }
}
