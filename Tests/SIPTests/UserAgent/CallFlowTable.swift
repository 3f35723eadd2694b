import CallBasics
import Testing

@testable import SIP

/// The table of recorded flows: which are replayed, as which of their parties, and what ours does in another, lawful way.
enum CallFlowTable {
    /// A flow that an agent or a server of ours takes part in as one of its parties.
    struct Row: Sendable, CustomTestStringConvertible {
        /// A user agent, and what its user does before it sends a message.
        struct Agent: Sendable {
            let identity: String
            let verbs: [String: [FlowVerb]]
        }

        let folder: String
        let section: String
        let party: String
        let transports: [Flow.Transport]
        /// Who is ours, one of them.
        var agent: Agent?
        var server: FlowServer?
        /// What that tells.
        let told: [String]
        /// A flow before it, from which both sides know each other.
        var before: String?
        /// By step and header, and why.
        var differences: [String: [String: String]] = [:]
        /// How many messages leave once more.
        var repeatCount = 0

        var name: String { "\(folder) \(section) as \(party)" }
        var testDescription: String { name }
    }

    /// Parties that nobody plays, and why.
    static let notPlayed = [
        "rfc3665 3.4 as Proxy 1": "It is the proxy that fails: it says nothing, and the INVITE to it is repeated."
    ]

    static let rows = calls + registrations + servers + others + transfers

    // MARK: RFC 3665, the agents

    private static let (alice, bob) = ("sip:alice@atlanta.example.com", "sip:bob@biloxi.example.com")
    private static let heard = ["progress 180", "agreed sendsreceives", "established"]
    private static let called = ["incoming", "agreed sendsreceives", "established", "ended us hungUp"]

    private static func row(
        _ section: String,
        _ party: String,
        _ transports: [Flow.Transport],
        _ verbs: [String: [FlowVerb]],
        told: [String]
    ) -> Row {
        let identity = party == "Alice" ? alice : bob
        let agent = Row.Agent(identity: identity, verbs: verbs)
        return Row(
            folder: "rfc3665",
            section: section,
            party: party,
            transports: transports,
            agent: agent,
            told: told
        )
    }

    private static let firstProxy = "sip:ss1.atlanta.example.com;lr"
    private static let routes = "the ACK to a refusal has the Routes of its INVITE (RFC 3261, section 17.1.1.3)"
    private static let credentials = "the ACK to a 2xx has the credentials of its INVITE (RFC 3261, section 13.2.2.4)"

    private static let calls: [Row] = [
        row("3.1", "Alice", [.tcp], ["3.1-01": [.call(bob)]], told: heard + ["ended them hungUp"]),
        row(
            "3.1",
            "Bob",
            [.tcp],
            ["3.1-02": [.ring()], "3.1-03": [.answer()], "3.1-05": [.hangUp()]],
            told: called
        ),
        row("3.2", "Alice", [.tcp], ["3.2-01": [.call(bob, by: firstProxy)]], told: heard + ["ended them hungUp"])
            .but("3.2-03", "Route", routes).but("3.2-15", "Proxy-Authorization", credentials),
        row(
            "3.2",
            "Bob",
            [.tcp],
            ["3.2-09": [.ring()], "3.2-12": [.answer()], "3.2-18": [.hangUp()]],
            told: called
        ),
        row(
            "3.4",
            "Alice",
            [.udp],
            ["3.4-01": [.call(bob, by: firstProxy)], "3.4-02": [.wait(.seconds(40)), .call(bob)]],
            told: ["ended network timeout"] + heard + ["ended them hungUp"]
        )
        .repeating(6).but("3.4-12", "Proxy-Authorization", credentials),
        row(
            "3.4",
            "Bob",
            [.udp],
            ["3.4-08": [.ring()], "3.4-10": [.answer()], "3.4-14": [.hangUp()]],
            told: called
        ),
        row(
            "3.6",
            "Alice",
            [.udp, .tcp],
            ["3.6-01": [.call(bob, isOfferDelayed: true)]],
            told: ["progress 302"] + heard + ["ended them hungUp"]
        ),
        row(
            "3.6",
            "Bob",
            [.tcp],
            ["3.6-07": [.ring()], "3.6-09": [.answer()], "3.6-13": [.hangUp()]],
            told: ["incoming", "established", "agreed sendsreceives", "ended us hungUp"]
        ),
        row(
            "3.6",
            "Redirect Server",
            [.udp],
            ["3.6-02": [.redirect("sip:bob@chicago.example.com;transport=tcp")]],
            told: ["incoming", "ended us refused(302)"]
        ),
        row(
            "3.7",
            "Alice",
            [.udp],
            ["3.7-01": [.call(bob)], "3.7-12": [.hangUp()]],
            told: heard + ["agreed sendsreceives", "ended us hungUp"]
        ),
        row(
            "3.7",
            "Bob",
            [.udp],
            ["3.7-04": [.ring()], "3.7-06": [.answer()], "3.7-09": [.move("192.0.2.100")]],
            told: ["incoming", "agreed sendsreceives", "established", "agreed sendsreceives", "ended them hungUp"]
        ),
        row("3.9", "Alice", [.tcp], ["3.9-01": [.call(bob, by: firstProxy)]], told: ["ended them refused(486)"])
            .after("3.2").but("3.9-08", "Route", routes)
            .but("3.9-08", "Proxy-Authorization", "the ACK to a refusal need not have them (the same section)"),
        row("3.9", "Bob", [.tcp], ["3.9-04+486": [.reject(486)]], told: ["incoming", "ended us refused(486)"]),
    ]

