import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The side of ICE that looks for the way, once it has found one: consent, other ways, and whatever may come.
@Suite(.tags(.rfc)) struct FullAgentLifeTests {
    // MARK: Consent

    private static func connected(controls: Bool = true) -> AgentStage {
        var stage = AgentStage(controls: controls)
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
        let question = try AgentStage.first(stage.asked(after: pause))
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
    private static func withTwoWays(controls: Bool) throws -> AgentStage {
        var stage = AgentStage([1, 2], controls: controls)
        let best = try AgentStage.first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        stage.answer(best.message, from: 1)
        if !controls { stage.take(stage.checks.check(nominates: true), from: 1) }
        if controls { stage.exchange() }
        try #require(stage.way == 1 && stage.isChosen)
        return stage
    }

    /// Lets time go by while questions to `ports` are answered; answers whom it asked.
    private static func run(_ stage: inout AgentStage, _ limit: Duration, answering ports: Set<UInt16>) -> Set<UInt16> {
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
        var stage = AgentStage([1, 2])
        let best = try AgentStage.first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        stage.answer(best.message, from: 1)
        #expect(Self.run(&stage, .milliseconds(2999), answering: [2]) == [1] && !stage.isChosen)
        _ = Self.run(&stage, .milliseconds(600), answering: [2])
        #expect(stage.way == 2 && stage.isChosen)
    }

    @Test func `no from a way that was left ends nothing`() throws {
        var stage = try Self.withTwoWays(controls: false)
        let pause = try #require(stage.agent.next) - stage.now
        let question = try AgentStage.first(stage.asked(after: pause))
        stage.take(stage.checks.check(nominates: true), from: 2)
        _ = Self.run(&stage, .milliseconds(100), answering: [2])
        try #require(stage.way == 2)
        stage.answer(question.message, from: 1, kind: .failure) { $0.append(errorCode: 403, reason: "Forbidden") }
        let end = try #require(stage.agent.end)
        #expect(end > stage.now)
    }

    @Test func `a way that is not nominated is asked for consent, too, and ends without`() throws {
        var stage = AgentStage(controls: false)
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
        let told = [ICECandidate(.host, ICEChecks.address(1), priority: 1000)]
        var stage = AgentStage()
        while let next = stage.agent.next { _ = stage.asked(after: next - stage.now) }
        stage.agent.add(told, at: stage.now)
        #expect(stage.exchange()?.port == 1 && stage.way == 1)
        stage = AgentStage()
        for pause in [0, 500, 1000, 2000] { #expect(stage.asked(after: .milliseconds(pause)).count == 1) }
        stage.agent.add(told, at: stage.now)
        #expect(stage.exchange()?.port == 1 && stage.way == 1)
    }

    @Test(arguments: [400, 403, 500])
    func `a way that is refused when it is nominated leaves nothing that waits for the past`(
        code: Int
    ) throws {
        var stage = AgentStage()
        stage.exchange()
        let nomination = try AgentStage.first(stage.asked())
        stage.answer(nomination.message, from: 1, kind: .failure) { $0.append(errorCode: code, reason: "no") }
        #expect(stage.way == nil)
        for _ in 0..<20 {
            _ = stage.asked(after: .seconds(1))
            #expect(stage.agent.next.map { $0 > stage.now } ?? true)
        }
    }

    @Test func `an address that is told later is checked, and used once that before is silent`() throws {
        var stage = Self.connected()
        stage.agent.add([ICECandidate(.host, ICEChecks.address(2), priority: 5)], at: stage.now)
        #expect(Self.run(&stage, .seconds(20), answering: [1, 2]) == [1, 2] && stage.way == 1)
        _ = Self.run(&stage, .seconds(20), answering: [2])
        #expect(stage.way == 2)
        #expect(Self.run(&stage, .seconds(60), answering: [2]).contains(2) && stage.way == 2)
    }

    // MARK: Hostile

    @Test func `whoever has the password and comes from everywhere uses no memory`() {
        var stage = Self.connected(controls: false)
        for port in 2...2000 as ClosedRange<UInt16> { stage.take(stage.checks.check(), from: port) }
        #expect((1...2000 as ClosedRange<UInt16>).count { stage.agent.knows(Route(ICEChecks.address($0))) } == 100)
        #expect(stage.way == 1)
        var flooded = AgentStage(controls: false)
        for _ in 0..<1000 {
            flooded.take(flooded.checks.check(), from: 1)
            _ = flooded.sent(after: .milliseconds(10))
        }
        // One check each 50 ms, each of which waits for 2 s at most once another follows it.
        #expect(flooded.agent.questions.count <= 42)
    }

    @Test(arguments: [true, false])
    func `whatever comes, and whenever, it does not wait for the past, and does not grow`(
        controls: Bool
    ) {
        var generator = SeededGenerator(seed: controls ? 5 : 6)
        var stage = AgentStage([1, 2, 3], controls: controls)
        var asked: [(message: STUNMessage, port: UInt16)] = []
        for _ in 0..<thorough(20_000, quick: 5000) {
            let port = UInt16.random(in: 1...6, using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0:
                let priority = UInt32.random(in: 0...2000, using: &generator)
                let nominates = Bool.random(using: &generator)
                stage.take(stage.checks.check(priority: priority, nominates: nominates), from: port)
            case 1: stage.take(ICEChecks.controlled(), from: port)
            case 2...4:
                guard let question = asked.randomElement(using: &generator) else { break }
                stage.answer(
                    question.message,
                    from: Int.random(in: 0..<9, using: &generator) == 0 ? port : question.port
                )
            case 5:
                guard let question = asked.randomElement(using: &generator) else { break }
                let code = [400, 401, 403, 487, 500].randomElement(using: &generator) ?? 400
                stage.answer(question.message, from: question.port, kind: .failure) {
                    $0.append(errorCode: code, reason: "no")
                }
            case 6: stage.agent.add([ICECandidate(.host, ICEChecks.address(port), priority: 5)], at: stage.now)
            default: break
            }
            let pause = Duration.milliseconds(Int.random(in: 0...60, using: &generator))
            asked = (asked + stage.asked(after: pause)).suffix(8)
            #expect(stage.agent.next.map { $0 > stage.now } ?? true)
            #expect(stage.agent.questions.count < 400)
            // Another one begins where it has ended.
            if stage.agent.next == nil { stage = AgentStage([1, 2, 3], controls: controls) }
        }
    }

    @Test func `random bytes are read without a trap`() {
        var generator = SeededGenerator(seed: 4)
        var stage = AgentStage([1, 2])
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
