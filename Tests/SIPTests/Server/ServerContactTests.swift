import SIPTesting
import Testing

@testable import SIP

/// Contacts that are no addresses for calls: RFC 3665, section 2.2, binds one of mail.
@Suite struct ServerContactTests {
    private var world: ServerWorld

    init() throws { world = try ServerWorld { $0.users = nil } }

    private mutating func register(_ contacts: String..., id: String = "a") throws -> [String] {
        let request = ServerWorld.request("REGISTER", "sip:example.test", to: "sip:carol@example.test", id: id)
        _ = try world.send(request + contacts.map { "Contact: \($0)" })
        let sent = try #require(world.network.sent.last)
        return try SIPMessage(datagram: sent.bytes).contacts().map(\.uri.description)
    }

    @Test(arguments: ["mailto:carol@example.net", "tel:+12015550123"])
    mutating func `they are told to who asks, and nobody is called there`(contact: String) throws {
        #expect(try register("<\(contact)>") == [contact])
        #expect(
            try world.send(ServerWorld.request("OPTIONS", "sip:carol@example.test", id: "b")) == [
                "SIP/2.0 480 Temporarily Unavailable"
            ]
        )
        #expect(try register("<sip:carol@192.0.2.2>", id: "c") == ["sip:carol@192.0.2.2", contact])
        _ = try world.send(ServerWorld.request("MESSAGE", "sip:carol@example.test", id: "d"))
        #expect(world.network.lines.last { $0.hasPrefix("s0 MESSAGE") } == "s0 MESSAGE sip:carol@192.0.2.2 SIP/2.0")
        #expect(try register("<\(contact)>;expires=0", id: "e") == ["sip:carol@192.0.2.2"])
    }

    @Test mutating func `who binds a number does not get what is for that number`() throws {
        _ = try register("<tel:+12015550123>")
        let count = world.network.sent.count
        #expect(
            try world.send(ServerWorld.request("OPTIONS", "tel:+12015550123", id: "b")) == ["SIP/2.0 403 Forbidden"]
        )
        #expect(world.network.sent[count...].allSatisfy { !$0.startLine.hasPrefix("OPTIONS") })
    }
}
