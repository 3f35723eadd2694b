import CallBasics
@testable import RTP
import Testing

/// Timelines of who sends when, and who is heard.
@Suite struct RemoteSourcePolicyTests {
    private static let named = SocketAddress(ipv4: 0x0A00_0001, port: 4000)
    private static let behindNAT = SocketAddress(ipv4: 0x0A00_0001, port: 61_234)
    private static let stranger = SocketAddress(ipv4: 0xC633_6401, port: 4000)
    private static let other = SocketAddress(ipv4: 0x0A00_0002, port: 5000)
    private static let unknown = SocketAddress(ipv4: 0xCB00_7107, port: 4000)

    private static func at(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    /// Sends `count` packets of `ssrc` from `start` on, 20 ms apart, and answers the verdicts.
    private func send(
        _ policy: inout RemoteSourcePolicy,
        _ count: Int = 3,
        from address: SocketAddress,
        ssrc: UInt32 = 1,
        first: UInt16 = 100,
        at start: Int
    ) -> [RemoteSourcePolicy.Verdict] {
        (0..<count).map { index in
            policy.admit(ssrc, first &+ UInt16(index), from: address, at: Self.at(start + 20 * index))
        }
    }

    private func control(
        _ policy: inout RemoteSourcePolicy,
        from address: SocketAddress,
        sharesPort: Bool
    ) -> Bool {
        let counts = policy.admitControl(from: address, sharesPort: sharesPort)
        if counts, !sharesPort { policy.lockControl(address) }
        return counts
    }

    @Test func `the address that signalling named is locked with its first packet`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        #expect(policy.answerAddress == Self.named && policy.lockedAddress == nil)
        #expect(send(&policy, 1, from: Self.named, at: 0) == [.begins])
        #expect(policy.lockedAddress == Self.named && policy.isFixed)
        #expect(send(&policy, 2, from: Self.behindNAT, at: 20) == .init(repeating: .refused(.otherAddress), count: 2))
    }

