internal import CallBasics
import MediaEngine
internal import SIP
internal import SIPTransport

/// What `doctor` looks at for calls by SIP: addresses and their changes, names, the usual ports, whom TLS trusts.
enum SIPCheckup {
    static func findings() async -> [Finding] {
        [addresses(), changes(), await names(), await ports(), authorities()]
    }

    /// The addresses that others can reach this machine by.
    private static func addresses() -> Finding {
        let area = "addresses"
        let families = [SocketAddress(ipv4: 0, port: 0), SocketAddress(host: "::", port: 0)].compactMap(\.self)
        let found = families.flatMap { (try? InterfaceAddresses.all(of: $0)) ?? [] }
            .map(\.host).filter { !$0.hasPrefix("127.") && $0 != "::1" }
        guard found.isEmpty else {
            return Finding(area: area, status: .ok, finding: "Others can be told \(found.joined(separator: ", ")).")
        }
        return Finding(
            area: area,
            status: .warning,
            finding: "This machine has no address but those of the loopback interface.",
            remedy: "Connect it to a network. Calls on 127.0.0.1 work."
        )
    }

    /// Whether the kernel tells when the network changes; how long the machine has slept is by the clock that counts it.
    private static func changes() -> Finding {
        let area = "changes"
        do throws(NetworkWatchError) {
            try NetworkWatcher().close()
        } catch {
            return Finding(
                area: area,
                status: .warning,
                finding: error.message,
                remedy: "Without it calls do not follow the network: have them end and begin anew."
            )
        }
        let clocks = ClockReading.now
        let slept = Int(max(clocks.boot - clocks.monotonic, .zero).roundedSeconds)
        return Finding(
            area: area,
            status: .ok,
            finding: "The kernel tells when the network changes, and that the machine has slept: \(slept) s."
        )
    }

    /// Whether name servers answer, be it that there is no such name.
    private static func names() async -> Finding {
        let area = "names"
        let start = MonotonicClock.current
        do throws(DNSClientError) {
            let client = try DNSClient(timeout: .seconds(1), tries: 1)
            guard let name = DNSName("sip.invalid") else { preconditionFailure("it is a name") }
            // No such name may ever be there (RFC 6761, section 6.4): whoever answers says so.
            switch await client.ask(DNSQuestion(name, .a)) {
            case .records, .noData, .noSuchName:
                let time = (MonotonicClock.current - start).roundedMilliseconds
                return Finding(area: area, status: .ok, finding: "The machine's name servers answer, after \(time) ms.")
            case .failure, .timeout:
                return Finding(
                    area: area,
                    status: .warning,
                    finding: "No name server answers. Calls to addresses work, those to names do not.",
                    remedy: "See /etc/resolv.conf, or give --dns or --hosts to `sip` commands."
                )
            }
        } catch {
            return Finding(area: area, status: .failure, finding: error.message, remedy: "See /etc/resolv.conf.")
        }
    }

    /// Whether there are authorities that prove certificates of servers.
    private static func authorities() -> Finding {
        let area = "authorities"
        if let found = SystemAuthorities.find(), found.count > 0 {
            return Finding(
                area: area,
                status: .ok,
                finding: "TLS trusts the \(English.count(found.count, "certificate")) of \(found.path)."
            )
        }
        return Finding(
            area: area,
            status: .warning,
            finding: "This machine has no authorities that TLS could trust: no server's certificate is proved.",
            remedy: "Install ca-certificates, or give --tls-ca to `sip` commands."
        )
    }

    /// Whether the port of SIP is free, by UDP and TCP.
    private static func ports() async -> Finding {
        let area = "ports"
        guard let agent = try? UserAgent(AgentConfiguration(identity: NameAddress(SIPURI("sip:127.0.0.1"))), seed: 0)
        else { preconditionFailure("it is a URI") }
        let endpoint = SIPEndpoint(agent) { _ in .failure }
        let finding: Finding
        do {
            _ = try await endpoint.open(at: .loopback(port: 5060), [.udp, .tcp])
            finding = Finding(area: area, status: .ok, finding: "Port 5060 of 127.0.0.1 is free, by UDP and TCP.")
        } catch {
            finding = Finding(
                area: area,
                status: .warning,
                finding: "Port 5060 is not to be had: \(error)",
                remedy: "Give another one by --local; others find it where you register or tell it."
            )
        }
        await endpoint.close()
        return finding
    }
}
