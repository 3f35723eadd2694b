import CallBasics
import Testing

@testable import SIP

/// What a server of ours is in a flow.
struct FlowServer: Sendable {
    var domain: String
    /// What the flow calls the server itself.
    var name: String
    /// Where its user Bob is.
    var contact: String?
    /// Whether Bob proves who he is, as Alice does.
    var asksBob = false
    var staysOnWay = true
}

extension FlowReplay where Element == SIPServer {
    /// A server at the address of its party.
    init(
        server: FlowServer,
        as party: String,
        in flow: RecordedFlow,
        _ transports: [Flow.Transport],
        _ credentials: Credentials
    ) throws {
        var configuration = ServerConfiguration(domain: server.domain)
        let known = ServerUser(credentials)
        configuration.users = ["alice": known, "bob": server.asksBob ? known : ServerUser(nil)]
        // As all flows have it.
        configuration.algorithms = [DigestAlgorithm(.md5)]
        configuration.staysOnWay = server.staysOnWay
        self.init(SIPServer(configuration, seed: 7), as: party, in: flow, transports, credentials)
        // It goes by its domain, where it registers, and by its address, where it is on the way.
        let name = try SIPURI("sip:\(server.name)")
        let way = transports[0] == .udp ? "" : ";transport=\(transports[0].name)".lowercased()
        words.set(name, to: server.asksBob ? "sips:\(server.domain)" : "sip:\(host):5060\(way);lr")
        if let contact = server.contact { try register(contact, at: server.domain) }
    }

    /// Bob registers before the flow begins.
    private mutating func register(_ contact: String, at domain: String) throws {
        let uri = try SIPURI(contact)
        let lines = Messages.lines(
            "REGISTER sip:\(domain) SIP/2.0",
            "Via: SIP/2.0/\(transports[0].name) \(uri.host);branch=z9hG4bKbefore",
            "From: <sip:bob@\(domain)>;tag=before",
            "To: <sip:bob@\(domain)>",
            "Call-ID: before",
            "CSeq: 1 REGISTER",
            "Contact: <\(contact)>",
            ""
        )
        try give(RecordedFlow.Step(name: "before", from: "Bob", to: party, message: SIPMessage(datagram: lines)))
        dropWaiting()
        #expect(element.counts.bindings == 1)
        events = []
    }

    /// Sends and takes all messages of the flow.
    mutating func run(but differences: [String: Differences]) throws {
        for step in ownSteps {
            if step.to == party { try give(step) } else { try expect(step, but: differences[step.name] ?? [:]) }
        }
        expectNothingElse()
    }

    /// All is over; nothing is left in any table but what is bound, and that not for ever.
    mutating func expectEmpty() {
        run(for: .seconds(4000))
        var counts = element.counts
        (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
        #expect(counts == ServerCounts())
    }
}
