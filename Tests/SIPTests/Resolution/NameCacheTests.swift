import CallBasics
import Testing

@testable import SIP

@Suite struct NameCacheTests {
    let wishes = ResolutionWishes(families: [.ipv4])

    /// Whether the name is asked for again at a time.
    func isAsked(_ resolver: inout Resolver, _ zone: inout Zone, at now: MediaTime) throws -> Bool {
        zone.forgetQuestions()
        _ = try resolver.targets("sip:example.com:5060", wishes, &zone, at: now)
        return !zone.asked.isEmpty
    }

    @Test(arguments: [(300, 300), (0, 5), (4_000_000_000, 86_400)] as [(Int, Int64)])
    func `an answer is kept for its time, which has a floor and a ceiling`(seconds: Int, kept: Int64) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone("example.com \(seconds) A 192.0.2.1"))
        #expect(try isAsked(&resolver, &zone, at: .zero))
        #expect(try !isAsked(&resolver, &zone, at: .ms(kept * 1000 - 1)))
        #expect(try isAsked(&resolver, &zone, at: .ms(kept * 1000)))
    }

    @Test func `the shortest time along aliases counts`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        let (name, other) = (try #require(DNSName("example.com")), try #require(DNSName("b.example")))
        zone.answers[DNSQuestion(name, .a)] = .records([
            DNSRecord(name, seconds: 60, .alias(other)),
            DNSRecord(other, seconds: 900, .address(SocketAddress(ipv4: 0xC000_0201, port: 0))),
        ])
        _ = resolver.resolve(try SIPURI("sip:example.com:5060"), wishes, at: .zero)
        guard case .resolved(_, let resolution)? = resolver.run(&zone).first else {
            Issue.record("not found")
            return
        }
        #expect(resolution.expires == .ms(60_000))
        #expect(!resolution.isStale)
    }

    @Test(
        arguments: [
            (DNSAnswer.noSuchName(.seconds(60)), 60), (.noData(nil), 30), (.noSuchName(.seconds(7200)), 300),
        ] as [(DNSAnswer, Int64)]
    )
    func `that there is nothing is kept, too`(answer: DNSAnswer, kept: Int64) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        zone.answers[DNSQuestion(try #require(DNSName("example.com")), .a)] = answer
        #expect(try isAsked(&resolver, &zone, at: .zero))
        #expect(try !isAsked(&resolver, &zone, at: .ms(kept * 1000 - 1)))
        #expect(try isAsked(&resolver, &zone, at: .ms(kept * 1000)))
    }

    @Test func `that nobody answered is not kept`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone())
        zone.answers[DNSQuestion(try #require(DNSName("example.com")), .a)] = .timeout
        #expect(try isAsked(&resolver, &zone, at: .zero))
        #expect(try isAsked(&resolver, &zone, at: .zero))
        #expect(resolver.counts.kept == 0)
    }

    @Test(arguments: [DNSAnswer.timeout, .failure])
    func `when nobody answers an old answer serves for an hour, and that is told`(answer: DNSAnswer) throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone("example.com 300 A 192.0.2.1"))
        #expect(try isAsked(&resolver, &zone, at: .zero))
        zone.answers[DNSQuestion(try #require(DNSName("example.com")), .a)] = answer
        for (time, isFound) in [(300_000, true), (3_899_999, true), (3_900_000, false)] as [(Int64, Bool)] {
            _ = resolver.resolve(try SIPURI("sip:example.com:5060"), wishes, at: .ms(time))
            switch resolver.run(&zone, at: .ms(time)).first {
            case .resolved(_, let resolution):
                #expect(isFound)
                #expect(resolution.isStale)
                #expect(resolution.targets.map(\.text) == ["udp 192.0.2.1:5060"])
            case .failed(_, let error):
                #expect(!isFound)
                #expect(error.code == .namesFailed)
            case .ask, nil: Issue.record("nothing came of it")
            }
        }
    }

    @Test func `a name that is gone does not come back from old answers`() throws {
        var (resolver, zone) = (Resolver(seed: 1), try Zone("example.com 300 A 192.0.2.1"))
        #expect(try isAsked(&resolver, &zone, at: .zero))
        zone = try Zone()
        #expect(try resolver.targets("sip:example.com:5060", wishes, &zone, at: .ms(301_000)) == ["noSuchName"])
    }

    @Test func `the number of answers is bounded; those that end first go first`() throws {
        var limits = NameCache.Limits()
        limits.entries = 3
        var (resolver, zone) = (Resolver(seed: 1, limits: limits), try Zone("example.com 300 A 192.0.2.1"))
        for index in 0..<10 {
            zone.answers[DNSQuestion(try #require(DNSName("h\(index)")), .a)] = .noData(.seconds(60))
        }
        #expect(try isAsked(&resolver, &zone, at: .zero))
        for index in 0..<10 { _ = try resolver.targets("sip:h\(index):5060", wishes, &zone) }
        #expect(resolver.counts.kept == 3)
        #expect(try !isAsked(&resolver, &zone, at: .zero))
        resolver.forget()
        #expect(resolver.counts.kept == 0)
    }
}
