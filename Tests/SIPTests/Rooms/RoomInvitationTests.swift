import SIPTesting
import Testing

@testable import SIP

/// Alice is invited to a room by its server.
@Suite struct RoomInvitationTests {
    private var server: ConferenceServer

    init() throws { server = try ConferenceServer() }

    private static func full(_ version: Int, _ names: String..., subject: String = "Tea") -> String {
        ConferenceServer.document(
            "full",
            version,
            subject: subject,
            names.map { ConferenceServer.user("sip:\($0)@x") }.joined()
        )
    }

    private static func partial(_ version: Int, _ users: String) -> String {
        ConferenceServer.document("partial", version, users)
    }

    @Test mutating func `an invitation rings nowhere, is told with all it says, and is answered once it is kept`()
        throws
    {
        let list = String(
            decoding: ResourceList([try SIPURI("sip:bob@x"), try SIPURI("sip:carol@x")]).body,
            as: UTF8.self
        )
        let invite = try server.invite(body: list)
        #expect(
            server.words() == ["invited to sip:tea@192.0.2.99 by Bob sip:bob@example.org: Tea [sip:bob@x, sip:carol@x]"]
        )
        #expect(try server.response("INVITE").statusCode == 100)
        let handle = try #require(server.world.nodes[0].agent.room(at: SIPURI("sip:tea@192.0.2.99")))
        server.world.with(0) { agent, now in agent.acceptRoom(handle, at: now) }
        server.world.run(for: .milliseconds(50))
        let answer = try server.response("INVITE")
        #expect(answer.statusCode == 200 && answer.bodyBytes.isEmpty)
        #expect(try answer.firstContact()?.parameters.contains("text") == true)
        #expect(answer.first(.sessionExpires) == nil)
        try server.acknowledge(invite)
        #expect(server.words() == ["created"])
        let subscribe = try server.last("SUBSCRIBE")
        #expect(try subscribe.requestURI().bytes.text == "sip:tea@192.0.2.99")
        #expect(subscribe.first(.event)?.text == "conference")
        #expect(subscribe.first(.accept)?.text == "application/conference-info+xml")
        // Its 2xx has been acknowledged: it is not repeated.
        server.world.run(for: .seconds(60))
        #expect(server.world.lines.count { $0 == "0 SIP/2.0 200 OK" } == 1)
    }

    @Test mutating func `one that cannot be kept is refused, and may come again`() throws {
        for _ in 0..<2 {
            try server.invite()
            let handle = try server.handle()
            server.world.with(0) { agent, now in agent.refuseRoom(handle, status: 480, at: now) }
            server.world.run(for: .milliseconds(50))
            #expect(try server.response("INVITE").statusCode == 480)
            #expect(server.words().suffix(1) == ["terminated"])
        }
        server.expectEmpty()
    }

    @Test mutating func `one that nobody decides on is refused in time, and one that is taken back is over`() throws {
        try server.invite()
        _ = server.words()
        server.world.run(for: .seconds(46))
        #expect(try server.response("INVITE").statusCode == 480)
        #expect(server.words() == ["terminated"])
        let invite = try server.invite()
        _ = server.words()
        var cancel = invite
        cancel = SIPMessage(.cancel, to: try invite.requestURI())
        for name in [HeaderName.via, .from, .to, .callID] { try cancel.append(name, invite.first(name) ?? []) }
        try cancel.append(.cSeq, CSeq(try invite.cSeq()?.number ?? 0, .cancel))
        server.give(cancel)
        #expect(server.words() == ["terminated"])
        server.expectEmpty()
    }

    @Test(arguments: [
        ("<sip:tea@192.0.2.99>", ""), ("<sip:tea@192.0.2.99>;isfocus", ""), ("<sip:tea@192.0.2.99>;text", ""),
        (ConferenceServer.focus, "v=0\r\no=- 1 1 IN IP4 192.0.2.99\r\ns=-\r\nt=0 0\r\n"),
    ])
    mutating func `an INVITE without the feature tags of a chat room, or with a session, is a call`(
        contact: String,
        session: String
    ) throws {
        try server.invite(contact: contact, type: "application/sdp", body: session)
        #expect(server.words() == ["incoming"])
    }

    @Test(arguments: ["<resource-lists/>", "<a", "<!DOCTYPE a>"])
    mutating func `an invitation with a list that is none is refused`(list: String) throws {
        try server.invite(body: list)
        #expect(server.words().isEmpty)
        #expect(try server.response("INVITE").statusCode == 400)
        server.expectEmpty()
    }

    @Test mutating func `rooms beyond the limit are refused`() throws {
        server = try ConferenceServer { $0.roomCount = 1 }
        try server.invite()
        try server.invite(contact: "<sip:other@192.0.2.99>;isfocus;text")
        #expect(try server.response("INVITE").statusCode == 503)
        // The same again, while nobody has decided on it.
        try server.invite()
        #expect(try server.response("INVITE").statusCode == 480)
        #expect(server.words().count == 1)
    }

    @Test mutating func `rooms of one user are told apart by the parameter of their server`() throws {
        for id in ["a", "b"] {
            try server.invite(contact: "<sip:focus@192.0.2.99;conf-id=\(id);gr=1>;isfocus;text")
        }
        #expect(
            server.words().map { $0.prefix(41) } == ["a", "b"].map { "invited to sip:focus@192.0.2.99;conf-id=\($0)" }
        )
    }

    // MARK: What the room is like

    @Test mutating func `members and subject are told at first and at each change`() throws {
        try server.join()
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        _ = server.words()
        try server.notify(Self.full(0, "a", "b"))
        try server.notify(Self.partial(1, ConferenceServer.user("sip:c@x")))
        try server.notify(Self.partial(2, ConferenceServer.user("sip:a@x", state: "deleted")))
        // What changes nothing is not told.
        try server.notify(Self.partial(3, ""))
        try server.notify(ConferenceServer.document("partial", 4, subject: "Coffee"))
        #expect(
            server.words() == [
                "Tea: sip:a@x sip:b@x", "Tea: sip:a@x sip:b@x sip:c@x", "Tea: sip:b@x sip:c@x",
                "Coffee: sip:b@x sip:c@x",
            ]
        )
        #expect(try server.requests("SUBSCRIBE").count == 1)
    }

    @Test mutating func `behind a gap all is asked for anew, once, and taken`() throws {
        try server.join()
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        try server.notify(Self.full(0, "a"))
        _ = server.words()
        try server.notify(Self.partial(2, ConferenceServer.user("sip:c@x")))
        let again = try server.last("SUBSCRIBE")
        #expect(try again.to()?.tag == Bytes("n"))
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        // Others of the same time do not ask again.
        for version in 3...9 { try server.notify(Self.partial(version, ConferenceServer.user("sip:d@x"))) }
        #expect(server.words().isEmpty)
        #expect(try server.requests("SUBSCRIBE").count == 2)
        try server.notify(Self.full(9, "a", "c", "d"))
        #expect(server.words() == ["Tea: sip:a@x sip:c@x sip:d@x"])
        try server.notify(Self.partial(10, ConferenceServer.user("sip:e@x")))
        #expect(server.words() == ["Tea: sip:a@x sip:c@x sip:d@x sip:e@x"])
        // A server that goes on without is asked again, not at once.
        try server.notify(Self.partial(12, ""))
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        server.world.run(for: .seconds(33))
        try server.notify(Self.partial(13, ""))
        #expect(try server.requests("SUBSCRIBE").count == 4)
    }

    @Test(arguments: [
        "<a", "", "<conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\" entity=\"x\" state=\"z\"/>",
    ])
    mutating func `a document that cannot be read changes nothing, and all is asked for anew`(text: String) throws {
        try server.join()
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        try server.notify(Self.full(0, "a"))
        _ = server.words()
        try server.notify(text)
        #expect(server.words().isEmpty)
        #expect(try server.response("NOTIFY").statusCode == 200)
        #expect(try server.requests("SUBSCRIBE").count == (text.isEmpty ? 1 : 2))
    }

    @Test mutating func `a subscription that is interrupted is made anew, and its first document counts`() throws {
        try server.join()
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        try server.notify(Self.full(7, "a"))
        try server.notify("", "terminated;reason=deactivated")
        server.world.run(for: .seconds(2))
        #expect(try server.requests("SUBSCRIBE").count == 2)
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        _ = server.words()
        try server.notify(Self.full(0, "a", "b"))
        #expect(server.words() == ["Tea: sip:a@x sip:b@x"])
    }

    @Test mutating func `who may not know what it is like stays a member, and hears that`() throws {
        try server.join()
        _ = server.words()
        try server.answer("SUBSCRIBE", 403)
        #expect(server.words() == ["unfollowed refused(403)"])
        try server.message(from: "<sip:bob@x>", "Hello")
        #expect(server.words().count == 1)
        // An invitation anew is no news, and the state is asked for again.
        let invite = try server.invite()
        try server.acknowledge(invite)
        #expect(server.words().isEmpty)
        #expect(try server.requests("SUBSCRIBE").count == 2)
    }

    // MARK: Texts

    @Test mutating func `a text of a room is of the member whom its envelope names, without the device`() throws {
        try server.join()
        _ = server.words()
        try server.message(from: "\"Carol\" <sip:carol@example.org;gr=urn:uuid:1>", "Hello")
        try server.message(from: "<sip:carol@example.org>", "Hello", sender: "sip:mallory@192.0.2.99")
        let messages: [InstantMessage] = server.world.takeEvents(0).compactMap {
            if case .message(let message, _, _) = $0 { message } else { nil }
        }
        #expect(messages.map(\.content) == [.text("Hello"), .text("Hello")])
        #expect(messages.map(\.sender.bytes.text) == ["sip:carol@example.org", "sip:mallory@192.0.2.99"])
        #expect(messages.map(\.room?.bytes.text) == ["sip:tea@192.0.2.99", nil])
        #expect(messages.map(\.senderName) == ["Carol", nil])
    }
}
