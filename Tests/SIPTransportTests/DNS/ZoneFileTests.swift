import CallBasics
import SIP
import SIPTransport
import Testing

/// Records out of a file answer as a name server does.
@Suite struct ZoneFileTests {
    private static let text = """
        # for people
        _sip._tcp.Example.org 30 SRV 10 60 5060 a.example.org   ; and for these
        a.example.org   A     192.0.2.7
        a.example.org   AAAA  2001:db8::7
        www.example.org CNAME a.example.org
        example.org NAPTR 10 50 "s" "SIP+D2T" "" _sip._tcp.example.org
        """

    private func answer(_ name: String, _ kind: DNSQuestion.Kind) throws -> DNSAnswer {
        try ZoneFile(parsing: Self.text).answer(to: DNSQuestion(try #require(DNSName(name)), kind))
    }

    private func values(_ name: String, _ kind: DNSQuestion.Kind) throws -> [DNSRecord.Value] {
        guard case .records(let records) = try answer(name, kind) else { return [] }
        return records.map(\.value)
    }

    @Test func `each kind of record is found by its name, in whatever case`() throws {
        let a = try #require(DNSName("a.example.org"))
        #expect(try values("A.example.ORG", .a) == [.address(SocketAddress(ipv4: 0xC000_0207, port: 0))])
        #expect(try values("a.example.org", .aaaa).count == 1)
        let service = ServiceRecord(priority: 10, weight: 60, port: 5060, target: a)
        let expected = DNSRecord(try #require(DNSName("_sip._tcp.example.org")), seconds: 30, .service(service))
        #expect(try answer("_sip._tcp.example.org", .srv) == .records([expected]))
        guard case .pointer(let pointer)? = try values("example.org", .naptr).first else {
            Issue.record("there is no NAPTR record")
            return
        }
        #expect(
            pointer.flags == "s" && pointer.service == "SIP+D2T"
                && pointer.replacement.description == "_sip._tcp.example.org"
        )
    }

    @Test func `an alias comes with what it stands for`() throws {
        let alias = DNSRecord.Value.alias(try #require(DNSName("a.example.org")))
        #expect(Set(try values("www.example.org", .a)) == [alias, .address(SocketAddress(ipv4: 0xC000_0207, port: 0))])
        #expect(try answer("www.example.org", .srv) == .noData(nil))
    }

    @Test func `no such name is told from no such record`() throws {
        #expect(try answer("b.example.org", .a) == .noSuchName(nil))
        #expect(try answer("a.example.org", .srv) == .noData(nil))
    }

    @Test(
        arguments: [
            "a A", "a A 300.1.1.1", "a AAAA 192.0.2.1", "a SRV 1 2 3", "a SRV 1 2 70000 b", "a..b A 192.0.2.1",
            "a MX 1 b",
            "a -1 A 192.0.2.1",
        ]
    )
    func `a line that is no record is refused by its number`(line: String) {
        let error = #expect(throws: ZoneFileError.self) { try ZoneFile(parsing: "\n# x\n" + line) }
        #expect(error?.message.contains("Line 3 ") == true)
    }
}
