import SIPTesting
import Testing

@testable import SIP

/// Alice has a conference server make a room.
@Suite struct RoomCreationTests {
    private var server: ConferenceServer

    init() throws { server = try ConferenceServer() }

    @discardableResult
    private mutating func create(_ members: String...) throws -> RoomHandle {
        let names = members.isEmpty ? ["bob", "carol"] : members
        let addresses = try names.map { try SIPURI("sip:\($0)@example.org") }
        let factory = try SIPURI("sip:factory@192.0.2.99")
        let handle = try server.world.with(0) { agent, now in
            try agent.createRoom(at: factory, subject: "Tea", members: addresses, at: now)
        }
        server.world.run(for: .milliseconds(50))
        return handle
    }

    @Test
    mutating func `the INVITE has the list, the subject and no session, and the Contact of its answer is the room`()
        throws
    {
        let handle = try create()
        let invite = try server.last("INVITE")
        #expect(try invite.requestURI().bytes.text == "sip:factory@192.0.2.99")
        #expect(invite.first(.require)?.text == "recipient-list-invite" && invite.first(.subject)?.text == "Tea")
        #expect(invite.first(.contentType)?.text == "application/resource-lists+xml")
        #expect(invite.first(.contentDisposition)?.text == "recipient-list")
        #expect(invite.first(.supported) == nil && invite.first(.sessionExpires) == nil)
        #expect(try invite.firstContact()?.parameters.contains("text") == true)
        #expect(
            try ResourceList(parsing: invite.bodyBytes).addresses.map(\.bytes.text) == [
                "sip:bob@example.org", "sip:carol@example.org",
            ]
        )
        #expect(server.words() == ["creationPending"])
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        #expect(server.words() == ["created"])
        #expect(server.world.nodes[0].agent.address(of: handle)?.bytes.text == "sip:tea@192.0.2.99")
        #expect(try server.requests("ACK").count == 1)
        #expect(try server.last("SUBSCRIBE").requestURI().bytes.text == "sip:tea@192.0.2.99")
    }

    @Test(arguments: [true, false])
    mutating func `a redirection leads to the room, which is joined where redirections are followed`(follows: Bool)
        throws
    {
        server = try ConferenceServer { $0.followsRedirections = follows }
        let handle = try create()
        try server.answer("INVITE", 302, contact: ConferenceServer.focus)
        if follows {
            let invite = try server.last("INVITE")
            #expect(try invite.requestURI().bytes.text == "sip:tea@192.0.2.99;gr=1a2b")
            #expect(server.words() == ["creationPending"])
            try server.answer("INVITE", 200, contact: ConferenceServer.focus)
            #expect(server.words() == ["created"])
        } else {
            #expect(server.words() == ["creationPending", "created"])
        }
        #expect(server.world.nodes[0].agent.address(of: handle)?.bytes.text == "sip:tea@192.0.2.99")
        #expect(try server.requests("SUBSCRIBE").count == 1)
    }

    @Test mutating func `a refusal, an answer of no room and silence are told, and leave nothing`() throws {
        try create()
        try server.answer("INVITE", 403)
        #expect(server.words() == ["creationPending", "creationFailed them refused(403)"])
        try create()
        try server.answer("INVITE", 200, contact: "<sip:bob@192.0.2.99>")
        #expect(server.words() == ["creationPending", "creationFailed us unacceptable"])
        #expect(try server.requests("BYE").count == 1)
        try server.answer("BYE")
        try create()
        server.world.run(for: .seconds(120))
        #expect(server.words().first == "creationPending")
        server.expectEmpty()
    }

    @Test mutating func `one that is answered ever later is taken back after a minute`() throws {
        try create()
        for _ in 0..<6 {
            try server.answer("INVITE", 180)
            server.world.run(for: .seconds(10))
        }
        #expect(server.words().last == "creationPending")
        server.world.run(for: .seconds(5))
        try server.answer("CANCEL")
        try server.answer("INVITE", 487)
        #expect(server.words() == ["creationFailed us timeout"])
        server.expectEmpty()
    }

    @Test mutating func `one that is left before it is made is taken back, also when it is made all the same`() throws {
        let handle = try create()
        try server.answer("INVITE", 180)
        server.world.with(0) { agent, now in agent.leaveRoom(handle, at: now) }
        server.world.run(for: .milliseconds(50))
        #expect(try server.requests("CANCEL").count == 1)
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        #expect(try server.requests("BYE").count == 1)
        try server.answer("CANCEL")
        try server.answer("BYE")
        #expect(server.words() == ["creationPending", "creationFailed us cancelled"])
        server.expectEmpty()
    }

    @Test mutating func `without members, or with too many, nothing is sent`() throws {
        let factory = try SIPURI("sip:factory@192.0.2.99")
        for count in [0, ResourceList.limit + 1] {
            let members = Array(repeating: try SIPURI("sip:bob@x"), count: count)
            #expect(throws: SIPError.self) {
                try server.world.with(0) { agent, now in
                    try agent.createRoom(at: factory, subject: "Tea", members: members, at: now)
                }
            }
        }
        server.expectEmpty()
    }

    @Test mutating func `members are added and removed by REFER to the room`() throws {
        let handle = try create()
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        _ = server.words()
        let dave = try SIPURI("sip:dave@example.org")
        for isRemoved in [false, true] {
            _ = try server.world.with(0) { agent, now in
                try agent.refer(dave, to: handle, isRemoved: isRemoved, at: now)
            }
            server.world.run(for: .milliseconds(50))
            let refer = try server.last("REFER")
            #expect(try refer.requestURI().bytes.text == "sip:tea@192.0.2.99")
            #expect(
                refer.first(.referTo)?.text
                    == (isRemoved ? "<sip:dave@example.org;method=BYE>;text" : "<sip:dave@example.org>;text")
            )
            #expect(refer.first(.referSub)?.text == "false")
            try server.answer("REFER", isRemoved ? 403 : 202)
        }
        #expect(server.words() == ["response 202", "response 403"])
    }

    @Test mutating func `a room that is made twice is the one that was made last`() throws {
        let first = try create()
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        let second = try create()
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        #expect(
            server.words() == ["creationPending", "created", "creationPending", "forgotten", "created"]
        )
        let agent = server.world.nodes[0].agent
        #expect(agent.address(of: first) == nil && agent.address(of: second) != nil && agent.counts.rooms == 1)
    }
}
