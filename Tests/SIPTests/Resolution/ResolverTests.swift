import CallBasics
import Testing

@testable import SIP

@Suite struct ResolverTests {
    /// The example of RFC 3263, section 4.1, with addresses.
    static func example() throws -> Zone {
        try Zone(
            "example.com 300 NAPTR 50 50 \"s\" \"SIPS+D2T\" _sips._tcp.example.com.",
            "example.com 300 NAPTR 90 50 \"s\" \"SIP+D2T\" _sip._tcp.example.com.",
            "example.com 300 NAPTR 100 50 \"s\" \"SIP+D2U\" _sip._udp.example.com.",
            "_sips._tcp.example.com 300 SRV 0 1 5061 server1.example.com.",
            "_sip._tcp.example.com 300 SRV 1 1 5060 server2.example.com.",
            "_sip._tcp.example.com 300 SRV 0 1 5060 server1.example.com.",
            "_sip._udp.example.com 300 SRV 0 1 5070 server2.example.com.",
            "server1.example.com 300 A 192.0.2.1",
            "server1.example.com 300 AAAA 2001:db8::1",
            "server2.example.com 300 A 192.0.2.2"
        )
    }

    /// Addresses only.
    static func hosts() throws -> Zone {
        try Zone(
            "example.com 300 A 192.0.2.7",
            "example.com 300 A 192.0.2.8",
            "example.com 300 AAAA 2001:db8::7",
            "other.example.com 300 A 192.0.2.9"
        )
    }

