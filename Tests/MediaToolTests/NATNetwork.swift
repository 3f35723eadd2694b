import Foundation
import TestSupport
import Testing

/// Two hosts behind NATs, and the public side between them, which has a server of SIP and one of STUN and TURN.
///
///     alice 192.168.1.2 ── NAT 198.51.100.2 ── 198.51.100.1 public 203.0.113.1 ── NAT 203.0.113.2 ── bob 192.168.2.2
final class NATNetwork {
    /// What a NAT does, as nftables has it.
    enum Kind: String, Sendable {
        /// One outer port for all; only who has been sent to from it comes in. The usual router at home.
        case portRestricted = "masquerade"
        /// An outer port for each that is sent to.
        case symmetric = "masquerade fully-random"
        /// No UDP gets out, as in some offices.
        case blocked = "drop"
    }

    /// Whether the kernel has such NATs, and this process may make one.
    static let isPossible: Bool = {
        guard let nft, coturn != nil else { return false }
        let trial = "echo 'table ip nat { chain out { type nat hook postrouting priority 100; }; }' | \(nft) -f -"
        return (try? ProgramRun("/usr/bin/env", ["unshare", "--net", "sh", "-ec", trial]))?.wait() == 0
    }()

    private static let nft = Program.path("nft")
    private static let coturn = Program.path("turnserver")
    /// The server of STUN, which has another address on Bob's side.
    static let stun = "198.51.100.1"
    static let otherStun = "203.0.113.1"
    /// Whom the relay takes, and what that proves.
    static let relay = ["--turn", "alice@\(stun)"]
    static let securedRelay = ["--turn", "turns:alice@\(stun)", "--turn-ca", TestCertificates.authority]
    static let password = ["MEDIA_TOOL_TURN_PASSWORD": "a password"]

    let alice: NetworkNamespace
    let bob: NetworkNamespace
    private let kinds: [Kind]
    private let nats: [NetworkNamespace]
    private let middle: NetworkNamespace
    private let relayCommand: [String]
    private let scratch: Scratch
    private var servers: [ProgramRun]

    init(_ kinds: [Kind]) async throws {
        self.kinds = kinds
        (alice, bob) = (try await .make(), try await .make())
        (nats, middle) = ([try await .make(), try await .make()], try await .make())
        for (index, (kind, host)) in zip(kinds, [alice, bob]).enumerated() {
            let (nat, inside) = (nats[index], "192.168.\(index + 1)")
            let outside = index == 0 ? "198.51.100" : "203.0.113"
            try nat.ip(
                """
                link add wan type veth peer name p\(index) netns \(middle.path)
                link add lan type veth peer name eth0 netns \(host.path)
                address add \(outside).2/24 dev wan; address add \(inside).1/24 dev lan
                link set wan up; link set lan up; route add default via \(outside).1
                """
            )
            try host.ip("address add \(inside).2/24 dev eth0; link set eth0 up; route add default via \(inside).1")
            try middle.ip("address add \(outside).1/24 dev p\(index); link set p\(index) up")
            // What nobody has asked for is dropped at once: else it would take the place of what is asked for later.
            let rules = """
                table ip nat {
                    chain through {
                        type filter hook forward priority 0
                        \(kind == .blocked ? "meta l4proto udp drop" : "")
                    }
                    chain out {
                        type nat hook postrouting priority 100
                        oifname wan meta l4proto udp \(kind.rawValue)
                        oifname wan masquerade
                    }
                    chain in {
                        type filter hook input priority 0
                        iifname wan meta l4proto udp drop
                    }
                }
                """
            try Self.shell(
                nat,
                "echo 1 >/proc/sys/net/ipv4/ip_forward; echo '\(rules)' | \(try #require(Self.nft)) -f -"
            )
        }
        try Self.shell(middle, "echo 1 >/proc/sys/net/ipv4/ip_forward")
        let scratch = try Scratch()
        self.scratch = scratch
        let relay = [
            try #require(Self.coturn), "-n", "-v", "--cert", TestCertificates.of("relay").path, "--pkey",
            TestCertificates.of("relay").keyPath, "--no-dtls", "--no-cli", "-L", Self.stun, "-L",
            Self.otherStun, "-E", Self.stun, "--lt-cred-mech", "--user", "alice:a password", "--realm", "example.test",
            "--log-file", "stdout", "--pidfile", scratch.file("pid"), "--userdb", scratch.file("db"),
        ]
        let sip = [ToolRun.path, "sip", "server", "--domain", "example.test", "--local", "\(Self.stun):5060", "--json"]
        relayCommand = relay
        servers = try [relay, sip].map { [middle] command in
            try ProgramRun(middle.command[0], middle.command.dropFirst() + command)
        }
        try #require(servers[1].prints(#""event":"listening""#), "\(servers[1].errors)")
        try requireRelay()
    }

    private func requireRelay() throws {
        try #require(servers[0].prints("Total General servers"), "\(servers[0].output)")
    }

    /// Has the relay die, and another one take its place that knows nothing of what it has given.
    func replaceRelay() throws {
        servers[0].send(SIGKILL)
        servers[0].wait()
        servers[0] = try ProgramRun(middle.command[0], middle.command.dropFirst() + relayCommand)
        try requireRelay()
    }

    /// Has Alice's host go to another address behind its NAT.
    func moveAlice() throws {
        try alice.ip(
            "address del 192.168.1.2/24 dev eth0; address add 192.168.1.3/24 dev eth0; route add default via 192.168.1.1"
        )
    }

    /// How many addresses the relay has given, and has been given back.
    var relayCounts: (given: Int, returned: Int) {
        let lines = servers[0].output.split(separator: "\n")
        return (lines.count { $0.contains(": new, realm") }, lines.count { $0.contains("lifetime=0") })
    }

    /// Waits until all have been given back; whether they have.
    func hasAllBack() -> Bool {
        ProgramRun.wait { relayCounts.given == relayCounts.returned || !servers[0].isRunning }
        return relayCounts.given == relayCounts.returned
    }

    deinit { for server in servers { server.send(SIGKILL) } }

    private static func shell(_ network: NetworkNamespace, _ script: String) throws {
        let run = try ProgramRun(network.command[0], network.command.dropFirst() + ["sh", "-ec", script])
        try #require(run.wait() == 0, "\(run.errors)")
    }

    /// Starts the tool on a host, with an account at the server of SIP.
    func run(_ command: [String], as user: String, on host: NetworkNamespace) throws -> ToolRun {
        let isBlocked = kinds[host === alice ? 0 : 1] == .blocked
        let proxy = "sip:\(Self.stun);lr\(isBlocked ? ";transport=tcp" : "")"
        let account = ["--account", "sip:\(user)@example.test", "--proxy", proxy, "--json"]
        return try run(command + account, on: host)
    }

    /// Starts the tool on a host; it has the password at the relay.
    func run(
        _ command: [String],
        on host: NetworkNamespace,
        password: [String: String] = NATNetwork.password
    ) throws -> ToolRun {
        let arguments = host.command.dropFirst() + [ToolRun.path] + command
        return try ToolRun(Array(arguments), program: host.command[0], environment: password)
    }
}
