import SIP
import SIPTransport
import Testing

@testable import media_tool

/// Where `sip resolve` says that requests go, by records out of a file.
@Suite struct NameLookupTests {
    private static let zone = """
        _sip._tcp.example.org 30 SRV 10 60 5060 a.example.org
        _sip._udp.example.org 90 SRV 20 5 5062 a.example.org
        _sips._tcp.example.org SRV 1 1 5061 tls.example.org
        a.example.org A 192.0.2.7
        tls.example.org 40 CNAME b.example.org
        b.example.org 50 AAAA 2001:db8::7
        example.org NAPTR 10 50 "s" "SIP+D2T" "" _sip._tcp.example.org
        example.org NAPTR 20 50 "s" "SIP+D2U" "" _sip._udp.example.org
        plain.org A 192.0.2.9
        """

    private func targets(_ uri: String) async throws -> [String] {
        var lookup = NameLookup(seed: 1)
        let resolution = try await lookup.resolve(SIPURI(uri), by: .file(ZoneFile(parsing: Self.zone)))
        return lookup.text(resolution).split(separator: "\n").dropFirst().map { line in
            line.split(separator: " ").joined(separator: " ")
        }
    }

    @Test(
        arguments: [
            ("sip:example.org", ["tcp 192.0.2.7:5060 10 / 60 30 NAPTR", "udp 192.0.2.7:5062 20 / 5 60 NAPTR"]),
            ("sip:example.org;transport=udp", ["udp 192.0.2.7:5062 20 / 5 60 SRV"]),
            ("sips:example.org", ["tls [2001:db8::7]:5061 1 / 1 40 SRV example.org"]),
            ("sip:plain.org", ["udp 192.0.2.9:5060 60 A"]),
            ("sip:192.0.2.1:5070;transport=tcp", ["tcp 192.0.2.1:5070 literal"]),
        ]
    )
    func `targets are told in order, with what led there`(uri: String, expected: [String]) async throws {
        #expect(try await targets(uri) == expected)
    }

    @Test func `a name that leads nowhere is a failure that names it`() async {
        let error = await #expect(throws: ToolFailure.self) { try await targets("sip:nothere.org") }
        #expect(error?.description.contains("nothere.org") == true)
    }
}
