import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// Calls to sips: URIs, where each hop is TLS.
@Suite struct SecureCallTests {
    private var world = VirtualNetwork()

    /// The Contacts of what was sent with that start, as who sent it wrote them.
    private func contacts(_ start: String) throws -> [String] {
        try world.sent.filter { $0.startLine.hasPrefix(start) }.compactMap {
            try SIPMessage(datagram: $0.bytes).contacts().first?.uri.bytes.text
        }
    }

    private func transports(from first: Int = 0) throws -> Set<String> {
        Set(try world.sent[first...].map { try #require(try SIPMessage(datagram: $0.bytes).topVia()).transport.text })
    }

    /// Alice calls Bob by sips, and he answers.
    private mutating func connect() throws -> (alice: CallHandle, bob: CallHandle) {
        for name in ["alice", "bob"] { _ = try world.add(name) }
        return try connect(to: "sips:bob@192.0.2.2")
    }

    private mutating func connect(to target: String, account: AccountHandle? = nil) throws -> (
        alice: CallHandle, bob: CallHandle
    ) {
        let alice = try world.with(0) { agent, now in
            let wishes = UserAgent.CallWishes(session: .plain("192.0.2.1"), account: account)
            return try agent.call(SIPURI(target), wishes, at: now)
        }
        world.run(for: .milliseconds(50))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(1))
        return (alice, bob)
    }

    @Test mutating func `a call by sips is by TLS from end to end, and Contacts say sips`() throws {
        let (_, bob) = try connect()
        #expect(world.words(0).last == "established")
        world.with(1) { agent, now in agent.hangUp(bob, at: now) }
        world.run(for: .seconds(60))
        #expect(world.words(0) == ["ended them hungUp"])
        #expect(try contacts("INVITE") == ["sips:alice@192.0.2.1:5061"])
        #expect(try contacts("SIP/2.0 200").first == "sips:bob@192.0.2.2:5061")
        #expect(try transports() == ["TLS"])
        #expect(world.lines.contains { $0.hasPrefix("1 BYE sips:alice@192.0.2.1:5061") })
    }

    @Test mutating func `what is only sent by TLS keeps a Contact of sip`() throws {
        for name in ["alice", "bob"] { _ = try world.add(name) }
        let target = try SIPURI("sip:bob@192.0.2.2:5061;transport=tls")
        try world.with(0) { agent, now in
            _ = try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .milliseconds(50))
        #expect(try contacts("INVITE") == ["sip:alice@192.0.2.1:5061;transport=tls"])
        #expect(try transports() == ["TLS"])
    }

    @Test mutating func `through a server each hop is TLS, and the users are found by it`() throws {
        let domain = "example.test"
        _ = world.add(ServerConfiguration(domain: domain))
        for name in ["alice", "bob"] {
            let index = try world.add(name)
            let address = NameAddress(try SIPURI("sips:\(name)@\(domain)"))
            try world.with(index) { agent, now in
                let account = agent.addAccount(AccountConfiguration(identity: address))
                try agent.register(account, at: now)
            }
        }
        world.run(for: .seconds(1))
        #expect(world.words(1).last == "registration ok")
        _ = world.words(0)
        let target = try SIPURI("sips:bob@\(domain)")
        try world.with(0) { agent, now in
            _ = try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .milliseconds(200))
        let bob = try world.call(1)
        try world.with(1) { agent, now in try agent.answer(bob, .plain("192.0.2.2"), at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0).last == "established")
        #expect(try transports() == ["TLS"])
        let routed = try #require(world.sent.last { $0.startLine.hasPrefix("INVITE") })
        let routes = try SIPMessage(datagram: routed.bytes).list(.recordRoute, as: NameAddress.self)
        #expect(routes.map(\.uri.scheme) == [.sips])
    }

    @Test mutating func `who is registered in the clear is not reached by sips`() throws {
        let domain = "example.test"
        _ = world.add(ServerConfiguration(domain: domain))
        for (name, scheme) in [("alice", "sips"), ("bob", "sip")] {
            let index = try world.add(name)
            let address = NameAddress(try SIPURI("\(scheme):\(name)@\(domain)"))
            try world.with(index) { agent, now in
                try agent.register(agent.addAccount(AccountConfiguration(identity: address)), at: now)
            }
        }
        world.run(for: .seconds(1))
        #expect(world.words(1).last == "registration ok")
        _ = world.words(0)
        let before = world.sent.count
        let target = try SIPURI("sips:bob@\(domain)")
        try world.with(0) { agent, now in
            _ = try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(5))
        #expect(world.words(0).last == "ended them refused(480)")
        #expect(world.words(1) == [])
        #expect(try transports(from: before) == ["TLS"])
    }

    @Test mutating func `a call by sips stays by TLS without its connection, whatever Contact says`() throws {
        let (alice, _) = try connect()
        try world.with(0) { agent, now in
            let flow = try #require(agent.calls[alice]?.dialog?.flow)
            // As after a re-INVITE of a phone that means well.
            let contact = "OPTIONS sip:a SIP/2.0\r\nContact: <sip:bob@192.0.2.2:5060>\r\n\r\n"
            try agent.calls[alice]?.dialog?.refreshTarget(by: SIPMessage(datagram: Array(contact.utf8)))
            agent.handle(.failed(flow), at: now)
            agent.hangUp(alice, at: now)
        }
        world.run(for: .seconds(40))
        #expect(try transports() == ["TLS"])
    }

    @Test mutating func `who is not listened to by TLS tells whom it calls the end of its connection`() throws {
        _ = try world.add("alice") { $0.isReachableByTLS = false }
        _ = try world.add("bob")
        world.connectionPort = 40000
        let listener = "sip:alice@192.0.2.1:5061;transport=tls"
        let end = "sip:alice@192.0.2.1:40000;transport=tls"
        for number in 1...2 {
            let (alice, bob) = try connect(to: "sip:bob@192.0.2.2:5061;transport=tls")
            // The first INVITE leaves before there is a connection.
            #expect(try contacts("INVITE") == (number == 1 ? [listener] : [listener, end]))
            #expect(try contacts("UPDATE") == [end])
            #expect(world.nodes[1].agent.calls[bob]?.dialog?.remoteTarget.bytes.text == end)
            #expect(world.words(0).last == "established")
            world.with(number - 1) { agent, now in agent.hangUp(number == 1 ? alice : bob, at: now) }
            world.run(for: .seconds(1))
            #expect(world.words(0).last?.hasPrefix("ended") == true && world.words(1).last?.hasPrefix("ended") == true)
        }
    }

    @Test mutating func `by another connection than before, its end is told anew`() throws {
        _ = try world.add("alice") { $0.isReachableByTLS = false }
        _ = try world.add("bob")
        world.connectionPort = 40000
        let (alice, bob) = try connect(to: "sip:bob@192.0.2.2:5061;transport=tls")
        world.connectionPort = 40001
        try world.with(0) { agent, now in
            agent.handle(.failed(try #require(agent.calls[alice]?.dialog?.flow)), at: now)
        }
        try world.hold(0, alice)
        world.run(for: .seconds(1))
        #expect(world.words(1).last == "agreed  held by them")
        let target = world.nodes[1].agent.calls[bob]?.dialog?.remoteTarget
        #expect(target?.bytes.text == "sip:alice@192.0.2.1:40001;transport=tls")
    }

    @Test mutating func `whom an account calls directly is told the end of that connection alone`() throws {
        _ = try world.add("alice") { $0.isReachableByTLS = false }
        _ = try world.add("bob")
        let domain = "example.test"
        _ = world.add(ServerConfiguration(domain: domain))
        world.connectionPort = 40000
        let identity = NameAddress(try SIPURI("sips:alice@\(domain)"))
        let account = world.with(0) { agent, _ in agent.addAccount(AccountConfiguration(identity: identity)) }
        try world.with(0) { agent, now in try agent.register(account, at: now) }
        world.run(for: .seconds(1))
        #expect(world.words(0).last == "registration ok")
        world.connectionPort = 40001
        let (_, bob) = try connect(to: "sip:bob@192.0.2.2:5061;transport=tls", account: account)
        #expect(try contacts("INVITE") == ["sip:alice@192.0.2.1:5061;transport=tls"])
        let target = world.nodes[1].agent.calls[bob]?.dialog?.remoteTarget
        #expect(target?.bytes.text == "sip:alice@192.0.2.1:40001;transport=tls")
    }

    @Test mutating func `where there is no TLS nothing is sent in the clear`() throws {
        _ = try world.add("alice") { $0.transports = [.udp, .tcp] }
        _ = try world.add("bob")
        let target = try SIPURI("sips:bob@192.0.2.2")
        try world.with(0) { agent, now in
            _ = try agent.call(target, UserAgent.CallWishes(session: .plain("192.0.2.1")), at: now)
        }
        world.run(for: .seconds(60))
        #expect(world.words(0).last?.hasPrefix("ended network failed(SIP.RequestFailure.unresolved") == true)
        #expect(world.sent.isEmpty)
    }
}
