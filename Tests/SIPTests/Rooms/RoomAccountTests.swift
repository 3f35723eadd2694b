import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// Rooms of an account.
@Suite struct RoomAccountTests {
    private var server: ConferenceServer
    private let account: AccountHandle

    init() throws {
        server = try ConferenceServer()
        var configuration = AccountConfiguration(identity: NameAddress(try SIPURI("sip:alice@192.0.2.99")))
        configuration.expires = 600
        let made = configuration
        account = server.world.with(0) { agent, _ in agent.addAccount(made) }
    }

    private mutating func register() throws {
        let account = account
        try server.world.with(0) { agent, now in try agent.register(account, at: now) }
        server.world.run(for: .milliseconds(50))
    }

    /// Answers the last REGISTER.
    private mutating func registered() throws {
        let contact = try #require(try server.last("REGISTER").firstContact())
        try server.answer("REGISTER", 200, contact: "\(contact.bytes.text);expires=600")
    }

    private mutating func open() throws -> RoomHandle {
        let (account, address) = (account, try SIPURI(ConferenceServer.room))
        return try server.world.with(0) { agent, now in try agent.openRoom(address, account: account, at: now) }
    }

    private mutating func follow() throws {
        try server.answer("SUBSCRIBE", 200, ("Expires", "3600"))
        try server.notify(ConferenceServer.document("full", 0, ConferenceServer.user("sip:a@x")))
    }

    @Test mutating func `a room of a former process is followed once its account is registered`() throws {
        try register()
        let handle = try open()
        server.world.run(for: .seconds(1))
        #expect(try server.requests("SUBSCRIBE").isEmpty)
        try registered()
        #expect(try server.requests("SUBSCRIBE").count == 1)
        #expect(try server.last("SUBSCRIBE").from()?.uri.bytes.text == "sip:alice@192.0.2.99")
        try follow()
        // Registered anew, all is as it was.
        while try server.requests("REGISTER").count == 1 { server.world.run(for: .seconds(1)) }
        try registered()
        #expect(try server.requests("SUBSCRIBE").count == 1)
        #expect(server.world.nodes[0].agent.account(of: handle) == account)
        #expect(
            server.world.nodes[0].agent.rooms(of: account) == [handle]
                && server.world.nodes[0].agent.rooms(of: nil).isEmpty
        )
    }

    @Test mutating func `at another own address the servers of its rooms hear of that`() throws {
        try register()
        try registered()
        _ = try open()
        server.world.run(for: .milliseconds(50))
        try follow()
        let (account, other) = (account, SocketAddress(ipv4: 0xC000_0207, port: 5060))
        server.home = other
        server.world.with(0) { agent, now in
            agent.setLocalAddresses([other], of: .udp, at: now)
            agent.refresh(account, at: now)
        }
        server.world.run(for: .milliseconds(50))
        try registered()
        let again = try server.last("SUBSCRIBE")
        #expect(try again.to()?.tag == Bytes("n"))
        #expect(try again.firstContact()?.uri.hostBytes.text == "192.0.2.7")
        #expect(try server.requests("SUBSCRIBE").count == 2)
    }

    @Test mutating func `an invitation belongs to the account that it is for`() throws {
        let other = try SIPURI("sip:alice@192.0.2.1")
        let second = server.world.with(0) { agent, _ in
            agent.addAccount(AccountConfiguration(identity: NameAddress(other)))
        }
        try server.invite()
        let handle = try server.handle()
        #expect(server.world.nodes[0].agent.account(of: handle) == second)
    }

    @Test mutating func `an account that is removed forgets its rooms, and leaves none`() throws {
        try register()
        try registered()
        _ = try open()
        server.world.run(for: .milliseconds(50))
        try follow()
        _ = server.words()
        let account = account
        server.world.with(0) { agent, now in agent.removeAccount(account, at: now) }
        server.world.run(for: .milliseconds(50))
        #expect(server.words() == ["forgotten"])
        #expect(try server.requests("BYE").isEmpty && server.requests("INVITE").isEmpty)
        #expect(try server.last("SUBSCRIBE").first(.expires)?.text == "0")
        try server.answer("SUBSCRIBE", 200, ("Expires", "0"))
        try server.notify("", "terminated;reason=timeout")
        #expect(server.world.nodes[0].agent.counts.rooms == 0 && server.world.nodes[0].agent.counts.subscriptions == 0)
    }
}