    // MARK: RFC 3665, registrations

    private static let registrations: [Row] = [
        registration("2.1", ["2.1-01": [.register]], told: ["registration progress", "registration ok"]),
        registration("2.2", ["2.2-01": [.refresh]], told: ["registration refreshing", "registration ok"]).after("2.1")
            .but("2.2-01", "Contact", "it binds itself, and no address of mail"),
        registration("2.4", ["2.4-01": [.unregister]], told: ["registration progress", "registration cleared"])
            .after("2.1")
            .but("2.4-01", "Contact", "it takes its own binding away, and leaves those of other phones"),
    ]

    private static func registration(_ section: String, _ verbs: [String: [FlowVerb]], told: [String]) -> Row {
        let agent = Row.Agent(identity: "sips:bob@biloxi.example.com", verbs: verbs)
        return Row(folder: "rfc3665", section: section, party: "Bob", transports: [.tls], agent: agent, told: told)
    }

    // MARK: RFC 3665, the servers

    private static func server(
        _ section: String,
        _ party: String,
        _ transport: Flow.Transport,
        _ server: FlowServer,
        told: [String] = []
    ) -> Row {
        Row(
            folder: "rfc3665",
            section: section,
            party: party,
            transports: [transport],
            server: server,
            told: told
        )
    }

    private static let registrar = FlowServer(
        domain: "biloxi.example.com",
        name: "ss2.biloxi.example.com",
        asksBob: true
    )
    private static let atlanta = FlowServer(domain: "atlanta.example.com", name: "ss1.atlanta.example.com")
    private static let biloxi = FlowServer(
        domain: "biloxi.example.com",
        name: "ss2.biloxi.example.com",
        contact: "sip:bob@client.biloxi.example.com;transport=tcp"
    )
    private static let biloxiByUDP = biloxi.with { $0.contact = "sip:bob@client.biloxi.example.com" }
    private static let chicago = FlowServer(
        domain: "chicago.example.com",
        name: "ss3.chicago.example.com",
        contact: "sip:bob@client.chicago.example.com;transport=tcp"
    )

