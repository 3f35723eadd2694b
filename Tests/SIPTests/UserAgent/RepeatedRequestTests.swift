import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

/// What proves a password when a request leaves once more, by hand.
@Suite struct RepeatedRequestTests {
    private var agent: UserAgent
    private let account: AccountHandle
    private let now = MediaTime.zero + .seconds(1)
    private var sent: [(message: SIPMessage, flow: Flow)] = []
    private var words: [String] = []

    init() throws {
        let identity = NameAddress(try SIPURI("sip:alice@example.test"))
        agent = UserAgent(AgentConfiguration(identity: identity), seed: 7)
        agent.setLocalAddresses([SocketAddress(ipv4: 0xC000_0201, port: 5060)], of: .udp, at: now)
        var configuration = AccountConfiguration(identity: identity)
        configuration.credentials = [Credentials(userName: "alice", password: "wonderland")]
        account = agent.addAccount(configuration)
    }

    /// Five servers have the name.
    private mutating func carry() throws {
        while let output = agent.poll() {
            switch output {
            case .send(let bytes, let flow):
                let message = try SIPMessage(datagram: bytes)
                if message.method != .ack { sent.append((message, flow)) }
            case .ask(let question):
                let addresses = (UInt32(0xC000_0262)...0xC000_0266).map { SocketAddress(ipv4: $0, port: 5060) }
                let records = addresses.map { DNSRecord(question.name, seconds: 3600, .address($0)) }
                let answer = question.kind == .a ? DNSAnswer.records(records) : .noData(nil)
                agent.handle(.answer(answer, to: question), at: now)
            case .event(let event): if let word = event.word { words.append(word) }
            case .open, .close: break
            }
        }
    }

    /// Answers what was sent last.
    private mutating func answer(_ status: Int, _ headers: (String, String)...) throws {
        let (request, flow) = try #require(sent.last)
        var response = try request.response(status: status, reason: "x", tag: Bytes("t"))
        for header in headers { try response.append(named: header.0, header.1) }
        if status == 200 { for contact in try request.contacts() { try response.append(.contact, contact) } }
        agent.handle(.datagram(response.bytes, local: flow.local, remote: flow.remote), at: now)
        try carry()
    }

    private static func challenge(_ nonce: String) -> String {
        "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=SHA-256"
    }

    /// The nonce and its count in the request sent last.
    private func proof(_ kind: DigestKind) throws -> [String] {
        let value = try #require(try sent.last?.message.authentication(kind.credentialsHeader).first)
        return [value["nonce"]?.text ?? "", value["nc"]?.text ?? ""]
    }

    @Test mutating func `each server of a name may ask for the password anew`() throws {
        try agent.register(account, at: now)
        try carry()
        for nonce in ["a", "b", "c", "d", "e"] {
            if nonce != "a" { try answer(503) }
            try answer(401, ("WWW-Authenticate", Self.challenge(nonce)))
            #expect(try proof(.server) == [nonce, "00000001"])
        }
        #expect(Set(sent.map(\.flow)).count == 5)
        try answer(200)
        #expect(words.last == "registration ok")
    }

    @Test mutating func `an INVITE that leaves for a longer session proves the password by the next count`() throws {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        let media = MediaConfiguration(port: 4000, formats: [format])
        let wishes = UserAgent.CallWishes(
            session: SessionConfiguration(address: "192.0.2.1", media: [media]),
            account: account
        )
        _ = try agent.call(SIPURI("sip:bob@192.0.2.99"), wishes, at: now)
        try carry()
        try answer(407, ("Proxy-Authenticate", Self.challenge("a")))
        #expect(try proof(.proxy) == ["a", "00000001"])
        try answer(422, ("Min-SE", "7200"))
        #expect(try proof(.proxy) == ["a", "00000002"])
        #expect(try #require(sent.last?.message.count(of: .proxyAuthorization)) == 1)
    }
}
