import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Rooms that are left, that end, or whose call is lost.
@Suite struct RoomEndTests {
    private var server: ConferenceServer

    init() throws { server = try ConferenceServer() }

    /// A room with its call and its state.
    private mutating func join() throws -> RoomHandle {
        let handle = try server.join()
        try follow()
        return handle
    }

    /// A room of a former process.
    private mutating func open() throws -> RoomHandle {
        let address = try SIPURI(ConferenceServer.room)
        let handle = try server.world.with(0) { agent, now in try agent.openRoom(address, at: now) }
        server.world.run(for: .milliseconds(50))
        try follow()
        return handle
    }

    private mutating func follow() throws {
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        try server.notify(ConferenceServer.document("full", 0, subject: "Tea", ConferenceServer.user("sip:a@x")))
        _ = server.words()
    }

    private mutating func leave(_ handle: RoomHandle) {
        server.world.with(0) { agent, now in agent.leaveRoom(handle, at: now) }
        server.world.run(for: .milliseconds(50))
    }

    /// The subscription ends with the room.
    private mutating func expectOver() throws {
        #expect(try server.last("SUBSCRIBE").first(.expires)?.text == "0")
        try server.answer("SUBSCRIBE", 200, ("Expires", "0"))
        try server.notify("", "terminated;reason=timeout")
        #expect(server.words().isEmpty)
        server.expectEmpty()
    }

    @Test mutating func `it is left by BYE, and its state is not told any more`() throws {
        let handle = try join()
        leave(handle)
        #expect(server.words() == ["terminationPending"])
        #expect(try server.requests("BYE").count == 1)
        try server.answer("BYE")
        #expect(server.words() == ["terminated"])
        try expectOver()
    }

    @Test mutating func `it is left behind the ACK of its invitation, when that is late`() throws {
        let invite = try server.invite()
        let handle = try server.handle()
        server.world.with(0) { agent, now in agent.acceptRoom(handle, at: now) }
        leave(handle)
        #expect(try server.requests("BYE").isEmpty)
        try server.acknowledge(invite)
        #expect(try server.requests("BYE").count == 1)
        try server.answer("BYE")
        #expect(server.words().suffix(2) == ["terminationPending", "terminated"])
    }

    @Test mutating func `of a former process it is left by INVITE, and BYE behind the ACK`() throws {
        let handle = try open()
        leave(handle)
        #expect(server.words() == ["terminationPending"])
        let invite = try server.last("INVITE")
        #expect(try invite.requestURI().bytes.text == ConferenceServer.room && invite.bodyBytes.isEmpty)
        #expect(try invite.firstContact()?.parameters.contains("text") == true)
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        #expect(server.world.lines.suffix(2).map { $0.prefix(5) } == ["0 ACK", "0 BYE"])
        try server.answer("BYE")
        #expect(server.words() == ["terminated"])
        try expectOver()
    }

    @Test(arguments: [404, 410])
    mutating func `one that its server does not know any more is left already`(status: Int) throws {
        let handle = try open()
        leave(handle)
        try server.answer("INVITE", status)
        #expect(server.words() == ["terminationPending", "terminated"])
        try expectOver()
    }

    @Test mutating func `a call that its server has lost is made once more to leave`() throws {
        let handle = try join()
        leave(handle)
        try server.answer("BYE", 481)
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        #expect(try server.requests("BYE").count == 2)
        try server.answer("BYE")
        #expect(server.words() == ["terminationPending", "terminated"])
        try expectOver()
    }

    @Test mutating func `an end that is refused, or not answered, is told, and may be tried again`() throws {
        let handle = try join()
        leave(handle)
        try server.answer("BYE", 500)
        #expect(server.words() == ["terminationPending", "terminationFailed(status: Optional(500))"])
        leave(handle)
        try server.answer("INVITE", 403)
        #expect(server.words() == ["terminationPending", "terminationFailed(status: Optional(403))"])
        leave(handle)
        server.world.run(for: .seconds(100))
        #expect(server.words() == ["terminationPending", "terminationFailed(status: nil)"])
        leave(handle)
        try server.answer("INVITE", 200, contact: ConferenceServer.focus)
        try server.answer("BYE")
        #expect(server.words() == ["terminationPending", "terminated"])
    }

    @Test(arguments: [
        ("", true), ("SIP;cause=200;text=\"x\"", true), ("SIP;cause=299", true), ("SIP;cause=300", false),
        ("SIP;cause=408", false), ("SIP;cause=503;text=\"Network\"", false), ("Q.850;cause=16", true), ("SIP", true),
        (";;", true),
    ])
    mutating func `a BYE removes this side unless its reason is a fault`(reason: String, isOver: Bool) throws {
        let handle = try join()
        if reason.isEmpty { try server.within(.bye) } else { try server.within(.bye, ("Reason", reason)) }
        #expect(try server.response("BYE").statusCode == 200)
        guard !isOver else {
            #expect(server.words() == ["terminated"])
            return try expectOver()
        }
        #expect(server.words().isEmpty)
        // It is still told of, and left by INVITE.
        try server.notify(ConferenceServer.document("partial", 1, ConferenceServer.user("sip:b@x")))
        #expect(server.words() == ["Tea: sip:a@x sip:b@x"])
        leave(handle)
        #expect(try server.requests("INVITE").last?.requestURI().bytes.text == ConferenceServer.room)
    }

