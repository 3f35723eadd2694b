import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The side of ICE that looks for the way: what it asks and answers, when, and what it makes of answers.
@Suite(.tags(.rfc)) struct FullAgentTests {
    // MARK: What is asked

    @Test func `a check proves the other side's password, and says how good this side is, and who controls`() throws {
        var stage = AgentStage()
        let check = try AgentStage.first(stage.asked()).message
        #expect(check.text(.username) == "abcd:ours" && check.hasRightFingerprint == true)
        #expect(check.isSigned(with: STUNKey(shortTerm: ICEChecks.remote.password)))
        #expect(check.number(.priority) == 0x6EFF_FFFF as UInt32)
        #expect(check.tieBreaker(.iceControlling) != nil && check[.useCandidate] == nil)
        var other = AgentStage(controls: false)
        let controlled = try AgentStage.first(other.asked()).message
        #expect(controlled.tieBreaker(.iceControlled) != nil && controlled[.iceControlling] == nil)
    }

    @Test func `the best address is asked at once, and one more each 50 ms`() {
        var stage = AgentStage([1, 2, 3])
        #expect(stage.asked().map(\.port) == [1])
        #expect(stage.asked(after: .milliseconds(49)).isEmpty)
        #expect(stage.agent.next == .zero + .milliseconds(50))
        #expect(stage.asked(after: .milliseconds(1)).map(\.port) == [2])
        #expect(stage.asked(after: .milliseconds(50)).map(\.port) == [3])
        #expect(stage.asked(after: .milliseconds(50)).isEmpty)
    }

    @Test func `a check is sent seven times, with pauses that grow, and then no more`() {
        var stage = AgentStage()
        var times: [Int64] = []
        while let next = stage.agent.next {
            for _ in stage.asked(after: next - stage.now) { times.append(stage.now.nanoseconds / 1_000_000) }
        }
        #expect(times == [0, 500, 1500, 3500, 7500, 15_500, 31_500])
        #expect(stage.now == .zero + .milliseconds(39_500) && stage.way == nil)
    }

    @Test func `what the other side checks is checked before all others, from wherever it comes`() {
        var stage = AgentStage([1, 2, 3], controls: false)
        _ = stage.asked()
        stage.take(stage.checks.check(), from: 7)
        #expect(stage.sent(after: .milliseconds(50)).map(\.port) == [7, 7])
        stage.take(stage.checks.check(), from: 3)
        #expect(stage.asked(after: .milliseconds(50)).map(\.port) == [3])
        #expect(stage.agent.knows(Route(ICEChecks.address(7))) && !stage.agent.knows(Route(ICEChecks.address(2))))
    }

    // MARK: Which way

    @Test func `the best way is nominated, and a better one is waited for, but not for long`() throws {
        var stage = AgentStage([1, 2])
        let better = try AgentStage.first(stage.asked())
        stage.exchange(after: .milliseconds(50))
        #expect(stage.way == 2 && !stage.isChosen)
        #expect(stage.asked(after: .milliseconds(200)).isEmpty)
        stage.answer(better.message, from: 1)
        let nomination = try AgentStage.first(stage.asked())
        #expect(nomination.port == 1 && nomination.message[.useCandidate] != nil && !stage.isChosen)
        stage.answer(nomination.message, from: 1)
        #expect(stage.way == 1 && stage.isChosen)
        stage = AgentStage([1, 2])
        _ = stage.asked()
        stage.exchange(after: .milliseconds(50))
        #expect(stage.asked(after: .milliseconds(299)).isEmpty)
        #expect(stage.exchange(after: .milliseconds(1))?.port == 2 && stage.isChosen && stage.way == 2)
    }

    @Test func `a way that cannot be nominated gives way to the next`() throws {
        var stage = AgentStage([1, 2])
        stage.exchange()
        let nomination = try AgentStage.first(stage.asked())
        stage.answer(nomination.message, from: 1, kind: .failure) { $0.append(errorCode: 500, reason: "no") }
        #expect(stage.exchange(after: .milliseconds(50))?.port == 2)
        #expect(stage.exchange()?.port == 2 && stage.isChosen)
    }

    @Test func `who is controlled goes the way that the other side nominates, once that has been checked`() throws {
        var stage = AgentStage([1, 2], controls: false)
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
        var stage = AgentStage([], controls: false)
        stage.take(stage.checks.check(), from: 5)
        let answer = try AgentStage.first(stage.sent().filter { $0.message.kind == .success })
        #expect(answer.port == 5 && answer.message.address(.xorMappedAddress) == ICEChecks.address(5))
        #expect(answer.message.isSigned(with: STUNKey(shortTerm: ICEChecks.own.password)))
        stage.take(stage.checks.check(priority: nil), from: 6)
        stage.take(stage.checks.check { $0.append(STUNAttribute(rawValue: 0x7001), [1]) }, from: 6)
        #expect(stage.sent().compactMap(\.message.error?.code) == [400, 420])
        stage.take(stage.checks.check(password: "another password that is long"), from: 6)
        #expect(
            stage.sent().isEmpty && stage.agent.refusedCount == 1 && !stage.agent.knows(Route(ICEChecks.address(6)))
        )
    }

    @Test func `of two that control, the one with the smaller number gives in, and asks again`() throws {
        var stage = AgentStage()
        _ = stage.asked()
        // The other side's number is 7.
        stage.take(stage.checks.check(), from: 1)
        #expect(stage.sent().compactMap(\.message.error?.code) == [487])
        let question = try AgentStage.first(stage.asked(after: .milliseconds(500)))
        stage.answer(question.message, from: 1, kind: .failure) { $0.append(errorCode: 487, reason: "Role Conflict") }
        let again = try AgentStage.first(stage.asked(after: .milliseconds(50)))
        #expect(again.message[.iceControlled] != nil)
        #expect(again.message.tieBreaker(.iceControlled) != question.message.tieBreaker(.iceControlling))
    }

    // MARK: Answers

    @Test func `an answer counts that is signed, comes from where it was asked, and says how this side is seen`() throws
    {
        var stage = AgentStage()
        let question = try AgentStage.first(stage.asked()).message
        stage.answer(question, from: 1, password: "another password that is long")
        var foreign = STUNWriter(.success, .binding, question.transaction)
        foreign.append(.xorMappedAddress, ICEChecks.address(9))
        stage.take(foreign.finish(withFingerprint: true), from: 1)
        #expect(stage.way == nil)
        stage.answer(question, from: 1)
        #expect(stage.way == 1)
        for change: (inout AgentStage, STUNMessage) -> Void in [
            { $0.answer($1, from: 2) }, { $0.answer($1, from: 1) { _ in } },
            { $0.answer($1, from: 1, kind: .failure) { $0.append(errorCode: 400, reason: "no") } },
        ] {
            stage = AgentStage()
            let question = try AgentStage.first(stage.asked()).message
            change(&stage, question)
            stage.answer(question, from: 1)
            #expect(stage.way == nil && stage.agent.next == nil)
        }
    }

    @Test func `an answer that comes after the check was begun anew counts, too`() throws {
        var stage = AgentStage(controls: false)
        let question = try AgentStage.first(stage.asked()).message
        stage.take(stage.checks.check(), from: 1)
        _ = stage.sent(after: .milliseconds(50))
        #expect(stage.agent.knows(Route(ICEChecks.address(1))) && stage.way == nil)
        stage.answer(question, from: 1)
        #expect(stage.way == 1)
    }
}
