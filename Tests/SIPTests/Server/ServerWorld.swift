import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// A server of example.test with phones: Alice (0), Bob (1), Bob's other phone (2).
struct ServerWorld {
    var network: VirtualNetwork
    let names = ["alice", "bob", "bob"]
    var accounts: [AccountHandle] = []
    let server = SocketAddress(ipv4: 0xC633_6401, port: 5060)
    let stranger = SocketAddress(ipv4: 0xCB00_7109, port: 5060)

    init(
        transport: String = "",
        seed: UInt64 = 1,
        _ conditions: VirtualNetwork.Conditions = VirtualNetwork.Conditions(),
        _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) throws {
        network = VirtualNetwork(seed: seed, conditions)
        var configuration = ServerConfiguration(domain: "example.test")
        let passwords = ["alice": "wonderland", "bob": "builder", "carol": "christmas"]
        configuration.users = passwords.reduce(into: [:]) { users, entry in
            users[entry.key] = ServerUser(Credentials(userName: entry.key, password: entry.value))
        }
        change(&configuration)
        _ = network.add(configuration)
        for name in names {
            let index = try network.add(name)
            var account = AccountConfiguration(identity: NameAddress(try SIPURI("sip:\(name)@example.test")))
            account.credentials = [Credentials(userName: name, password: passwords[name] ?? "")]
            if !transport.isEmpty { account.registrar = try SIPURI("sip:example.test\(transport)") }
            let made = account
            accounts.append(network.with(index) { agent, _ in agent.addAccount(made) })
        }
    }

    /// Registers phones, and forgets what was told of it.
    mutating func register(_ indices: Int...) throws {
        for index in indices {
            let account = accounts[index]
            try network.with(index) { agent, now in try agent.register(account, at: now) }
        }
        network.run(for: .seconds(1))
        for index in indices { _ = network.takeEvents(index) }
        _ = network.takeEvents(ofServer: 0)
    }

    /// A phone calls a URI, with its account.
    mutating func call(_ uri: String, from index: Int = 0) throws -> CallHandle {
        let account = accounts[index]
        return try network.with(index) { agent, now in
            var wishes = UserAgent.CallWishes(session: .plain("192.0.2.\(index + 1)"))
            wishes.account = account
            return try agent.call(SIPURI(uri), wishes, at: now)
        }
    }

    /// A phone answers what rings.
    mutating func answer(_ index: Int) throws {
        let handle = try network.call(index)
        try network.with(index) { agent, now in try agent.answer(handle, .plain("192.0.2.\(index + 1)"), at: now) }
    }

    mutating func reject(_ index: Int, _ status: Int) throws {
        let handle = try network.call(index)
        network.with(index) { agent, now in agent.reject(handle, status: status, at: now) }
    }

    /// Somebody else sends a request to the server; the first line of each response that comes back.
    mutating func send(_ lines: [String], body: String = "") throws -> [String] {
        let sentCount = network.sent.count
        let text = lines.joined(separator: "\r\n") + "\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
        network.handle(.datagram(Array(text.utf8), local: server, remote: stranger), at: .server(0))
        network.run(for: .milliseconds(100))
        return network.sent[sentCount...].filter { $0.place == .server(0) && $0.startLine.hasPrefix("SIP") }
            .map(\.startLine).filter { $0 != "SIP/2.0 100 Trying" }
    }

    /// The headers of a request of somebody else.
    static func request(
        _ method: String,
        _ uri: String,
        from: String = "sip:somebody@example.net",
        to: String? = nil,
        number: Int = 1,
        id: String = "a",
        _ others: String...
    ) -> [String] {
        [
            "\(method) \(uri) SIP/2.0", "Via: SIP/2.0/UDP 203.0.113.9:5060;branch=z9hG4bK\(id)\(number)",
            "From: <\(from)>;tag=x", "To: <\(to ?? uri)>", "Call-ID: \(id)", "CSeq: \(number) \(method)",
        ] + others
    }

    func expectEmpty(bindings: Int = 0, _ sourceLocation: SourceLocation = #_sourceLocation) {
        var counts = network.servers[0].server.counts
        // Connections that are open stay for the next request.
        (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
        var empty = ServerCounts()
        empty.bindings = bindings
        #expect(counts == empty, sourceLocation: sourceLocation)
    }
}