    @Test mutating func `a server that makes the call anew has another, and the room is the same`() throws {
        let handle = try join()
        let invite = try server.invite()
        #expect(try server.response("INVITE").statusCode == 200)
        try server.acknowledge(invite)
        #expect(try server.words().isEmpty && server.requests("BYE").isEmpty)
        let counts = server.world.nodes[0].agent.counts
        #expect(counts.calls == 1 && counts.rooms == 1 && counts.dialogs == 1)
        leave(handle)
        #expect(try server.last("BYE").callID == invite.callID)
    }

    @Test mutating func `whoever is not its server does not make the call anew`() throws {
        server.world.with(0) { agent, now in
            let identity = NameAddress(agent.configuration.identity.uri)
            let account = agent.addAccount(AccountConfiguration(identity: identity))
            // It is registered at another machine than that which the INVITE comes from.
            let elsewhere = SocketAddress(ipv4: 0xC000_02C8, port: 5060)
            agent.accounts[account]?.flow = Flow(.udp, local: elsewhere, remote: elsewhere)
        }
        _ = try join()
        let former = server.world.nodes[0].agent.counts
        try server.invite()
        #expect(try server.response("INVITE").statusCode == 480)
        #expect(server.world.nodes[0].agent.counts.rooms == former.rooms)
    }

    @Test mutating func `an answer that nobody acknowledges ends the call as a fault, and the room stays`() throws {
        try server.invite()
        let handle = try server.handle()
        server.world.with(0) { agent, now in agent.acceptRoom(handle, at: now) }
        server.world.run(for: .seconds(40))
        #expect(try server.last("BYE").first(.reason)?.text == "SIP;cause=408")
        #expect(server.words().contains("created") && !server.words().contains("terminated"))
        #expect(server.world.nodes[0].agent.counts.rooms == 1)
    }

    @Test mutating func `changes of the call without a session are taken, with one refused`() throws {
        _ = try join()
        try server.within(.update)
        #expect(try server.response("UPDATE").statusCode == 200)
        try server.within(.invite)
        #expect(try server.response("INVITE").statusCode == 200)
        try server.within(.refer, ("Refer-To", "<sip:x@y>"))
        #expect(try server.response("REFER").statusCode == 603)
        try server.within(.options)
        #expect(try server.response("OPTIONS").statusCode == 200)
        #expect(server.words().isEmpty)
    }

    @Test mutating func `a document that the room is no more ends it`() throws {
        _ = try join()
        try server.notify(ConferenceServer.document("deleted", 1))
        #expect(server.words() == ["terminated"])
        try expectOver()
    }

    @Test mutating func `a network that is away for long does not end it`() throws {
        let handle = try join()
        server.world.with(0) { agent, now in agent.setNetworkReachable(false, at: now) }
        server.world.run(for: .seconds(120))
        server.world.with(0) { agent, now in agent.setNetworkReachable(true, at: now) }
        server.world.run(for: .seconds(1))
        #expect(try server.requests("BYE").isEmpty && server.requests("INVITE").isEmpty)
        #expect(server.words().isEmpty)
        leave(handle)
        #expect(try server.requests("BYE").count == 1)
    }

    @Test mutating func `forgotten, it is ended here and not there`() throws {
        let handle = try join()
        server.world.with(0) { agent, now in agent.forgetRoom(handle, at: now) }
        server.world.run(for: .milliseconds(50))
        #expect(server.words() == ["forgotten"])
        #expect(try server.requests("BYE").isEmpty)
        try expectOver()
    }

    @Test mutating func `random requests of a server leave nothing behind`() throws {
        for round in 0..<40 {
            let handle = try join()
            let actions: [(inout ConferenceServer) throws -> Void] = [
                { try $0.within(.bye) }, { try $0.within(.bye, ("Reason", "SIP;cause=500")) }, { try $0.invite() },
                { try $0.notify(ConferenceServer.document("partial", 9)) }, { try $0.within(.invite) },
                { try $0.notify("", "terminated;reason=noresource") }, { try $0.answer("SUBSCRIBE", 481) },
            ]
            for step in 0..<3 { try actions[(round * 3 + step * (round / 7 + 1)) % actions.count](&server) }
            leave(handle)
            server.world.with(0) { agent, now in agent.forgetRoom(handle, at: now) }
            server.world.run(for: .seconds(100))
            _ = server.words()
        }
        server.expectEmpty()
    }
}
