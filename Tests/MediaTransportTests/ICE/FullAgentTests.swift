import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The side of ICE that looks for the way: what it asks and answers, when, and what it makes of answers.
@Suite(.tags(.rfc)) struct FullAgentTests {
    /// The agent, and the other side as the test plays it; time is an argument.
    private struct Stage {
        var agent: FullAgent
        var checks = ICEChecks()
        private(set) var now = MediaTime.zero

        /// Candidates are ports, the best one first.
        init(_ ports: [UInt16] = [1], controls: Bool = true) {
            let candidates = ports.enumerated().map { index, port in
                ICECandidate(.host, ICEChecks.address(port), priority: UInt32(1000 - index))
            }
            agent = FullAgent(
                ICEChecks.agreed(isFull: true, controls: controls, candidates),
                tag: 0xABCD,
                SeededGenerator(seed: 7),
                at: now
            )
        }

        /// What is sent after a time.
        mutating func sent(after pause: Duration = .zero) -> [(message: STUNMessage, port: UInt16)] {
            now += pause
            agent.advance(to: now)
            return agent.takeDatagrams().compactMap { datagram in
                STUNMessage(parsing: datagram.bytes).map { ($0, datagram.destination.port) }
            }
        }

        /// The requests among them.
        mutating func asked(after pause: Duration = .zero) -> [(message: STUNMessage, port: UInt16)] {
            sent(after: pause).filter { $0.message.kind == .request }
        }

        mutating func take(_ datagram: [UInt8], from port: UInt16) {
            agent.take(datagram, from: ICEChecks.address(port), at: now)
        }

        /// Answers a request as the other side does.
        mutating func answer(
            _ question: STUNMessage,
            from port: UInt16,
            kind: STUNMessage.Class = .success,
            password: String = ICEChecks.remote.password,
            _ change: (inout STUNWriter) -> Void = { $0.append(.xorMappedAddress, ICEChecks.address(9)) }
        ) {
            var writer = STUNWriter(kind, .binding, question.transaction)
            change(&writer)
            writer.sign(with: STUNKey(shortTerm: password))
            take(writer.finish(withFingerprint: true), from: port)
        }

        /// Has the next request answered; answers it.
        @discardableResult
        mutating func exchange(after pause: Duration = .zero) -> (message: STUNMessage, port: UInt16)? {
            guard let question = asked(after: pause).first else { return nil }
            answer(question.message, from: question.port)
            return question
        }

        var way: UInt16? { agent.destination?.port }
        var isChosen: Bool { agent.selected != nil }
    }

    private static func first(_ sent: [(message: STUNMessage, port: UInt16)]) throws -> (
        message: STUNMessage, port: UInt16
    ) {
        try #require(sent.first)
    }

    // MARK: What is asked

    @Test func `a check proves the other side's password, and says how good this side is, and who controls`() throws {
        var stage = Stage()
        let check = try Self.first(stage.asked()).message
        #expect(check.text(.username) == "abcd:ours" && check.hasRightFingerprint == true)
        #expect(check.isSigned(with: STUNKey(shortTerm: ICEChecks.remote.password)))
        #expect(check.number(.priority) == 0x6EFF_FFFF as UInt32)
        #expect(check.tieBreaker(.iceControlling) != nil && check[.useCandidate] == nil)
        var other = Stage(controls: false)
        let controlled = try Self.first(other.asked()).message
        #expect(controlled.tieBreaker(.iceControlled) != nil && controlled[.iceControlling] == nil)
    }

    @Test func `the best address is asked at once, and one more each 50 ms`() {
        var stage = Stage([1, 2, 3])
        #expect(stage.asked().map(\.port) == [1])
        #expect(stage.asked(after: .milliseconds(49)).isEmpty)
        #expect(stage.agent.next == .zero + .milliseconds(50))
        #expect(stage.asked(after: .milliseconds(1)).map(\.port) == [2])
        #expect(stage.asked(after: .milliseconds(50)).map(\.port) == [3])
        #expect(stage.asked(after: .milliseconds(50)).isEmpty)
    }

    @Test func `a check is sent seven times, with pauses that grow, and then no more`() {
        var stage = Stage()
        var times: [Int64] = []
        while let next = stage.agent.next {
            for _ in stage.asked(after: next - stage.now) { times.append(stage.now.nanoseconds / 1_000_000) }
        }
        #expect(times == [0, 500, 1500, 3500, 7500, 15_500, 31_500])
        #expect(stage.now == .zero + .milliseconds(39_500) && stage.way == nil)
    }

    @Test func `what the other side checks is checked before all others, from wherever it comes`() {
        var stage = Stage([1, 2, 3], controls: false)
        _ = stage.asked()
        stage.take(stage.checks.check(), from: 7)
        #expect(stage.sent(after: .milliseconds(50)).map(\.port) == [7, 7])
        stage.take(stage.checks.check(), from: 3)
        #expect(stage.asked(after: .milliseconds(50)).map(\.port) == [3])
        #expect(stage.agent.knows(ICEChecks.address(7)) && !stage.agent.knows(ICEChecks.address(2)))
    }

    // MARK: Which way

    @Test func `the best way is nominated, and a better one is waited for, but not for long`() throws {
        var stage = Stage([1, 2])
        let better = try Self.first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        #expect(stage.way == 2 && !stage.isChosen)
        #expect(stage.asked(after: .milliseconds(200)).isEmpty)
        stage.answer(better.message, from: 1)
        let nomination = try Self.first(stage.asked())
        #expect(nomination.port == 1 && nomination.message[.useCandidate] != nil && !stage.isChosen)
        stage.answer(nomination.message, from: 1)
        #expect(stage.way == 1 && stage.isChosen)
        stage = Stage([1, 2])
        _ = stage.asked()
        stage.exchange(after: .milliseconds(50))
        #expect(stage.asked(after: .milliseconds(299)).isEmpty)
        #expect(stage.exchange(after: .milliseconds(1))?.port == 2 && stage.isChosen && stage.way == 2)
    }

    @Test func `a way that cannot be nominated gives way to the next`() throws {
        var stage = Stage([1, 2])
        stage.exchange()
        let nomination = try Self.first(stage.asked())
        stage.answer(nomination.message, from: 1, kind: .failure) { $0.append(errorCode: 500, reason: "no") }
        #expect(stage.exchange(after: .milliseconds(50))?.port == 2)
        #expect(stage.exchange()?.port == 2 && stage.isChosen)
    }

    @Test func `who is controlled goes the way that the other side nominates, once that has been checked`() throws {
        var stage = Stage([1, 2], controls: false)
        stage.take(stage.checks.check(nominates: true), from: 2)
        #expect(stage.way == nil)
        stage.exchange()
        #expect(stage.way == 2 && stage.isChosen)
        // Old peers nominate all that they find: the best counts.
        stage.take(stage.checks.check(nominates: true), from: 1)
        stage.exchange(after: .milliseconds(50))
        #expect(stage.way == 1)
        stage.take(stage.checks.check(nominates: true), from: 2)
        #expect(stage.way == 1 && stage.asked(after: .seconds(1)).isEmpty)
    }

    // MARK: What is answered

    @Test func `a check is answered before its way is known, and refused as a side that only answers refuses it`()
        throws
    {
        var stage = Stage([], controls: false)
        stage.take(stage.checks.check(), from: 5)
        let answer = try Self.first(stage.sent().filter { $0.message.kind == .success })
        #expect(answer.port == 5 && answer.message.address(.xorMappedAddress) == ICEChecks.address(5))
        #expect(answer.message.isSigned(with: STUNKey(shortTerm: ICEChecks.own.password)))
        stage.take(stage.checks.check(priority: nil), from: 6)
        stage.take(stage.checks.check { $0.append(STUNAttribute(rawValue: 0x7001), [1]) }, from: 6)
        #expect(stage.sent().compactMap(\.message.error?.code) == [400, 420])
        stage.take(stage.checks.check(password: "another password that is long"), from: 6)
        #expect(stage.sent().isEmpty && stage.agent.refusedCount == 1 && !stage.agent.knows(ICEChecks.address(6)))
    }

    @Test func `of two that control, the one with the smaller number gives in, and asks again`() throws {
        var stage = Stage()
        _ = stage.asked()
        // The other side's number is 7.
        stage.take(stage.checks.check(), from: 1)
        #expect(stage.sent().compactMap(\.message.error?.code) == [487])
        let question = try Self.first(stage.asked(after: .milliseconds(500)))
        stage.answer(question.message, from: 1, kind: .failure) { $0.append(errorCode: 487, reason: "Role Conflict") }
        let again = try Self.first(stage.asked(after: .milliseconds(50)))
        #expect(again.message[.iceControlled] != nil)
        #expect(again.message.tieBreaker(.iceControlled) != question.message.tieBreaker(.iceControlling))
    }

    // MARK: Answers

    @Test func `an answer counts that is signed, comes from where it was asked, and says how this side is seen`() throws
    {
        var stage = Stage()
        let question = try Self.first(stage.asked()).message
        stage.answer(question, from: 1, password: "another password that is long")
        var foreign = STUNWriter(.success, .binding, question.transaction)
        foreign.append(.xorMappedAddress, ICEChecks.address(9))
        stage.take(foreign.finish(withFingerprint: true), from: 1)
        #expect(stage.way == nil)
        stage.answer(question, from: 1)
        #expect(stage.way == 1)
        for change: (inout Stage, STUNMessage) -> Void in [
            { $0.answer($1, from: 2) }, { $0.answer($1, from: 1) { _ in } },
            { $0.answer($1, from: 1, kind: .failure) { $0.append(errorCode: 400, reason: "no") } },
        ] {
            stage = Stage()
            let question = try Self.first(stage.asked()).message
            change(&stage, question)
            stage.answer(question, from: 1)
            #expect(stage.way == nil && stage.agent.next == nil)
        }
    }

    @Test func `an answer that comes after the check was begun anew counts, too`() throws {
        var stage = Stage(controls: false)
        let question = try Self.first(stage.asked()).message
        stage.take(stage.checks.check(), from: 1)
        _ = stage.sent(after: .milliseconds(50))
        #expect(stage.agent.knows(ICEChecks.address(1)) && stage.way == nil)
        stage.answer(question, from: 1)
        #expect(stage.way == 1)
    }

    // MARK: Consent

    private static func connected(controls: Bool = true) -> Stage {
        var stage = Stage(controls: controls)
        if !controls { stage.take(stage.checks.check(nominates: true), from: 1) }
        for _ in 0..<(controls ? 2 : 1) { stage.exchange() }
        return stage
    }

    @Test(arguments: [true, false]) func `consent is asked for each 4 to 6 s, by a new question each`(controls: Bool)
        throws
    {
        var stage = Self.connected(controls: controls)
        #expect(stage.isChosen)
        var transactions: Set<STUNMessage.Transaction> = []
        for _ in 0..<20 {
            let pause = try #require(stage.agent.next) - stage.now
            #expect(Duration.seconds(4)...Duration.seconds(6) ~= pause)
            let exchanged = stage.exchange(after: pause)
            let question = try #require(exchanged)
            #expect(question.port == 1 && (question.message[.useCandidate] != nil) == controls)
            transactions.insert(question.message.transaction)
        }
        #expect(transactions.count == 20)
    }

    @Test func `who says no is asked nothing more, and who says nothing for 30 s neither`() throws {
        var stage = Self.connected()
        let pause = try #require(stage.agent.next) - stage.now
        let question = try Self.first(stage.asked(after: pause))
        stage.answer(question.message, from: 1, kind: .failure) { $0.append(errorCode: 403, reason: "Forbidden") }
        let end = try #require(stage.agent.end)
        #expect(end <= stage.now)
        #expect(stage.asked(after: .seconds(10)).isEmpty && stage.agent.next == nil)
        stage = Self.connected(controls: false)
        var count = 0
        while let next = stage.agent.next { count += stage.asked(after: next - stage.now).count }
        #expect(5...7 ~= count && stage.now <= .zero + .seconds(36))
        // Its checks do not bring back what is over.
        stage.take(stage.checks.check(), from: 1)
        _ = stage.sent(after: .seconds(1))
        #expect(stage.agent.next == nil)
    }

    // MARK: Two ways that work

    /// A side whose other side has been found at both of its addresses, and is used at the first.
    private static func withTwoWays(controls: Bool) throws -> Stage {
        var stage = Stage([1, 2], controls: controls)
        let best = try first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        stage.answer(best.message, from: 1)
        if !controls { stage.take(stage.checks.check(nominates: true), from: 1) }
        if controls { stage.exchange() }
        try #require(stage.way == 1 && stage.isChosen)
        return stage
    }

    /// Lets time go by while questions to `ports` are answered; answers whom it asked.
    private static func run(_ stage: inout Stage, _ limit: Duration, answering ports: Set<UInt16>) -> Set<UInt16> {
        let end = stage.now + limit
        var asked: Set<UInt16> = []
        while stage.now < end {
            let next = max(stage.now, min(end, stage.agent.next ?? end))
            for question in stage.asked(after: next - stage.now) {
                asked.insert(question.port)
                if ports.contains(question.port) { stage.answer(question.message, from: question.port) }
            }
        }
        return asked
    }

    @Test func `a way that the other side nominates late is checked anew, and the call goes on there`() throws {
        var stage = try Self.withTwoWays(controls: false)
        #expect(Self.run(&stage, .seconds(60), answering: [1]) == [1])
        stage.take(stage.checks.check(nominates: true), from: 2)
        #expect(stage.way == 1)
        _ = Self.run(&stage, .milliseconds(50), answering: [1, 2])
        #expect(stage.way == 2)
        // What was nominated once is not nominated by each check that follows.
        stage.take(stage.checks.check(), from: 1)
        #expect(Self.run(&stage, .seconds(60), answering: [1, 2]) == [2] && stage.way == 2)
        let end = try #require(stage.agent.end)
        #expect(end > stage.now + .seconds(20))
    }

    @Test func `who controls goes the other way when that in use is dead, and the other side checks it`() throws {
        var stage = try Self.withTwoWays(controls: true)
        _ = Self.run(&stage, .seconds(20), answering: [1])
        _ = Self.run(&stage, .seconds(12), answering: [])
        stage.take(ICEChecks.controlled(), from: 2)
        _ = Self.run(&stage, .seconds(1), answering: [2])
        #expect(stage.way == 2)
        #expect(Self.run(&stage, .seconds(60), answering: [2]) == [2])
        let end = try #require(stage.agent.end)
        #expect(end > stage.now)
    }

    @Test func `a nomination that is not answered gives way to the next best, after 3 s`() throws {
        var stage = Stage([1, 2])
        let best = try Self.first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        stage.answer(best.message, from: 1)
        #expect(Self.run(&stage, .milliseconds(2999), answering: [2]) == [1] && !stage.isChosen)
        _ = Self.run(&stage, .milliseconds(600), answering: [2])
        #expect(stage.way == 2 && stage.isChosen)
    }

    @Test func `no from a way that was left ends nothing`() throws {
        var stage = try Self.withTwoWays(controls: false)
        let pause = try #require(stage.agent.next) - stage.now
        let question = try Self.first(stage.asked(after: pause))
        stage.take(stage.checks.check(nominates: true), from: 2)
        _ = Self.run(&stage, .milliseconds(100), answering: [2])
        try #require(stage.way == 2)
        stage.answer(question.message, from: 1, kind: .failure) { $0.append(errorCode: 403, reason: "Forbidden") }
        let end = try #require(stage.agent.end)
        #expect(end > stage.now)
    }

    @Test func `a way that is not nominated is asked for consent, too, and ends without`() throws {
        var stage = Stage(controls: false)
        stage.exchange()
        try #require(stage.way == 1 && !stage.isChosen)
        #expect(Self.run(&stage, .seconds(60), answering: [1]) == [1])
        _ = Self.run(&stage, .seconds(40), answering: [])
        let end = try #require(stage.agent.end)
        #expect(end <= stage.now && stage.agent.next == nil)
        // Nothing begins it again, and nothing waits.
        stage.agent.add([ICECandidate(.host, ICEChecks.address(3), priority: 9)], at: stage.now)
        #expect(stage.agent.next == nil && stage.asked(after: .seconds(1)).isEmpty)
    }

    @Test func `what has not answered is asked once more when the other side is told again`() {
        var stage = Stage()
        while let next = stage.agent.next { _ = stage.asked(after: next - stage.now) }
        stage.agent.add([ICECandidate(.host, ICEChecks.address(1), priority: 1000)], at: stage.now)
        #expect(stage.exchange()?.port == 1 && stage.way == 1)
    }

    // MARK: Hostile

    @Test func `whoever has the password and comes from everywhere uses no memory`() {
        var stage = Self.connected(controls: false)
        for port in 2...2000 as ClosedRange<UInt16> { stage.take(stage.checks.check(), from: port) }
        #expect((1...2000 as ClosedRange<UInt16>).count { stage.agent.knows(ICEChecks.address($0)) } == 100)
        #expect(stage.way == 1)
        var flooded = Stage(controls: false)
        for _ in 0..<1000 {
            flooded.take(flooded.checks.check(), from: 1)
            _ = flooded.sent(after: .milliseconds(10))
        }
        // One check each 50 ms, each of which waits for 2 s at most once another follows it.
        #expect(flooded.agent.questions.count <= 42)
    }

    @Test func `random bytes are read without a trap`() {
        var generator = SeededGenerator(seed: 4)
        var stage = Stage([1, 2])
        for _ in 0..<thorough(20_000, quick: 2000) {
            let asked = stage.asked(after: .milliseconds(Int.random(in: 0...40, using: &generator)))
            var datagram = asked.first?.message.bytes ?? stage.checks.check()
            if Bool.random(using: &generator) { datagram[0] = 1 }
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                datagram[Int.random(in: datagram.indices, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            stage.take(datagram, from: UInt16.random(in: 1...4, using: &generator))
        }
        #expect(!stage.isChosen)
    }
}
