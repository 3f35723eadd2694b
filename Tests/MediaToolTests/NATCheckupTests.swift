import CallBasics
import Testing

@testable import MediaTransport
@testable import media_tool

/// What `doctor` makes of how this side is seen from outside.
@Suite struct NATCheckupTests {
    private static let local = SocketAddress(ipv4: 0x0A00_0002, port: 5000)
    private static let servers = [1, 2].map { SocketAddress(ipv4: 0xC000_0200 + $0, port: 3478) }

    private static func finding(_ ports: [UInt16?]) -> [Finding] {
        let answers = zip(servers, ports).compactMap { server, port in
            port.map { port in
                let outside = SocketAddress(ipv4: 0xCB00_7109, port: port)
                return MappingQuery.Answer(
                    server: server,
                    mapped: port == 5000 ? local : outside,
                    delay: .milliseconds(12)
                )
            }
        }
        return NATCheckup.findings(Array(servers.prefix(ports.count)), answers, from: local)
    }

    @Test(
        arguments: [
            ([5000, 5000], Finding.Status.ok, "there is no NAT"), ([7, 7], .ok, "keeps one port for all"),
            ([7, 8], .warning, "symmetric"), ([7], .ok, "A second server"),
        ] as [([UInt16], Finding.Status, String)]
    )
    func `answers tell the kind of NAT`(ports: [UInt16], status: Finding.Status, words: String) {
        let findings = Self.finding(ports)
        #expect(
            findings.count == 1 && findings[0].status == status && findings[0].finding.contains(words),
            "\(findings)"
        )
        #expect(
            findings[0].finding.contains("by 192.0.2.1:3478 after 12") && findings[0].finding.contains("10.0.0.2:5000")
        )
    }

    @Test func `a server that is silent is named`() {
        let findings = Self.finding([nil, 7])
        #expect(findings.map(\.status) == [.warning, .ok] && findings[0].finding.contains("192.0.2.1:3478"))
        #expect(Self.finding([nil, nil]).map(\.status) == [.warning, .warning])
    }
}
