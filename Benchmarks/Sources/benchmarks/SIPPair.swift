import CallBasics
import SDP

@testable import SIP

/// Two user agents, or one and a registrar, whose datagrams arrive as soon as they are sent.
struct SIPPair<Other: SIPElement> {
    private(set) var phone: UserAgent
    private(set) var other: Other
    private(set) var now = MediaTime.zero
    private(set) var phoneEvents: [AgentEvent] = []
    private(set) var otherEvents: [Other.Event] = []
    /// What was sent, while it is kept.
    private(set) var sent: [[UInt8]] = []
    var keepsSent = false

    static var phoneAddress: SocketAddress { SocketAddress(ipv4: 0xC000_0201, port: 5060) }
    static var otherAddress: SocketAddress { SocketAddress(ipv4: 0xC000_0202, port: 5060) }

    init(_ phone: UserAgent, _ other: Other) {
        (self.phone, self.other) = (phone, other)
        self.phone.setLocalAddresses([Self.phoneAddress], of: .udp, at: now)
        self.other.setLocalAddresses([Self.otherAddress], of: .udp, at: now)
    }

    mutating func withPhone<Result>(_ body: (inout UserAgent, MediaTime) throws -> Result) rethrows -> Result {
        forgetEvents()
        let result = try body(&phone, now)
        carry()
        return result
    }

    mutating func withOther<Result>(_ body: (inout Other, MediaTime) throws -> Result) rethrows -> Result {
        forgetEvents()
        let result = try body(&other, now)
        carry()
        return result
    }

    private mutating func forgetEvents() {
        phoneEvents.removeAll(keepingCapacity: true)
        otherEvents.removeAll(keepingCapacity: true)
    }

    /// Lets time go by, and what is due happen.
    mutating func pass(_ duration: Duration) {
        forgetEvents()
        now = now + duration
        if let deadline = phone.deadline, deadline <= now { phone.handle(.timeout, at: now) }
        if let deadline = other.deadline, deadline <= now { other.handle(.timeout, at: now) }
        carry()
    }

    private mutating func carry() {
        var isBusy = true
        while isBusy {
            isBusy = false
            while let output = phone.poll() {
                isBusy = true
                switch output {
                case .send(let bytes, let flow):
                    if keepsSent { sent.append(bytes) }
                    other.handle(.datagram(bytes, local: flow.remote, remote: flow.local), at: now)
                case .event(let event): phoneEvents.append(event)
                case .open, .close, .ask: break
                }
            }
            while let output = other.poll() {
                isBusy = true
                switch output {
                case .send(let bytes, let flow):
                    if keepsSent { sent.append(bytes) }
                    phone.handle(.datagram(bytes, local: flow.remote, remote: flow.local), at: now)
                case .event(let event): otherEvents.append(event)
                case .open, .close, .ask: break
                }
            }
        }
    }
}

extension SIPPair<UserAgent> {
    /// Alice and Bob, who may call each other without end.
    static func phones() throws -> Self {
        let agents = try ["alice", "bob"].enumerated().map { index, name in
            var configuration = AgentConfiguration(
                identity: NameAddress(try SIPURI("sip:\(name)@192.0.2.\(index + 1)"))
            )
            configuration.ringingPerSource = .max
            return UserAgent(configuration, seed: UInt64(index))
        }
        return SIPPair(agents[0], agents[1])
    }

    static func session(_ address: SocketAddress) -> SessionConfiguration {
        let formats = [
            PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000),
            PayloadFormat(payloadType: 101, encodingName: "telephone-event", clockRate: 8000, parameters: "0-15"),
        ]
        return SessionConfiguration(address: address.host, media: [MediaConfiguration(port: 4000, formats: formats)])
    }

    /// A call that rings and is answered.
    mutating func call() throws -> CallHandle {
        let uri = try SIPURI("sip:bob@192.0.2.2")
        let wishes = UserAgent.CallWishes(session: Self.session(Self.phoneAddress))
        let handle = try withPhone { agent, now in try agent.call(uri, wishes, at: now) }
        guard let called = otherEvents.lazy.compactMap(\.call).first else {
            throw SIPPairError(what: "nobody was called")
        }
        try withOther { agent, now in try agent.ring(called, at: now) }
        try withOther { agent, now in try agent.answer(called, Self.session(Self.otherAddress), at: now) }
        return handle
    }
}

extension SIPPair<SIPServer> {
    /// Alice, who may be many, and her registrar.
    static func registrar(users: Int) throws -> Self {
        var configuration = ServerConfiguration(domain: "192.0.2.2")
        configuration.algorithms = [DigestAlgorithm(.sha256)]
        configuration.users = Dictionary(
            uniqueKeysWithValues: (0..<users).map { number in
                ("u\(number)", ServerUser(Credentials(userName: "u\(number)", password: "secret")))
            }
        )
        let identity = NameAddress(try SIPURI("sip:alice@192.0.2.2"))
        let server = SIPServer(configuration, seed: 1)
        return SIPPair(UserAgent(AgentConfiguration(identity: identity), seed: 0), server)
    }

    mutating func register(_ number: Int) throws {
        var account = AccountConfiguration(identity: NameAddress(try SIPURI("sip:u\(number)@192.0.2.2")))
        account.credentials = [Credentials(userName: "u\(number)", password: "secret")]
        try withPhone { agent, now in
            let handle = agent.addAccount(account)
            try agent.register(handle, at: now)
        }
        let isBound = phoneEvents.contains { if case .registration(_, .ok, _) = $0 { true } else { false } }
        guard isBound else { throw SIPPairError(what: "a registration failed") }
    }
}

struct SIPPairError: Error {
    let what: String
}