    @Test(arguments: [
        ("sip:alice@192.0.2.3", ["udp 192.0.2.3:5060"]),
        ("sip:192.0.2.3:5070", ["udp 192.0.2.3:5070"]),
        ("sip:192.0.2.3;transport=TCP", ["tcp 192.0.2.3:5060"]),
        ("sip:[2001:db8::3]", ["udp [2001:db8::3]:5060"]),
        ("sip:[2001:db8::3]:5090;transport=tls", ["tls [2001:db8::3]:5090 2001:db8::3"]),
        ("sips:192.0.2.3", ["tls 192.0.2.3:5061 192.0.2.3"]),
        ("sips:192.0.2.3;transport=tcp", ["tls 192.0.2.3:5061 192.0.2.3"]),
        ("sip:example.com;maddr=192.0.2.4", ["udp 192.0.2.4:5060"]),
        ("sips:example.com;maddr=192.0.2.4", ["tls 192.0.2.4:5061 example.com"]),
        ("sips:192.0.2.3;transport=udp", ["noTransport"]),
        ("sip:192.0.2.3;transport=sctp", ["noTransport"]),
        ("sip:0.0.0.0", ["unsuitableURI"]),
        ("sip:192.0.2.3:0", ["unsuitableURI"]),
        ("sip:a..b", ["unsuitableURI"]),
        ("tel:+1-201-555-0123", ["unsuitableURI"]),
    ])
    func `an address in the URI asks nobody`(uri: String, expected: [String]) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        #expect(try resolver.targets(uri, &zone) == expected)
        #expect(zone.asked.isEmpty)
        #expect(resolver.counts == ResolverCounts())
    }

    @Test func `pointers choose the transport, and further ones follow`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        #expect(
            try resolver.targets("sip:bob@example.com", &zone) == [
                "tls [2001:db8::1]:5061 example.com", "tls 192.0.2.1:5061 example.com",
                "tcp [2001:db8::1]:5060", "tcp 192.0.2.1:5060", "tcp 192.0.2.2:5060", "udp 192.0.2.2:5070",
            ]
        )
        #expect(zone.asked.first == "example.com naptr")
        #expect(Set(zone.asked).count == zone.asked.count)
    }

    @Test func `what may not be used is not asked for`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        #expect(
            try resolver.targets("sip:bob@example.com", ResolutionWishes(transports: [.udp], families: [.ipv4]), &zone)
                == ["udp 192.0.2.2:5070"]
        )
        #expect(zone.asked == ["example.com naptr", "_sip._udp.example.com srv", "server2.example.com a"])
    }

    @Test(arguments: ["sips:bob@example.com", "sip:bob@example.com;transport=tls"])
    func `nothing plain is found for a URI that is secure, and the name is that of its domain`(uri: String) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        #expect(
            try resolver.targets(uri, &zone)
                == ["tls [2001:db8::1]:5061 example.com", "tls 192.0.2.1:5061 example.com"]
        )
        #expect(!zone.asked.contains("_sip._tcp.example.com srv"))
        zone = try Self.hosts()
        resolver.forget()
        #expect(
            try resolver.targets(uri, ResolutionWishes(isSecure: true), &zone).allSatisfy { $0.hasPrefix("tls") }
        )
        #expect(try resolver.targets(uri, ResolutionWishes(transports: [.udp, .tcp]), &zone) == ["noTransport"])
    }

    @Test func `without pointers the services are asked for in our order`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        let wishes = ResolutionWishes(transports: [.udp, .tcp], families: [.ipv4], usesPointers: false)
        #expect(
            try resolver.targets("sip:example.com", wishes, &zone)
                == ["udp 192.0.2.2:5070", "tcp 192.0.2.1:5060", "tcp 192.0.2.2:5060"]
        )
        #expect(zone.asked.prefix(2) == ["_sip._udp.example.com srv", "_sip._tcp.example.com srv"])
    }

    @Test func `a port in the URI leaves only addresses to ask for, both kinds at once`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.hosts())
        _ = resolver.resolve(try SIPURI("sip:Example.COM:5080"), ResolutionWishes(), at: .zero)
        #expect(resolver.counts.outputs == 2)
        let outputs = resolver.run(&zone)
        #expect(zone.asked == ["example.com aaaa", "example.com a"])
        guard case .resolved(_, let resolution)? = outputs.first else {
            Issue.record("not found: \(outputs)")
            return
        }
        #expect(
            resolution.targets.map(\.text)
                == ["udp [2001:db8::7]:5080", "udp 192.0.2.7:5080", "udp 192.0.2.8:5080"]
        )
    }

    @Test func `a transport in the URI asks for its service, then for addresses`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.hosts())
        #expect(
            try resolver.targets("sip:example.com;transport=tcp", ResolutionWishes(families: [.ipv4]), &zone)
                == ["tcp 192.0.2.7:5060", "tcp 192.0.2.8:5060"]
        )
        #expect(zone.asked == ["_sip._tcp.example.com srv", "example.com a"])
    }

    @Test func `without any service the addresses are those of the name`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.hosts())
        #expect(try resolver.targets("sip:other.example.com", &zone) == ["udp 192.0.2.9:5060"])
        #expect(try resolver.targets("sips:other.example.com", &zone) == ["tls 192.0.2.9:5061 other.example.com"])
    }

    @Test func `a service whose target is the root is not there`() throws {
        var resolver = Resolver(seed: 1)
        var zone = try Zone(
            "_sip._udp.example.com 300 SRV 0 0 0 .",
            "example.com 300 A 192.0.2.7"
        )
        let wishes = ResolutionWishes(families: [.ipv4])
        #expect(try resolver.targets("sip:example.com", wishes, &zone) == ["tcp 192.0.2.7:5060"])
        #expect(try resolver.targets("sip:example.com;transport=udp", wishes, &zone) == ["noService"])
        zone.forgetQuestions()
        #expect(
            try resolver.targets("sip:example.com", ResolutionWishes(transports: [.udp]), &zone) == ["noService"]
        )
        #expect(!zone.asked.contains("example.com a"))
    }

    @Test(arguments: [
        (DNSAnswer.noSuchName(nil), "noSuchName"), (.noData(nil), "noAddress"), (.failure, "namesFailed"),
        (.timeout, "namesFailed"), (.records([]), "noAddress"),
    ])
    func `names that fail are told apart from names that are not there`(answer: DNSAnswer, fault: String) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        let name = try #require(DNSName("example.com"))
        zone.answers = [DNSQuestion(name, .a): answer, DNSQuestion(name, .aaaa): answer]
        #expect(try resolver.targets("sip:example.com:5060", &zone) == [fault])
        #expect(resolver.counts.lookups == 0)
        #expect(resolver.counts.questions == 0)
    }

    @Test func `one family that fails does not hide the other`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.hosts())
        zone.answers[DNSQuestion(try #require(DNSName("example.com")), .aaaa)] = .timeout
        #expect(try resolver.targets("sip:example.com:5060", &zone) == ["udp 192.0.2.7:5060", "udp 192.0.2.8:5060"])
    }

    @Test func `a server of pointers or services that fails leaves the addresses`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.hosts())
        let name = try #require(DNSName("other.example.com"))
        zone.answers[DNSQuestion(name, .naptr)] = .timeout
        for labels in ["_sip._udp", "_sip._tcp", "_sips._tcp"] {
            zone.answers[DNSQuestion(try #require(name.below(labels)), .srv)] = .failure
        }
        #expect(try resolver.targets("sip:other.example.com", &zone) == ["udp 192.0.2.9:5060"])
    }

    @Test func `ten lookups at once ask each question once`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        var ids: Set<Resolver.LookupID> = []
        for _ in 0..<10 {
            ids.insert(resolver.resolve(try SIPURI("sip:example.com"), ResolutionWishes(), at: .zero))
        }
        let outputs = resolver.run(&zone)
        #expect(ids.count == 10)
        #expect(outputs.count == 10)
        #expect(Set(zone.asked).count == zone.asked.count)
        #expect(resolver.counts.lookups == 0)
        #expect(resolver.counts.questions == 0)
        #expect(resolver.counts.outputs == 0)
    }

    @Test func `a lookup that is cancelled tells nothing and leaves no question`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Self.example())
        let id = resolver.resolve(try SIPURI("sip:example.com"), ResolutionWishes(), at: .zero)
        let other = resolver.resolve(try SIPURI("sip:example.com"), ResolutionWishes(), at: .zero)
        resolver.cancel(id)
        #expect(resolver.counts.questions == 1)
        resolver.cancel(other)
        #expect(resolver.counts.lookups == 0)
        #expect(resolver.counts.questions == 0)
        #expect(resolver.run(&zone).isEmpty)
        #expect(resolver.droppedCount == 1)
        #expect(resolver.counts.kept == 0)
    }

    @Test func `lookups are bounded`() throws {
        var resolver = Resolver(seed: 1)
        let uri = try SIPURI("sip:example.com")
        for _ in 0...Resolver.lookupCount { _ = resolver.resolve(uri, ResolutionWishes(), at: .zero) }
        #expect(resolver.counts.lookups == Resolver.lookupCount)
        var faults: [ResolutionFault] = []
        while let output = resolver.poll() { if case .failed(_, let error) = output { faults.append(error.code) } }
        #expect(faults == [.tooManyLookups])
    }
}
