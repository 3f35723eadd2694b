import CallBasics
import Testing

@testable import SIP

/// Answers that lie, lead in circles or never end.
@Suite struct HostileAnswerTests {
    let name = DNSName("example.com")
    let wishes = ResolutionWishes(families: [.ipv4], usesPointers: false)

    func address(_ owner: String, _ host: String) throws -> DNSRecord {
        DNSRecord(
            try #require(DNSName(owner)),
            seconds: 300,
            .address(try #require(SocketAddress(host: host, port: 0)))
        )
    }

    func alias(_ owner: String, _ target: String, seconds: UInt32 = 300) throws -> DNSRecord {
        DNSRecord(try #require(DNSName(owner)), seconds: seconds, .alias(try #require(DNSName(target))))
    }

    func targets(of records: [DNSRecord], kind: DNSQuestion.Kind = .a) throws -> [String] {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        zone.answers[DNSQuestion(try #require(name), kind)] = .records(records)
        return try resolver.targets("sip:example.com:5060", wishes, &zone)
    }

    @Test func `records of other names do not count`() throws {
        #expect(
            try targets(of: [address("evil.example", "192.0.2.66"), address("example.com", "192.0.2.1")])
                == ["udp 192.0.2.1:5060"]
        )
        #expect(try targets(of: [address("evil.example", "192.0.2.66")]) == ["noAddress"])
    }

    @Test func `records of another kind do not count`() throws {
        let service = ServiceRecord(priority: 0, weight: 0, port: 1, target: try #require(name))
        #expect(
            try targets(of: [
                address("example.com", "2001:db8::1"), address("example.com", "0.0.0.0"),
                DNSRecord(try #require(name), seconds: 300, .service(service)),
            ]) == ["noAddress"]
        )
    }

    @Test func `aliases are followed, but not in circles or for ever`() throws {
        #expect(
            try targets(of: [
                alias("b.example", "c.example"), alias("EXAMPLE.com.", "b.example"), address("c.example", "192.0.2.3"),
            ]) == ["udp 192.0.2.3:5060"]
        )
        #expect(
            try targets(of: [alias("example.com", "b.example"), alias("b.example", "example.com")])
                == ["noAddress"]
        )
        let chain =
            try [alias("example.com", "n0.example")]
            + (0..<20).map { try alias("n\($0).example", "n\($0 + 1).example") }
        #expect(try targets(of: chain + [address("n20.example", "192.0.2.3")]) == ["noAddress"])
        #expect(try targets(of: chain + [address("n3.example", "192.0.2.3")]) == ["udp 192.0.2.3:5060"])
    }

    @Test func `of very many records a few are used`() throws {
        let many = try (0..<5000).map { try address("example.com", "10.1.\($0 / 256).\($0 % 256)") }
        #expect(try targets(of: many).count == TargetSearch.addressCount)
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        let service = try #require(DNSName("_sip._udp.example.com"))
        let services = try (0..<UInt16(5000)).map { index in
            let target = try #require(DNSName("h\(index).example.com"))
            return DNSRecord(
                service,
                seconds: 300,
                .service(ServiceRecord(priority: index, weight: 0, port: 5060, target: target))
            )
        }
        zone.answers[DNSQuestion(service, .srv)] = .records(services)
        for index in 0..<5000 {
            let owner = "h\(index).example.com"
            zone.answers[DNSQuestion(try #require(DNSName(owner)), .a)] = .records(
                try (0..<20).map { try address(owner, "10.2.3.\($0)") }
            )
        }
        #expect(try resolver.targets("sip:example.com", wishes, &zone).count <= TargetSearch.targetCount)
        #expect(zone.asked.count <= 3 + TargetSearch.hopCount)
    }

    @Test func `a service that leads to itself ends`() throws {
        var (resolver, zone) = (
            Resolver(seed: 1), try Zone("_sip._udp.example.com 300 SRV 0 0 5060 _sip._udp.example.com")
        )
        #expect(try resolver.targets("sip:example.com", wishes, &zone) == ["noAddress"])
    }

    @Test func `pointers of another kind are passed over`() throws {
        var resolver = Resolver(seed: 1)
        var zone = try Zone(
            "example.com 300 NAPTR 10 0 \"u\" \"E2U+sip\" x.example.com",
            "example.com 300 NAPTR 10 0 \"s\" \"SIP+D2S\" _sip._sctp.example.com",
            "example.com 300 NAPTR 10 0 \"S\" \"sip+d2u\" .",
            "example.com 300 NAPTR 20 0 \"S\" \"sip+d2u\" _sip._udp.example.com",
            "_sip._udp.example.com 300 SRV 0 0 5062 example.com",
            "example.com 300 A 192.0.2.1"
        )
        #expect(
            try resolver.targets("sip:example.com", ResolutionWishes(families: [.ipv4]), &zone)
                == ["udp 192.0.2.1:5062"]
        )
    }

    @Test func `an answer that nobody asked for is dropped`() throws {
        var resolver = Resolver(seed: 1)
        let question = DNSQuestion(try #require(name), .a)
        resolver.receive(.records([try address("example.com", "192.0.2.66")]), to: question, at: .zero)
        #expect(resolver.droppedCount == 1)
        #expect(resolver.counts == ResolverCounts())
    }

    @Test(arguments: [
        "", "..", "a..b", ".a", String(repeating: "a", count: 64), String(repeating: "a.", count: 127) + "a",
    ])
    func `a name with an empty or a long part is none`(text: String) throws {
        #expect(DNSName(text) == nil || text.count == 253)
    }
}
