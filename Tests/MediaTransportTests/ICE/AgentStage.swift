import CallBasics
import TestSupport
import Testing

@testable import MediaTransport
@testable import SDP

/// The agent, and the other side as the test plays it; time is an argument.
struct AgentStage {
    var agent: FullAgent
    var checks = ICEChecks()
    private(set) var now = MediaTime.zero

    /// Candidates are ports, the best one first.
    init(_ ports: [UInt16] = [1], controls: Bool = true) {
        let candidates = ports.enumerated().map { index, port in
            ICECandidate(.host, ICEChecks.address(port), priority: ICEComponent.media.priority(.host) - UInt32(index))
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
            STUNMessage(parsing: datagram.bytes).map { ($0, datagram.route.peer.port) }
        }
    }

    /// The requests among them.
    mutating func asked(after pause: Duration = .zero) -> [(message: STUNMessage, port: UInt16)] {
        sent(after: pause).filter { $0.message.kind == .request }
    }

    mutating func take(_ datagram: [UInt8], from port: UInt16) {
        agent.take(datagram, by: Route(ICEChecks.address(port)), at: now)
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

    var way: UInt16? { agent.destination?.peer.port }
    var isChosen: Bool { agent.selected != nil }

    /// The first of what was sent.
    static func first(
        _ sent: [(message: STUNMessage, port: UInt16)]
    ) throws -> (message: STUNMessage, port: UInt16) { try #require(sent.first) }
}