    private static let servers: [Row] = [
        server(
            "2.1",
            "SIP Server",
            .tls,
            registrar,
            told: ["bob at sips:bob@client.biloxi.example.com for 3600"]
        ),
        server("2.2", "SIP Server", .tls, registrar, told: ["bob at mailto:bob@biloxi.example.com for 3600"])
            .after("2.1"),
        server("2.4", "SIP Server", .tls, registrar, told: ["bob at sips:bob@client.biloxi.example.com for 0"])
            .after("2.1"),
        server("3.2", "Proxy 1", .tcp, atlanta),
        server("3.2", "Proxy 2", .tcp, biloxi),
        server("3.4", "Proxy 2", .udp, biloxiByUDP),
        server("3.6", "Proxy 3", .tcp, chicago),
        server("3.7", "Proxy 2", .udp, biloxiByUDP.with { $0.staysOnWay = false }),
        server("3.9", "Proxy 1", .tcp, atlanta).after("3.2"),
        server("3.9", "Proxy 2", .tcp, biloxi),
    ]

    // MARK: Texts, and calls in the place of others

    static func other(
        _ folder: String,
        _ section: String,
        _ party: String,
        _ identity: String,
        _ transport: Flow.Transport,
        _ verbs: [String: [FlowVerb]],
        told: [String]
    ) -> Row {
        let agent = Row.Agent(identity: identity, verbs: verbs)
        return Row(folder: folder, section: section, party: party, transports: [transport], agent: agent, told: told)
    }

    static let answered = ["agreed sendsreceives", "established"]
    private static let text = "Watson, come here."
    private static let early = "425928@phone.example.org;to-tag=7743;from-tag=6472;early-only"

    private static let others: [Row] = [
        other(
            "rfc3428",
            "3428",
            "User 1",
            "sip:user1@domain.com",
            .tcp,
            ["3428-message": [.send(text, to: "sip:user2@domain.com")]],
            told: ["response 200"]
        ),
        other("rfc3428", "3428", "User 2", "sip:user2@domain.com", .tcp, [:], told: ["message \(text)"]),
        other(
            "rfc4538",
            "10",
            "A",
            "sip:A@example.com",
            .tls,
            ["10-01": [.call("sips:B@example.com")]],
            told: answered
        ),
        other("rfc4538", "10", "B", "sip:B@example.org", .tls, ["10-02": [.answer()]], told: ["incoming"] + answered),
        other(
            "rfc3891",
            "1",
            "Bob",
            "sip:bob@example.org",
            .udp,
            [
                "1-01": [
                    .call("sip:parkingplace@example.org", headers: ["Referred-By": "<sip:alice@phone1.example.org>"])
                ]
            ],
            told: answered
        ),
        other(
            "rfc3891",
            "1",
            "Parking Place",
            "sip:parkplace@example.org",
            .udp,
            ["1-02": [.answer()]],
            told: ["incoming"] + answered
        ),
        other(
            "rfc3891",
            "7.1",
            "Alice",
            "sip:alice@example.org",
            .udp,
            ["7.1-01": [.call("sip:bob@example.org")], "7.1-03": [.answer(1)]],
            told: ["progress 180", "incoming"] + answered + ["ended us replaced"]
        )
        .but("7.1-04", "Contact", "a CANCEL has none (RFC 3261, section 20, table 2)"),
        other(
            "rfc3891",
            "7.1",
            "Bob",
            "sip:bob@example.org",
            .udp,
            ["7.1-02": [.ring()]],
            told: ["incoming", "ended them cancelled"]
        )
        .but("7.1-05", "Contact", "the answer to a CANCEL has none (RFC 3261, section 20, table 2)"),
        other(
            "rfc3891",
            "7.1",
            "Bob's Lab",
            "sip:bob@example.org",
            .udp,
            ["7.1-02+INVITE": [.call("sip:alice@phone.example.org", headers: ["Replaces": early])]],
            told: answered
        ),
    ]
}

extension CallFlowTable.Row {
    /// Ours differs in a header of a step, lawfully.
    func but(_ step: String, _ topic: String, _ reason: String) -> Self {
        var row = self
        row.differences[step, default: [:]][topic] = reason
        return row
    }

    fileprivate func after(_ section: String) -> Self {
        var row = self
        row.before = section
        return row
    }

    fileprivate func repeating(_ count: Int) -> Self {
        var row = self
        row.repeatCount = count
        return row
    }
}

extension FlowServer {
    fileprivate func with(_ change: (inout FlowServer) -> Void) -> FlowServer {
        var server = self
        change(&server)
        return server
    }
}
