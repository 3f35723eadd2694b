import CallBasics
import Testing

@testable import SIP

/// One agent with an account, and a registrar that answers at once, behind a NAT or not.
private struct RegistrarWorld {
    var agent: UserAgent
    var account: AccountHandle
    var now = MediaTime.zero + .seconds(1)
    var digest: DigestServer?
    /// Where the registrar sees the agent.
    var seen = SocketAddress(host: "10.0.0.1", port: 5060)
    /// Whether it sees the agent at another port each time.
    var isRestless = false
    var isDown = false
    /// Whether it ends each connection once it has answered.
    var isCurt = false
    var granted: UInt32 = 3600
    var requests: [SIPMessage] = []
    var words: [String] = []
    static let user = Credentials(userName: "alice", password: "wonderland")

    init(_ credentials: [Credentials] = [user], transport: String = "") throws {
        let identity = NameAddress(try SIPURI("sip:alice@192.0.2.9"))
        agent = UserAgent(AgentConfiguration(identity: identity), seed: 7)
        let own = try #require(SocketAddress(host: "10.0.0.1", port: 5060))
        for transport in [Flow.Transport.udp, .tcp] { agent.setLocalAddresses([own], of: transport, at: now) }
        var configuration = AccountConfiguration(identity: identity)
        configuration.credentials = credentials
        configuration.instance = "urn:uuid:00000000-0000-4000-8000-000000000001"
        configuration.registrar = try SIPURI("sip:192.0.2.9\(transport)")
        account = agent.addAccount(configuration)
    }

    mutating func carry() throws {
        while let output = agent.poll() {
            switch output {
            case .send(let bytes, let flow):
                guard let message = try? SIPMessage(datagram: bytes) else {
                    // A ping is answered.
                    if bytes.count == 4 { agent.handle(.bytes([0x0D, 0x0A], flow), at: now) }
                    continue
                }
                requests.append(message)
                guard !isDown, let response = try answer(message) else { continue }
                guard flow.transport != .udp else {
                    agent.handle(.datagram(response.bytes, local: flow.local, remote: flow.remote), at: now)
                    continue
                }
                agent.handle(.bytes(response.bytes, flow), at: now)
                if isCurt { agent.handle(.failed(flow), at: now) }
            case .event(let event):
                if let word = event.word { words.append(word) }
            case .open(let flow, _): agent.handle(.opened(flow), at: now)
            case .close, .ask: break
            }
        }
    }

    private mutating func answer(_ request: SIPMessage) throws -> SIPMessage? {
        guard request.method == .register, var via = try request.topVia(), let seen else { return nil }
        if isRestless { self.seen = seen.with(port: seen.port + 1) }
        via.note(sourceHost: seen.hostBytes, port: seen.port)
        var request = request
        try request.replaceFirst(.via, by: via)
        if let verdict = digest?.verify(request, at: now, find: { _ in Self.user }) {
            guard case .accepted = verdict else {
                var response = try request.response(status: 401, reason: "Unauthorized", tag: Bytes("r"))
                for challenge in digest?.challenges(isStale: verdict == .stale, at: now) ?? [] {
                    try response.append(.wwwAuthenticate, challenge)
                }
                return response
            }
        }
        var response = try request.response(status: 200, reason: "OK", tag: Bytes("r"))
        for var contact in try request.contacts() where contact.parameters.value("expires") != [0x30] {
            contact.parameters.set("expires", to: Bytes("\(granted)"))
            try response.append(.contact, contact)
        }
        return response
    }

    mutating func register() throws {
        try agent.register(account, at: now)
        try carry()
    }

    mutating func run(for duration: Duration) throws {
        let end = now + duration
        while let next = agent.deadline, next <= end {
            now = max(now, next)
            agent.handle(.timeout, at: now)
            try carry()
        }
        now = end
    }

    func contact(_ index: Int) throws -> String { try requests[index].contacts().map(\.uri.bytes.text).joined() }
}

@Suite("Accounts of a user agent")
struct AccountTests {
    private static let key = Array("sixteen bytes and some more".utf8)

    private func digest(_ hash: DigestHash) -> DigestServer {
        var configuration = DigestServer.Configuration(realm: "192.0.2.9")
        configuration.algorithms = [DigestAlgorithm(hash)]
        return DigestServer(configuration, key: Self.key)
    }

