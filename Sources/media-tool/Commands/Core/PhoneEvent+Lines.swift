import CallCore

extension PhoneEvent {
    /// Says what happens to accounts and calls.
    func tell(_ common: CommonOptions) {
        switch self {
        case .registered(let address):
            common.show(["event": "registered", "account": .string(address)], text: "\(address) is registered\n")
        case .unregistered(let address, let error):
            common.show(
                ["event": "unregistered", "account": .string(address), "reason": .string(error.message)],
                text: "\(address) is not registered: \(error.message)\n"
            )
        case .moved(let address):
            common.show(["event": "moved", "local": .string("\(address)")], text: "moved to \(address)\n")
        case .incoming(let call):
            common.show(
                ["event": "incoming", "callID": .string(call.callID), "from": .string(call.remote)],
                text: "\(call.remote.printable) calls\n"
            )
        case .replaced(_, let call):
            common.show(
                ["event": "replaced", "callID": .string(call.callID), "from": .string(call.remote)],
                text: "\(call.remote.printable) has taken the place of who was on\n"
            )
        case .logged(let entry):
            common.show(
                [
                    "event": "callEnded", "callID": .string(entry.id), "remote": .string(entry.remote),
                    "outcome": .string(entry.outcome.rawValue), "talkSeconds": .number(entry.talkSeconds),
                ],
                text: "call with \(entry.remote.printable): \(entry.outcome.rawValue), \(entry.talkSeconds) s\n"
            )
        case .receipt(let receipt):
            common.show(
                [
                    "event": "receipt", "messageID": .string(receipt.id), "kind": .string(receipt.kind.rawValue),
                    "from": .string(receipt.from),
                ],
                text: "\(receipt.from.printable): \(receipt.kind.rawValue)\n"
            )
        case .composing(let peer, let isActive):
            common.show(
                ["event": "composing", "from": .string(peer), "state": isActive ? "active" : "idle"],
                text: "\(peer.printable) \(isActive ? "is writing" : "writes no more")\n"
            )
        case .room(let room):
            common.show(.object([("event", "room")] + room.lineMembers), text: room.line + "\n")
        // Those that were kept come as arrivals.
        case .outgoing, .text, .textChanged, .invitation: break
        }
    }
}