    @Test func `another port of the named host is heard at once, and locked after two packets in sequence`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        #expect(send(&policy, 1, from: Self.behindNAT, at: 0) == [.begins])
        #expect(policy.lockedAddress == nil && policy.answerAddress == Self.named)
        #expect(send(&policy, 1, from: Self.behindNAT, first: 101, at: 20) == [.accepted])
        #expect(policy.lockedAddress == Self.behindNAT && policy.answerAddress == Self.behindNAT)
        // The named address itself may still begin.
        #expect(!policy.isFixed)
        #expect(send(&policy, 1, from: Self.named, ssrc: 9, at: 200) == [.begins])
        #expect(policy.isFixed)
    }

    @Test func `a stray packet of the named address does not end a stream that was learnt`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 3, from: Self.behindNAT, at: 0)
        #expect(send(&policy, 1, from: Self.named, ssrc: 9, first: 7, at: 50) == [.refused(.otherAddress)])
        #expect(send(&policy, 3, from: Self.behindNAT, first: 103, at: 60).allSatisfy { $0 == .accepted })
        #expect(send(&policy, 1, from: Self.named, ssrc: 9, first: 90, at: 110) == [.refused(.otherAddress)])
        // One that goes on is what signalling said.
        #expect(send(&policy, 1, from: Self.named, ssrc: 9, first: 91, at: 130) == [.begins] && policy.isFixed)
    }

    @Test(arguments: [5000, 20_000] as [UInt16])
    func `a source on trial whose numbers begin anew is locked by the next two in sequence`(stray: UInt16) {
        var policy = RemoteSourcePolicy(named: Self.named)
        #expect(send(&policy, 1, from: Self.behindNAT, first: stray, at: 0) == [.begins])
        #expect(send(&policy, 2, from: Self.behindNAT, first: 100, at: 20) == [.accepted, .accepted])
        #expect(policy.lockedAddress == Self.behindNAT && policy.answerAddress == Self.behindNAT)
    }

    @Test func `other hosts wait until the named one has been silent for 5 s from the beginning`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        policy.begin(at: Self.at(0))
        let early = send(&policy, 249, from: Self.stranger, at: 0)
        #expect(early.allSatisfy { $0 == .refused(.unnamedHost) })
        #expect(send(&policy, 3, from: Self.stranger, first: 400, at: 5000) == [.begins, .accepted, .accepted])
        #expect(policy.lockedAddress == Self.stranger)
    }

    @Test func `without a named address who first sends two packets in sequence is locked`() {
        var policy = RemoteSourcePolicy(named: nil)
        #expect(send(&policy, 1, from: Self.stranger, ssrc: 5, at: 0) == [.begins])
        #expect(send(&policy, 3, from: Self.named, at: 1) == [.refused(.unnamedHost), .begins, .accepted])
        #expect(policy.lockedAddress == Self.named && policy.isFixed)
        #expect(send(&policy, 2, from: Self.stranger, ssrc: 5, first: 7, at: 60).allSatisfy { $0 != .begins })
    }

    @Test(arguments: [20, 500, 5_000, 3_600_000])
    func `a locked stream is nobody else's after any silence`(silence: Int) {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        for address in [Self.stranger, Self.behindNAT] {
            for ssrc in [1, 2] as [UInt32] {
                let verdicts = send(&policy, 50, from: address, ssrc: ssrc, first: 110, at: 200 + silence)
                #expect(verdicts.allSatisfy { $0 == .refused(.otherAddress) })
            }
        }
        #expect(send(&policy, 2, from: Self.named, first: 110, at: 2000 + silence) == [.accepted, .accepted])
    }

    @Test func `where the rules allow it, another address may follow a long silence`() {
        var rules = RemoteSourceRules()
        rules.relocatesAfter = .seconds(10)
        var policy = RemoteSourcePolicy(named: Self.named, rules: rules)
        _ = send(&policy, 10, from: Self.named, at: 0)
        #expect(!policy.isFixed)
        #expect(send(&policy, 3, from: Self.stranger, at: 9000).allSatisfy { $0 == .refused(.otherAddress) })
        let late = send(&policy, 3, from: Self.stranger, first: 300, at: 10_200)
        #expect(late == [.refused(.otherAddress), .begins, .accepted])
    }

    @Test func `a new SSRC of the locked address is taken with its first packet`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        #expect(send(&policy, 2, from: Self.named, ssrc: 2, at: 200) == [.begins, .accepted])
        // A packet of the former one that was overtaken does not turn the stream back.
        #expect(send(&policy, 1, from: Self.named, first: 110, at: 230) == [.refused(.formerSource)])
        #expect(send(&policy, 1, from: Self.named, ssrc: 2, first: 102, at: 240) == [.accepted])
        // After music on hold the first one comes back, and is heard at once.
        _ = send(&policy, 100, from: Self.named, ssrc: 2, first: 103, at: 260)
        #expect(send(&policy, 2, from: Self.named, first: 111, at: 2260) == [.begins, .accepted])
    }

    @Test func `a source that came back before its time is heard once the other is silent`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        _ = send(&policy, 1, from: Self.named, ssrc: 2, at: 190)
        let back = send(&policy, 10, from: Self.named, first: 110, at: 200)
        #expect(back.contains(.begins) && back.last == .accepted)
    }

    @Test func `a stray packet of another SSRC costs one packet of the source`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        #expect(send(&policy, 1, from: Self.named, ssrc: 2, first: 7000, at: 190) == [.begins])
        let back = send(&policy, 4, from: Self.named, first: 110, at: 200)
        #expect(back == [.refused(.formerSource), .begins, .accepted, .accepted])
        // A new one that goes on is kept, however the former one's last packets come.
        _ = send(&policy, 10, from: Self.named, first: 114, at: 280)
        #expect(send(&policy, 2, from: Self.named, ssrc: 3, first: 7, at: 470) == [.begins, .accepted])
        #expect(send(&policy, 3, from: Self.named, first: 124, at: 491).allSatisfy { $0 == .refused(.formerSource) })
    }

    @Test func `two sources of one address do not take turns`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        var changes = 0
        for index in 0..<500 {
            for ssrc in [1, 2] as [UInt32] {
                let time = 200 + index * 20 + Int(ssrc)
                let verdict = policy.admit(ssrc, UInt16(110 + index), from: Self.named, at: Self.at(time))
                if verdict == .begins { changes += 1 }
            }
        }
        #expect(changes == 1)
    }

    @Test func `signalling moves the stream, also to a port that a NAT has changed`() {
        var policy = RemoteSourcePolicy(named: Self.stranger)
        _ = send(&policy, 10, from: Self.stranger, at: 0)
        policy.name(Self.named, rules: RemoteSourceRules(), at: Self.at(200))
        #expect(policy.answerAddress == Self.named && !policy.isFixed)
        #expect(send(&policy, 1, from: Self.stranger, first: 110, at: 210) == [.accepted])
        #expect(send(&policy, 2, from: Self.behindNAT, at: 230) == [.refused(.unnamedHost), .begins])
        #expect(policy.lockedAddress == Self.behindNAT)
        // The named address itself may still begin, and nobody else.
        #expect(policy.onlyAddresses.map { [$0.locked, $0.named] } == [Self.behindNAT, Self.named])
        #expect(send(&policy, 1, from: Self.stranger, first: 111, at: 280) == [.refused(.otherAddress)])
    }

    @Test func `who goes on sending from where it was heard keeps the stream after signalling named what nobody uses`()
    {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.behindNAT, at: 0)
        policy.name(Self.named.with(port: 4002), rules: .init(), at: Self.at(200))
        #expect(send(&policy, 300, from: Self.behindNAT, first: 110, at: 220).allSatisfy { $0 == .accepted })
        #expect(send(&policy, 3, from: Self.stranger, at: 6300).allSatisfy { $0 == .refused(.otherAddress) })
        #expect(policy.answerAddress == Self.behindNAT)
    }

    @Test(
        arguments: [
            (named, stranger), (stranger, named), (stranger, other), (named, other), (named, named.with(port: 4002)),
        ]
    )
    func `whom signalling has put aside hears nothing more, however long the new side is silent`(
        former: SocketAddress,
        named: SocketAddress
    ) {
        var policy = RemoteSourcePolicy(named: former)
        _ = send(&policy, 10, from: former, at: 0)
        policy.name(named, rules: .init(), at: Self.at(200))
        // It is heard, as music on hold may be, for a minute.
        for index in 0..<3000 {
            let verdicts = send(&policy, 1, from: former, first: 110 &+ UInt16(index), at: 220 + 20 * index)
            #expect(verdicts == [.accepted] && policy.answerAddress == named)
        }
        #expect(send(&policy, 3, from: Self.unknown, at: 60_500).allSatisfy { $0 == .refused(.unnamedHost) })
        // The new side may still begin, also behind a NAT.
        let late = send(&policy, 2, from: named.with(port: 61_000), at: 61_000)
        #expect(late == [.refused(.unnamedHost), .begins] && policy.answerAddress == named.with(port: 61_000))
        #expect(send(&policy, 1, from: former, first: 5000, at: 61_100) == [.refused(.otherAddress)])
    }

    @Test func `a source behind a NAT keeps the stream when signalling names another address that nobody can reach`() {
        let behindNAT = Self.stranger.with(port: 50_000)
        var policy = RemoteSourcePolicy(named: Self.named)
        policy.begin(at: .zero)
        _ = send(&policy, 3, from: behindNAT, at: 5000)
        #expect(policy.answerAddress == behindNAT)
        policy.name(Self.other, rules: .init(), at: Self.at(10_000))
        _ = send(&policy, 250, from: behindNAT, first: 103, at: 10_000)
        #expect(policy.answerAddress == Self.other)
        _ = send(&policy, 10, from: behindNAT, first: 353, at: 15_000)
        #expect(policy.answerAddress == behindNAT && policy.lockedAddress == behindNAT)
        // One that everybody can reach is reached.
        policy.name(Self.unknown, rules: .init(), at: Self.at(20_000))
        _ = send(&policy, 500, from: behindNAT, first: 363, at: 20_000)
        #expect(policy.answerAddress == Self.unknown)
        // Back where it was, it need not be learnt again.
        policy.name(Self.other, rules: .init(), at: Self.at(30_000))
        #expect(policy.answerAddress == behindNAT)
    }

    @Test func `the named side's time passes only while it is to send`() {
        var policy = RemoteSourcePolicy(named: Self.named, expectsPackets: false)
        policy.begin(at: .zero)
        let held = send(&policy, 1000, from: Self.stranger, at: 0)
        #expect(held.allSatisfy { $0 == .refused(.unnamedHost) })
        policy.name(Self.named, rules: .init(), expectsPackets: true, at: Self.at(20_000))
        let early = send(&policy, 249, from: Self.stranger, first: 1100, at: 20_000)
        #expect(early.allSatisfy { $0 == .refused(.unnamedHost) })
        // Held once more before its time is over, it has all of it again.
        policy.name(Self.named, rules: .init(), expectsPackets: false, at: Self.at(24_990))
        #expect(send(&policy, 100, from: Self.stranger, first: 1349, at: 25_000).allSatisfy { $0 != .begins })
        policy.name(Self.named, rules: .init(), expectsPackets: true, at: Self.at(27_000))
        #expect(send(&policy, 249, from: Self.stranger, first: 1449, at: 27_000).allSatisfy { $0 != .begins })
        #expect(send(&policy, 1, from: Self.stranger, first: 1700, at: 32_000) == [.begins])
    }

    @Test func `a source that was learnt before its address was named privately waits, whatever its port`() {
        var policy = RemoteSourcePolicy(named: nil)
        _ = send(&policy, 10, from: Self.stranger, at: 0)
        policy.name(Self.named, rules: .init(), at: Self.at(200))
        #expect(Self.stranger.port == Self.named.port)
        let early = send(&policy, 249, from: Self.stranger, first: 110, at: 200)
        #expect(early.allSatisfy { $0 == .refused(.unnamedHost) })
        #expect(send(&policy, 2, from: Self.stranger, first: 359, at: 5200) == [.begins, .accepted])
        #expect(policy.answerAddress == Self.stranger)
    }

    @Test func `a stream that signalling moved is learnt as at the beginning once both sides were silent`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(Self.other, rules: .init(), at: Self.at(10_000))
        _ = send(&policy, 10, from: Self.named, first: 110, at: 11_800)
        // 5 s after the naming, and then 5 s after the one that was heard.
        for time in [14_900, 16_900] {
            #expect(send(&policy, 3, from: Self.stranger, at: time).allSatisfy { $0 == .refused(.unnamedHost) })
        }
        #expect(policy.answerAddress == Self.other)
        #expect(send(&policy, 2, from: Self.stranger, first: 300, at: 17_000) == [.refused(.unnamedHost), .begins])
        #expect(policy.answerAddress == Self.stranger)
        // The named one may still begin, and nobody else.
        #expect(send(&policy, 3, from: Self.unknown, at: 60_000).allSatisfy { $0 == .refused(.otherAddress) })
        #expect(send(&policy, 1, from: Self.other, at: 61_000) == [.begins])
    }

    @Test func `a stream that signalling moved to a side that is not to send is no stranger's after any time`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(Self.other, rules: .init(), expectsPackets: false, at: Self.at(10_000))
        for time in [16_000, 3_600_000] {
            #expect(send(&policy, 3, from: Self.stranger, at: time).allSatisfy { $0 == .refused(.unnamedHost) })
        }
        let late = send(&policy, 2, from: Self.other.with(port: 7), at: 3_700_000)
        #expect(late == [.refused(.unnamedHost), .begins])
    }

    @Test func `who was learnt behind a NAT is heard at once when signalling returns from music on hold`() {
        let behindNAT = Self.stranger.with(port: 50_000)
        var policy = RemoteSourcePolicy(named: Self.named)
        policy.begin(at: .zero)
        _ = send(&policy, 3, from: behindNAT, at: 5000)
        for round in 1...3 {
            let time = 10_000 * round
            policy.name(Self.unknown, rules: .init(), at: Self.at(time))
            #expect(send(&policy, 2, from: Self.unknown, ssrc: 2, at: time + 20) == [.begins, .accepted])
            policy.name(Self.named, rules: .init(), at: Self.at(time + 2000))
            #expect(send(&policy, 3, from: Self.other, at: time + 2010).allSatisfy { $0 == .refused(.unnamedHost) })
            let back = send(&policy, 2, from: behindNAT, first: UInt16(1000 * round), at: time + 2100)
            #expect(back == [.refused(.unnamedHost), .begins] && policy.lockedAddress == behindNAT)
        }
    }

    @Test func `parties that were learnt behind NATs take turns, and the oldest of many is learnt anew`() {
        // Named privately, each behind a NAT of its own.
        func party(_ index: Int) -> (named: SocketAddress, heard: SocketAddress) {
            (
                SocketAddress(ipv4: 0x0A01_0000 + UInt32(index), port: 4000),
                SocketAddress(ipv4: 0xC633_6400 + UInt32(index), port: 50_000)
            )
        }
        var policy = RemoteSourcePolicy(named: party(0).named)
        policy.begin(at: .zero)
        var time = 0
        /// What becomes of two packets straight after signalling named party `index`, and of more 6 s later.
        func meet(_ index: Int) -> [RemoteSourcePolicy.Verdict] {
            policy.name(party(index).named, rules: .init(), at: Self.at(time))
            let first = send(&policy, 2, from: party(index).heard, first: UInt16(time / 20), at: time + 20)
            let later = UInt16(time / 20 + 300)
            _ = send(&policy, 3, from: party(index).heard, first: later, at: time + 6000)
            #expect(policy.lockedAddress == party(index).heard)
            time += 7000
            return first
        }
        let unknown: [RemoteSourcePolicy.Verdict] = [.refused(.unnamedHost), .refused(.unnamedHost)]
        let known: [RemoteSourcePolicy.Verdict] = [.refused(.unnamedHost), .begins]
        #expect(meet(0) == unknown && meet(1) == unknown)
        for _ in 0..<3 { #expect(meet(0) == known && meet(1) == known) }
        #expect(meet(2) == unknown && meet(3) == unknown && meet(4) == unknown)
        #expect(meet(1) == known && meet(0) == unknown)
        // What is known of one host says nothing of another.
        policy.name(party(1).named, rules: .init(), at: Self.at(time))
        for stranger in [party(3).heard, party(9).heard, Self.unknown] {
            let early = send(&policy, 3, from: stranger, at: time + 20)
            #expect(early.allSatisfy { $0 == .refused(.unnamedHost) })
        }
    }

    @Test func `while signalling moves a stream, the rules let another take it only after both had their time`() {
        var rules = RemoteSourceRules()
        rules.relocatesAfter = .seconds(10)
        var policy = RemoteSourcePolicy(named: Self.named, rules: rules)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(SocketAddress(ipv4: 0x0A00_0002, port: 5000), rules: rules, at: Self.at(9000))
        // 10 s after the one that was heard, and 2 s after the naming.
        #expect(send(&policy, 3, from: Self.stranger, at: 11_000).allSatisfy { $0 == .refused(.unnamedHost) })
        #expect(send(&policy, 2, from: Self.stranger, first: 300, at: 14_100) == [.refused(.unnamedHost), .begins])
        #expect(policy.lockedAddress == Self.stranger)
    }

    @Test(arguments: [1, 10])
    func `whoever was learnt before anybody was named does not hold the stream against the named host`(count: Int) {
        var policy = RemoteSourcePolicy(named: nil)
        _ = send(&policy, count, from: Self.stranger, ssrc: 9, at: 0)
        #expect(policy.lockedAddress == (count > 1 ? Self.stranger : nil))
        policy.name(Self.named, rules: .init(), at: Self.at(200))
        #expect(policy.answerAddress == Self.named && policy.lockedAddress == nil)
        let more = send(&policy, 200, from: Self.stranger, ssrc: 9, first: 100 + UInt16(count), at: 210)
        #expect(more.allSatisfy { $0 == .refused(.unnamedHost) } && policy.answerAddress == Self.named)
        #expect(!control(&policy, from: Self.stranger, sharesPort: true))
        #expect(control(&policy, from: Self.named, sharesPort: true))
        #expect(send(&policy, 2, from: Self.behindNAT, at: 4300) == [.begins, .accepted])
        #expect(policy.lockedAddress == Self.behindNAT && policy.answerAddress == Self.behindNAT)
        // Nor does it come back once the named one's time is over.
        #expect(send(&policy, 3, from: Self.stranger, ssrc: 9, at: 9000).allSatisfy { $0 == .refused(.otherAddress) })
    }

    @Test func `whoever was learnt before its own host was named goes on being heard`() {
        var policy = RemoteSourcePolicy(named: nil)
        _ = send(&policy, 10, from: Self.behindNAT, at: 0)
        policy.name(Self.named, rules: .init(), at: Self.at(200))
        #expect(policy.answerAddress == Self.named)
        #expect(send(&policy, 1, from: Self.behindNAT, first: 110, at: 210) == [.accepted])
        #expect(policy.lockedAddress == Self.behindNAT && policy.answerAddress == Self.behindNAT)
    }

    @Test func `one that was named stays while signalling names nobody, and one that was learnt then does not`() {
        let other = SocketAddress(ipv4: 0x0A00_0002, port: 5000)
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(other, rules: .init(), at: Self.at(200))
        policy.name(nil, rules: .init(), at: Self.at(220))
        #expect(policy.answerAddress == Self.named && policy.isFixed)
        policy.name(other, rules: .init(), at: Self.at(240))
        #expect(send(&policy, 1, from: Self.named, first: 110, at: 250) == [.accepted])

        var open = RemoteSourcePolicy(named: Self.named)
        open.name(nil, rules: .init(), at: Self.at(0))
        _ = send(&open, 10, from: Self.stranger, at: 20)
        open.name(Self.named, rules: .init(), at: Self.at(300))
        #expect(send(&open, 3, from: Self.stranger, first: 110, at: 310).allSatisfy { $0 == .refused(.unnamedHost) })
    }

    @Test func `a lock stays when signalling names nobody, and one from before naming does not bind signalling`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(nil, rules: .init(), at: Self.at(200))
        #expect(send(&policy, 5, from: Self.stranger, at: 300).allSatisfy { $0 == .refused(.otherAddress) })

        var open = RemoteSourcePolicy(named: nil)
        _ = send(&open, 10, from: Self.stranger, at: 0)
        open.name(Self.named, rules: .init(), at: Self.at(200))
        #expect(send(&open, 2, from: Self.named, ssrc: 2, at: 300) == [.begins, .accepted])
        #expect(send(&open, 2, from: Self.stranger, first: 110, at: 400).allSatisfy { $0 == .refused(.otherAddress) })
    }

    @Test func `the same address named again changes nothing`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 10, from: Self.named, at: 0)
        policy.name(Self.named, rules: RemoteSourceRules(), at: Self.at(200))
        #expect(policy.isFixed && policy.lockedAddress == Self.named)
    }

    @Test func `RTCP counts from the source alone, and before it from the named host`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        #expect(control(&policy, from: Self.named, sharesPort: true))
        #expect(!control(&policy, from: Self.stranger, sharesPort: true))
        _ = send(&policy, 3, from: Self.named, at: 0)
        #expect(control(&policy, from: Self.named, sharesPort: true))
        #expect(!control(&policy, from: Self.behindNAT, sharesPort: true))
        #expect(control(&policy, from: Self.named.with(port: 4001), sharesPort: false))
        #expect(!control(&policy, from: Self.behindNAT, sharesPort: false))
        #expect(!control(&policy, from: Self.stranger, sharesPort: false))
    }

    @Test func `RTCP on a port of its own follows the stream to another port of its host`() {
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 3, from: Self.named, at: 0)
        let moved = Self.named.with(port: 4002)
        policy.name(moved, rules: .init(), at: Self.at(100))
        // Of the former port, which is still heard.
        #expect(control(&policy, from: Self.named.with(port: 4001), sharesPort: false))
        _ = send(&policy, 3, from: moved, at: 120)
        #expect(control(&policy, from: moved.with(port: 4003), sharesPort: false))
        #expect(!control(&policy, from: Self.named.with(port: 4001), sharesPort: false))
    }

    @Test func `any packets in any order do not trap, and never move a fixed stream`() {
        var generator = SeededGenerator(seed: 3)
        var policy = RemoteSourcePolicy(named: Self.named)
        _ = send(&policy, 3, from: Self.named, at: 0)
        for index in 0..<50_000 {
            let random = generator.next()
            let address = SocketAddress(ipv4: 0x0A00_0001 &+ UInt32(random & 3) &+ 1, port: UInt16(random >> 16 & 7))
            _ = policy.admit(
                UInt32(random >> 32 & 3),
                UInt16(truncatingIfNeeded: random >> 40),
                from: address,
                at: Self.at(index)
            )
            _ = policy.admitControl(from: address, sharesPort: random & 1 == 0)
            #expect(policy.lockedAddress == Self.named)
        }
    }
}

extension RemoteSourcePolicy {
    /// Whether packets of one address alone can be heard.
    fileprivate var isFixed: Bool { onlyAddresses.map { $0.named == nil } ?? false }
}