    @Test(
        "A challenge is answered, the binding refreshed with the nonce that is known, and taken away",
        arguments: [
            DigestHash.md5, .sha256, .sha512_256,
        ]
    )
    func whole(_ hash: DigestHash) throws {
        var world = try RegistrarWorld()
        world.digest = digest(hash)
        try world.register()
        #expect(world.words == ["registration progress", "registration ok"])
        #expect(world.requests.count == 2)
        #expect(try world.requests.map { try #require(try $0.cSeq()).number } == [1, 2])
        #expect(try world.contact(1) == "sip:alice@10.0.0.1:5060")
        #expect(world.agent.binding(of: world.account)?.granted == 3600)
        // The refresh comes between 85 and 90 % of the hour; the nonce of 300 s is stale by then, and that costs one round.
        try world.run(for: .seconds(3300))
        #expect(world.requests.count == 4)
        #expect(world.words.last == "registration ok")
        world.agent.unregister(world.account, at: world.now)
        try world.carry()
        #expect(world.words.last == "registration cleared")
        #expect(world.requests.count == 5)
        try world.run(for: .seconds(100))
        var counts = world.agent.counts
        (counts.accounts, counts.lookups.kept) = (0, 0)
        #expect(counts == AgentCounts())
    }

    @Test("A wrong password is told, and is not tried again at once")
    func wrongPassword() throws {
        var world = try RegistrarWorld([Credentials(userName: "alice", password: "looking glass")])
        world.digest = digest(.md5)
        try world.register()
        #expect(world.words == ["registration progress", "registration failed"])
        #expect(world.requests.count == 2)
        try world.run(for: .seconds(1800))
        #expect(world.requests.count == 2)
    }

    @Test func `a server that sees another address each time is not asked without end`() throws {
        var world = try RegistrarWorld()
        world.seen = SocketAddress(host: "198.51.100.7", port: 2000)
        world.isRestless = true
        try world.register()
        #expect(world.requests.count == 4)
        // The refresh is in time, and the address that was seen last is told then.
        try world.run(for: .seconds(3300))
        #expect(world.requests.count == 5)
        #expect(try world.contact(4) == "sip:alice@198.51.100.7:2003")
        // One that is seen at last is told at once again.
        world.isRestless = false
        try world.run(for: .seconds(6600))
        let count = world.requests.count
        world.seen = SocketAddress(host: "198.51.100.7", port: 3000)
        try world.run(for: .seconds(3300))
        #expect(try world.requests.count == count + 2 && world.contact(count + 1) == "sip:alice@198.51.100.7:3000")
    }

    @Test("Behind a NAT the binding is made anew with the address that the server sees")
    func translated() throws {
        var world = try RegistrarWorld()
        world.seen = SocketAddress(host: "198.51.100.4", port: 40_112)
        try world.register()
        #expect(world.requests.count == 2)
        #expect(try world.contact(0) == "sip:alice@10.0.0.1:5060")
        #expect(try world.contact(1) == "sip:alice@198.51.100.4:40112")
        #expect(world.agent.publicAddress(of: world.account) == world.seen)
        #expect(world.words.last == "registration ok")
    }

    @Test("A registrar that is gone is tried again, and found when it is back")
    func gone() throws {
        var world = try RegistrarWorld()
        world.isDown = true
        try world.register()
        try world.run(for: .seconds(16))
        #expect(world.words == ["registration progress", "registration unanswered", "registration failed"])
        world.isDown = false
        try world.run(for: .seconds(120))
        #expect(world.words.last == "registration ok")
    }

    @Test("A day of refreshes leaves nothing behind")
    func day() throws {
        var world = try RegistrarWorld()
        world.digest = digest(.sha256)
        world.granted = 300
        try world.register()
        try world.run(for: .seconds(86_400))
        #expect(world.words.allSatisfy { $0 != "registration failed" })
        #expect(world.requests.count > 86_400 / 300)
        let counts = world.agent.counts
        #expect(counts.errands == 0)
        #expect(counts.transactions.transactions <= 2)
        #expect(counts.names == 0)
    }

