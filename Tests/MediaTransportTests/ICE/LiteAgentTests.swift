import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The side of ICE that only answers: what it answers to, and which way it takes.
@Suite(.tags(.rfc)) struct LiteAgentTests {
    private var checks = ICEChecks()
    private var agent = LiteAgent(ICEChecks.agreed)
    private let key = STUNKey(shortTerm: ICEChecks.own.password)

    private mutating func answer(
        _ check: [UInt8],
        from port: UInt16 = 1,
        at second: Int64 = 0
    ) -> STUNMessage? {
        agent.take(check, by: Route(ICEChecks.address(port)), at: .zero + .seconds(second))
        return agent.takeDatagrams().first.flatMap { STUNMessage(parsing: $0.bytes) }
    }

    private mutating func check(
        from port: UInt16,
        priority: UInt32 = 1,
        nominates: Bool = false,
        at second: Int64 = 0
    ) -> UInt16? {
        _ = answer(checks.check(priority: priority, nominates: nominates), from: port, at: second)
        return agent.destination?.peer.port
    }

    // MARK: Answers

    @Test mutating func `a check is answered with where it came from, signed`() throws {
        let check = checks.check()
        let reply = self.answer(check, from: 4711)
        let answer = try #require(reply)
        #expect(answer.kind == .success && answer.transaction == STUNMessage(parsing: check)?.transaction)
        #expect(answer.address(.xorMappedAddress) == ICEChecks.address(4711))
        #expect(answer.isSigned(with: key) && answer.hasRightFingerprint == true)
        #expect(agent.knows(Route(ICEChecks.address(4711))) && agent.refusedCount == 0)
    }

    @Test mutating func `who proves nothing is not answered, and is no way`() {
        for check in [
            checks.check(password: "another password that is long"), checks.check(name: "ours:other"),
            checks.check(name: "abcd:ours"), checks.check(name: "ours"), checks.check(name: ""),
        ] { #expect(answer(check) == nil) }
        var broken = checks.check()
        broken[broken.count - 1] ^= 1
        #expect(answer(broken) == nil)
        #expect(agent.destination == nil && !agent.knows(Route(ICEChecks.address(1))))
        // Three are named for this side as it is now; the others may be of a search before, or the next one.
        #expect(agent.refusedCount == 3)
    }

    @Test mutating func `what is cut anywhere, or no request, is not answered`() {
        let check = checks.check()
        for count in 0..<check.count { #expect(answer(Array(check[..<count])) == nil) }
        for kind in [STUNMessage.Class.indication, .success, .failure] {
            var generator = SeededGenerator(seed: 2)
            var writer = STUNWriter(kind, .binding, STUNMessage.Transaction(using: &generator))
            writer.append(.username, "ours:abcd")
            writer.sign(with: key)
            #expect(answer(writer.finish(withFingerprint: true)) == nil)
        }
        #expect(agent.destination == nil)
    }

    @Test mutating func `what cannot be taken is refused, signed, and is no way`() throws {
        let unknown = checks.check { $0.append(STUNAttribute(rawValue: 0x7001), [1]) }
        let reply = answer(unknown)
        let refusal = try #require(reply)
        #expect(refusal.error?.code == 420 && refusal[.unknownAttributes].map(Array.init) == [0x70, 0x01])
        #expect(refusal.isSigned(with: key))
        let controlled = checks.check { $0.append(.iceControlled, number: 9 as UInt64) }
        #expect(answer(controlled)?.error?.code == 487)
        #expect(answer(checks.check(priority: nil))?.error?.code == 400)
        #expect(agent.destination == nil)
    }

    // MARK: Ways

    @Test mutating func `the best way that was checked is taken until one is nominated`() {
        #expect(check(from: 1, priority: 5) == 1)
        #expect(check(from: 2, priority: 4) == 1)
        #expect(check(from: 3, priority: 6) == 3)
        #expect(check(from: 2, priority: 4, nominates: true) == 2)
        #expect(check(from: 3, priority: 6) == 2)
    }

    @Test mutating func `of several that are nominated the best counts, for as long as it is checked`() {
        #expect(check(from: 1, priority: 5, nominates: true) == 1)
        #expect(check(from: 2, priority: 4, nominates: true, at: 8) == 1)
        #expect(check(from: 3, priority: 6, nominates: true, at: 9) == 3)
        #expect(check(from: 2, priority: 4, nominates: true, at: 17) == 3)
        #expect(check(from: 2, priority: 4, nominates: true, at: 18) == 2)
        #expect(agent.end == .zero + .seconds(48))
    }

    @Test mutating func `the newest nomination counts where the way before is nominated no more`() {
        #expect(check(from: 1, priority: 5, nominates: true) == 1)
        #expect(check(from: 1, priority: 5, at: 1) == 1)
        #expect(check(from: 3, priority: 9, at: 1) == 1)
        #expect(check(from: 2, priority: 4, nominates: true, at: 1) == 2)
        #expect(check(from: 1, priority: 5, at: 2) == 2)
    }

    @Test mutating func `whoever has the password and comes from everywhere uses no memory, and the way in use stays`()
    {
        #expect(check(from: 1, priority: 9, nominates: true) == 1)
        for port in 2...1000 as ClosedRange<UInt16> { #expect(check(from: port) == 1) }
        #expect(agent.knows(Route(ICEChecks.address(1))) && agent.knows(Route(ICEChecks.address(1000))))
        #expect((1...1000 as ClosedRange<UInt16>).count { agent.knows(Route(ICEChecks.address($0))) } == 16)
    }

    @Test mutating func `random bytes are read without a trap`() {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<thorough(20_000, quick: 2000) {
            var check = checks.check()
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                check[Int.random(in: 0..<check.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            _ = answer(check)
        }
    }
}
