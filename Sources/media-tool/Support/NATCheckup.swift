internal import CallBasics
import CallCore
import MediaEngine
internal import MediaTransport
internal import SIPTransport

/// What `doctor` looks at for ways through NATs: who tells how this side is seen from outside, and what that says.
enum NATCheckup {
    private static let area = "nat"

    /// Asks the servers, from one port.
    static func findings(by servers: [STUNServer]) async -> [Finding] {
        do {
            let addresses = try await STUNServer.addresses(of: servers)
            guard let first = addresses.first else { return [] }
            guard let host = await SourceAddress.towards(first) else {
                return [Finding(area: area, status: .warning, finding: "No way leads to \(first).")]
            }
            let socket = try UDPSocket(bind: host.with(port: 0))
            var generator = SystemRandomNumberGenerator()
            let query = MappingQuery(addresses, &generator, at: MonotonicClock.current)
            let answers = try await BlockingWork.run { socket.ask(query).answers }
            return findings(addresses, answers, from: socket.localAddress)
        } catch {
            return [Finding(area: area, status: .warning, finding: "\(error)")]
        }
    }

    /// Asks a server of TURN for an address, and gives it back.
    static func finding(of server: TURNServer) async -> Finding {
        guard let host = await SourceAddress.towards(server.address) else {
            return Finding(area: area, status: .warning, finding: "No way leads to \(server.address).")
        }
        do {
            let socket = try UDPSocket(bind: host.with(port: 0))
            let relays = try await server.allocations(for: socket.localAddress)
            return try await BlockingWork.run { finding(of: server, relays, over: socket) }
        } catch let error as TURNError {
            return finding(of: server, lacking: error)
        } catch {
            return Finding(area: area, status: .warning, finding: "\(error)")
        }
    }

    private static func finding(of server: TURNServer, lacking error: TURNError) -> Finding {
        Finding(
            area: area,
            status: .warning,
            finding: "The relay \(server.address) (TURN) gives no address: \(error).",
            remedy: "Check its address, the user and the password; calls go on without it."
        )
    }

    private static func finding(of server: TURNServer, _ relays: [TURNAllocation], over socket: UDPSocket) -> Finding {
        var generator = SystemRandomNumberGenerator()
        let now = MonotonicClock.current
        var answers = socket.ask(GatheringQuery(MappingQuery([], &generator, at: now), relays, at: now))
        for (bytes, destination) in answers.withdrawal(at: MonotonicClock.current) {
            socket.send(bytes.span, to: destination, at: MonotonicClock.current)
        }
        guard var relay = answers.relay, let relayed = relay.relayed else {
            return finding(of: server, lacking: answers.failure ?? .silent)
        }
        relay.close(at: MonotonicClock.current)
        for (bytes, destination) in relay.takeDatagrams() {
            socket.send(bytes.span, to: destination, at: MonotonicClock.current)
        }
        let place = relay.isCarried ? server.address : relay.server
        guard !relayed.isPrivate || place.isPrivate else {
            return Finding(
                area: area,
                status: .warning,
                finding:
                    "The relay \(place) (TURN) gives \(relayed), which nobody outside its own network reaches.",
                remedy: "Have it tell its public address (coturn: external-ip)."
            )
        }
        return Finding(
            area: area,
            status: .ok,
            finding:
                "The relay \(place) (TURN) gives \(relayed) after \(relay.delay.roundedMilliseconds) ms: by it, calls find a way wherever \(relay.isCarried ? "a connection (\(server.transport.connectionName))" : "UDP") gets out."
        )
    }

    /// What the answers say of the port `local`.
    static func findings(
        _ servers: [SocketAddress],
        _ answers: [MappingQuery.Answer],
        from local: SocketAddress
    ) -> [Finding] {
        let silent = servers.filter { server in !answers.contains { $0.server == server } }
        return silent.map { server in
            Finding(
                area: area,
                status: .warning,
                finding: "\(server) does not answer (STUN).",
                remedy:
                    "Try another server. Where none answers, UDP does not get out: calls find a way by a relay alone, by TCP or TLS (--turn)."
            )
        } + (answers.isEmpty ? [] : [kind(answers, local)])
    }

    private static func kind(_ answers: [MappingQuery.Answer], _ local: SocketAddress) -> Finding {
        let seen = answers.map { "\($0.mapped) by \($0.server) after \($0.delay.roundedMilliseconds) ms" }
        let told = "Port \(local) is seen as " + seen.joined(separator: ", ")
        let places = Set(answers.map(\.mapped))
        guard places.count == 1 else {
            return Finding(
                area: area,
                status: .warning,
                finding: "\(told): the NAT takes another port for each that is sent to (symmetric).",
                remedy:
                    "By ICE, calls find a way to sides with a public address, or a NAT that lets in any port of ours; to all by a relay (--turn)."
            )
        }
        if places.contains(local) { return Finding(area: area, status: .ok, finding: "\(told): there is no NAT.") }
        guard Set(answers.map(\.server.host)).count > 1 else {
            return Finding(
                area: area,
                status: .ok,
                finding: "\(told): there is a NAT. A second server, at another address, tells of which kind."
            )
        }
        return Finding(
            area: area,
            status: .ok,
            finding:
                "\(told): the NAT keeps one port for all. By ICE, calls find a way, but for some where the other side's is symmetric."
        )
    }
}

extension TURNServer.Transport {
    /// What a connection to it is of.
    fileprivate var connectionName: String { if case .tls = self { "TLS" } else { "TCP" } }
}