    @Test func `a registrar that ends each connection soon is not asked without end`() throws {
        var world = try RegistrarWorld(transport: ";transport=tcp")
        world.isCurt = true
        try world.register()
        // The first may have met a server that began anew.
        #expect(world.requests.count == 2)
        #expect(world.words.suffix(2) == ["flow closed", "registration failed"], "\(world.words)")
        try world.run(for: .seconds(3600))
        #expect(7...12 ~= world.requests.count, "\(world.requests.count)")
        // Once one lasts, the next end is the first again.
        world.isCurt = false
        try world.run(for: .seconds(1800))
        let (count, now) = (world.requests.count, world.now)
        #expect(world.words.last == "registration ok")
        let flow = try #require(world.agent.accounts[world.account]?.flow)
        world.agent.handle(.failed(flow), at: now)
        try world.carry()
        #expect(world.requests.count == count + 1 && world.words.last == "registration ok")
    }

    @Test func `connections that end soon are made anew at once where pings were answered`() throws {
        var world = try RegistrarWorld(transport: ";transport=tcp")
        try world.register()
        for count in 2...6 {
            try world.run(for: .seconds(40))
            let flow = try #require(world.agent.accounts[world.account]?.flow)
            world.agent.handle(.failed(flow), at: world.now)
            try world.carry()
            #expect(world.requests.count == count && world.words.last == "registration ok")
        }
    }

    @Test func `after a long sleep it registers anew`() throws {
        var world = try RegistrarWorld()
        try world.register()
        #expect(world.requests.count == 1)
        world.agent.handleAbsence(at: world.now + .seconds(1))
        try world.carry()
        #expect(world.requests.map(\.method) == [.register, .register])
        let numbers = try world.requests.map { try $0.cSeq()?.number ?? 0 }
        #expect(numbers[1] == numbers[0] + 1)
    }

    @Test func `a process that takes over is let in by the nonce of the one before, with its next count`() throws {
        var first = try RegistrarWorld()
        first.digest = digest(.sha256)
        try first.register()
        #expect(first.requests.count == 2 && first.words.last == "registration ok")
        let memories = first.agent.digestMemories(of: first.account)
        #expect(memories.count == 1 && !"\(memories)".contains("wonderland"))
        // The same registrar, and another process.
        var second = try RegistrarWorld()
        second.digest = first.digest
        second.agent.recall(memories, of: second.account)
        try second.register()
        #expect(second.requests.count == 1 && second.words.last == "registration ok")
        let count = try #require(try second.requests.first?.authentication(.authorization).first?["nc"])
        #expect(count.text == "00000002")
        // Who remembers what was used already is asked again, and no worse off.
        var third = try RegistrarWorld()
        third.digest = second.digest
        third.agent.recall(memories, of: third.account)
        try third.register()
        #expect(third.requests.count == 2 && third.words.last == "registration ok")
        // One with another password does not use it, and what is no challenge is passed over.
        var fourth = try RegistrarWorld([])
        fourth.agent.recall(
            memories + [DigestMemory(isProxy: false, challenge: "nonsense", hosts: [], usedCount: 0)],
            of: fourth.account
        )
        #expect(fourth.agent.digestMemories(of: fourth.account).isEmpty)
    }

    @Test(
        "Who moves registers from the next address at once, also when the one of before was gone too soon",
        arguments: [false, true]
    )
    func move(hasFailed: Bool) throws {
        var world = try RegistrarWorld()
        try world.register()
        world.isDown = true
        world.agent.refresh(world.account, at: world.now)
        try world.carry()
        if hasFailed { try world.run(for: .seconds(40)) }
        #expect(world.words.last == (hasFailed ? "registration failed" : "registration refreshing"))
        world.isDown = false
        let count = world.requests.count
        let next = try #require(SocketAddress(host: "10.0.0.2", port: 5060))
        world.seen = next
        for transport in [Flow.Transport.udp, .tcp] {
            world.agent.setLocalAddresses([next], of: transport, at: world.now)
        }
        try world.carry()
        #expect(world.words.last == "registration ok" && world.requests.count == count + 1)
        #expect(try world.contact(count) == "sip:alice@10.0.0.2:5060")
    }
}
