package import CallBasics
internal import MediaEngine

/// Asks servers how this side's address is seen from outside.
///
/// All are asked at once, and again after 150 and 450 ms. It is over when all have answered, 300 ms after the beginning when one
/// has, and after 1 s in any case: a call waits for it.
/// Source: RFC 8489, section 6; RFC 8445, section 5.1.1.2.
package struct MappingQuery: PortQuery {
    private struct Question {
        let server: SocketAddress
        let transaction: STUNMessage.Transaction
        var answer: Answer?
    }

    /// What a server has said.
    package struct Answer: Sendable, Hashable {
        package let server: SocketAddress
        /// How it sees this side.
        package let mapped: SocketAddress
        /// How long its answer took.
        package let delay: Duration
    }

    private var questions: [Question]
    private let begin: MediaTime
    private var sendCount = 0
    private var leaving: [(bytes: [UInt8], destination: SocketAddress)] = []

    /// Questions to `servers`, the first 4, from `now` on.
    package init(_ servers: [SocketAddress], _ generator: inout some RandomNumberGenerator, at now: MediaTime) {
        begin = now
        questions = servers.prefix(4).map { server in
            Question(server: server, transaction: STUNMessage.Transaction(using: &generator))
        }
    }

    /// The answers, in the servers' order.
    package var answers: [Answer] { questions.compactMap(\.answer) }

    package mutating func advance(to now: MediaTime) -> MediaTime? {
        let open = questions.filter { $0.answer == nil }
        let end = begin + (answers.isEmpty ? Self.limit : Self.patience)
        guard !open.isEmpty, now < end else { return nil }
        while sendCount < Self.times.count, now >= begin + Self.times[sendCount] {
            sendCount += 1
            for question in open {
                let writer = STUNWriter(.request, .binding, question.transaction)
                leaving.append((writer.finish(withFingerprint: false), question.server))
            }
        }
        return sendCount < Self.times.count ? min(end, begin + Self.times[sendCount]) : end
    }

    package mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
        defer { leaving = [] }
        return leaving
    }

    package mutating func take(_ datagram: [UInt8], from source: SocketAddress, at now: MediaTime) {
        guard let message = STUNMessage(parsing: datagram), message.kind == .success, message.method == .binding,
            message.notUnderstood.isEmpty, message.hasRightFingerprint != false,
            let index = questions.firstIndex(where: { $0.server == source && $0.transaction == message.transaction }),
            questions[index].answer == nil,
            let mapped = message.address(.xorMappedAddress) ?? message.address(.mappedAddress)
        else { return }
        questions[index].answer = Answer(server: source, mapped: mapped, delay: now - begin)
    }

    /// What keeps an address as it is seen, when nothing else is sent for long; nobody answers it.
    ///
    /// Source: RFC 8445, section 11.
    package static func reminder(_ generator: inout some RandomNumberGenerator) -> [UInt8] {
        STUNWriter(.indication, .binding, STUNMessage.Transaction(using: &generator)).finish(withFingerprint: true)
    }

    private static let times = [Duration.zero, .milliseconds(150), .milliseconds(450)]
    static let patience = Duration.milliseconds(300)
    static let limit = Duration.seconds(1)
}
