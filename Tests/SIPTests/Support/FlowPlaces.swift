/// Where the parties of a flow are, and what the names in its messages lead to.
struct FlowPlaces {
    /// The addresses of each party; the first is where it begins.
    var parties: [String: [String]]
    var hosts: [String: String]

    /// As the document has it; where it names no addresses, as it could be.
    init(_ folder: String, _ section: String) {
        switch folder {
        case "rfc3665": self = Self.rfc3665
        case "rfc3428": self = Self.rfc3428
        case "rfc4538": self = Self.rfc4538
        case "rfc3891": self = Self.rfc3891
        default: self = Self.transfer
        }
        switch "\(folder) \(section)" {
        case "rfc3665 3.1":
            // There is no proxy.
            hosts["biloxi.example.com"] = "192.0.2.201"
        case "rfc3665 3.6": parties["Bob"] = ["192.0.2.100"]
        case "rfc3891 1": hosts["example.org"] = "192.0.2.4"
        default: break
        }
    }

    private init(_ parties: [String: [String]], _ hosts: [String: String]) {
        (self.parties, self.hosts) = (parties, hosts)
    }

    /// The first address of a party.
    func address(of party: String) -> String { parties[party]?.first ?? "192.0.2.250" }

    private static let rfc3665 = FlowPlaces(
        [
            "Alice": ["192.0.2.101"], "Bob": ["192.0.2.201", "192.0.2.100"], "Proxy 1": ["192.0.2.111"],
            "Proxy 2": ["192.0.2.222"], "Proxy 3": ["192.0.2.233"], "Redirect Server": ["192.0.2.222"],
            "SIP Server": ["192.0.2.222"],
        ],
        [
            "client.atlanta.example.com": "192.0.2.101", "client.biloxi.example.com": "192.0.2.201",
            "client.chicago.example.com": "192.0.2.100", "ss1.atlanta.example.com": "192.0.2.111",
            "ss2.biloxi.example.com": "192.0.2.222", "biloxi.example.com": "192.0.2.222",
            "ss3.chicago.example.com": "192.0.2.233", "chicago.example.com": "192.0.2.233",
        ]
    )

    private static let rfc3428 = FlowPlaces(
        ["User 1": ["192.0.2.1"], "User 2": ["192.0.2.2"]],
        ["user1pc.domain.com": "192.0.2.1", "domain.com": "192.0.2.2"]
    )

    private static let rfc4538 = FlowPlaces(
        ["A": ["192.0.2.1"], "B": ["192.0.2.2"]],
        ["host.example.com": "192.0.2.1", "example.com": "192.0.2.2", "pc.example.org": "192.0.2.2"]
    )

    private static let rfc3891 = FlowPlaces(
        [
            "Alice": ["192.0.2.1"], "Bob": ["192.0.2.2"], "Bob's Lab": ["192.0.2.3"], "Parking Place": ["192.0.2.4"],
        ],
        [
            "phone.example.org": "192.0.2.1", "bobster.example.org": "192.0.2.2", "labpc.example.org": "192.0.2.3",
            "monopoly.example.org": "192.0.2.4", "example.org": "192.0.2.2",
        ]
    )

    private static let transfer = FlowPlaces(
        ["Transferor": ["192.0.2.1"], "Transferee": ["192.0.2.4"], "Transfer Target": ["192.0.2.8"]],
        [
            "atlanta.example.com": "192.0.2.1", "pc33.atlanta.example.com": "192.0.2.1",
            "biloxi.example.com": "192.0.2.4", "referee.example": "192.0.2.4", "chicago.example.com": "192.0.2.8",
        ]
    )
}
