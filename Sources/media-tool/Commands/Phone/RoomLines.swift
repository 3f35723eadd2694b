import CallCore

extension PhoneRoom {
    /// What lines say of it.
    var lineMembers: [(String, JSONValue)] {
        [
            ("room", .string(address)), ("state", .string(state.rawValue)), ("subject", JSONValue(subject)),
            ("members", .array(members.map { .string($0.address) })),
        ]
    }

    var line: String { "Room \(address.printable): \(state.rawValue), \(English.count(members.count, "member"))" }
}
