import Testing

@testable import SIP

/// What documents about a room add up to.
@Suite struct ConferenceStateTests {
    private var state = ConferenceState()

    private mutating func take(_ kind: String, _ version: Int, subject: String? = nil, _ users: String = "") throws
        -> ConferenceState.Outcome
    {
        let text = ConferenceServer.document(kind, version, subject: subject, users)
        return state.take(try ConferenceDocument(parsing: Bytes(text)))
    }

    private var names: [String] { state.members.map(\.address) }

    private static func user(_ name: String, _ state: String = "full", _ inner: String = "") -> String {
        ConferenceServer.user("sip:\(name)@x", state: state, inner)
    }

    @Test mutating func `members come, change and go, and the subject changes`() throws {
        #expect(try take("full", 3, subject: "Tea", Self.user("a") + Self.user("b")) == .taken)
        #expect(state.subject == "Tea" && names == ["sip:a@x", "sip:b@x"])
        #expect(try take("partial", 4, Self.user("c", "full", "<endpoint entity=\"sip:1\"/>")) == .taken)
        #expect(state.subject == "Tea" && names == ["sip:a@x", "sip:b@x", "sip:c@x"])
        #expect(try take("partial", 5, Self.user("b", "deleted")) == .taken)
        #expect(names == ["sip:a@x", "sip:c@x"])
        #expect(try take("partial", 6, subject: "Coffee") == .taken)
        #expect(state.subject == "Coffee" && names == ["sip:a@x", "sip:c@x"])
        let roles = "<roles><entry>admin</entry></roles>"
        #expect(try take("partial", 7, Self.user("c", "partial", roles + "<endpoint entity=\"sip:2\"/>")) == .taken)
        let member = try #require(state.members.last)
        #expect(member.roles == ["admin"] && member.devices.map(\.address) == ["sip:1", "sip:2"])
        let change =
            "<endpoint entity=\"sip:1\" state=\"deleted\"/><endpoint entity=\"sip:2\" state=\"partial\"><status>on-hold</status></endpoint>"
        #expect(try take("partial", 8, Self.user("c", "partial", change)) == .taken)
        #expect(state.members.last?.devices == [ConferenceState.Device(address: "sip:2", status: "on-hold")])
        #expect(try take("full", 9, Self.user("d")) == .taken)
        #expect(state.subject == nil && names == ["sip:d@x"])
        #expect(try take("deleted", 10) == .over)
    }

    @Test(arguments: [
        ("full", 5, "old"), ("full", 4, "old"), ("full", 6, "taken"), ("full", 60, "taken"), ("partial", 5, "old"),
        ("partial", 4, "old"), ("partial", 6, "taken"), ("partial", 7, "gap"), ("partial", 4_294_967_295, "gap"),
    ])
    mutating func `the version says whether it is its turn`(kind: String, version: Int, outcome: String) throws {
        #expect(try take("full", 5, Self.user("a")) == .taken)
        #expect(try "\(take(kind, version, Self.user("b")))" == outcome)
        #expect(names.contains("sip:b@x") == (outcome == "taken"))
    }

    @Test mutating func `behind a gap nothing but all is taken, also of the same version`() throws {
        #expect(try take("partial", 1, Self.user("a")) == .gap)
        #expect(try take("full", 1, Self.user("a")) == .taken)
        #expect(try take("partial", 3, Self.user("b")) == .gap)
        #expect(try take("partial", 4, Self.user("c")) == .gap)
        #expect(names == ["sip:a@x"])
        #expect(try take("full", 3, Self.user("a") + Self.user("b")) == .taken)
        #expect(try take("partial", 4, Self.user("c")) == .taken)
        #expect(names == ["sip:a@x", "sip:b@x", "sip:c@x"])
    }

    @Test mutating func `the last version of all is followed by none that can be told`() throws {
        #expect(try take("full", 4_294_967_295, Self.user("a")) == .taken)
        #expect(try take("partial", 0, Self.user("b")) == .old)
        #expect(try take("full", 0, Self.user("b")) == .old)
    }

    @Test mutating func `members and devices beyond the limit are not kept`() throws {
        for round in 0..<3 {
            let users = (0..<600).map { Self.user("\(round)-\($0)") }.joined()
            #expect(try take(round == 0 ? "full" : "partial", round, users) == .taken)
        }
        #expect(names.count == ConferenceState.memberLimit)
        for round in 3..<103 {
            let change = Self.user("0-0", "partial", "<endpoint entity=\"sip:\(round)\"/>")
            #expect(try take("partial", round, change) == .taken)
        }
        #expect(state.members.first?.devices.count == ConferenceState.deviceLimit)
    }
}
