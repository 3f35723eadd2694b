internal import CallBasics

/// The keep-alives of one flow: when the next one leaves, and until when it has to be answered.
///
///     CRLF CRLF ──►   over a stream; ◄── CRLF is the answer
///     CRLF ──►        over UDP; nothing comes back
///
/// The answer is waited for only where it can be expected: after the other side has given one, or agreed to outbound.
/// Source: RFC 5626, section 3.5, 4.4.1 and 4.4.2
package struct KeepAlive: Hashable, Sendable {
    /// What was agreed when the flow was registered.
    package struct Agreement: Hashable, Sendable {
        /// The value of Flow-Timer: for how long the server waits for a keep-alive.
        package var flowTimerSeconds: UInt32?
        /// Whether the registrar supports outbound.
        package var hasOutbound: Bool

        package init(flowTimerSeconds: UInt32? = nil, hasOutbound: Bool = false) {
            (self.flowTimerSeconds, self.hasOutbound) = (flowTimerSeconds, hasOutbound)
        }
    }

    /// Flow-Timers below this are not followed: nobody makes a client send without end.
    static let shortestInterval = Duration.seconds(10)

    private let interval: ClosedRange<Duration>
    private let patience: Duration?
    private var isAnswerExpected: Bool
    /// Whether a ping was sent that has no answer.
    private(set) var isWaiting = false
    /// Whether a ping was answered.
    private(set) var isProven = false
    private var nextTime: MediaTime
    private var answerEnd: MediaTime?

    init(
        _ agreement: Agreement,
        isReliable: Bool,
        hasAnswered: Bool = false,
        _ timers: FlowTimers,
        _ generator: inout SeededGenerator,
        at now: MediaTime
    ) {
        let wish = agreement.flowTimerSeconds.map { max(.seconds($0), Self.shortestInterval) }
        let longest = wish ?? timers.streamInterval
        let drawn = (longest * 4 / 5)...longest
        // The mapping of a NAT lives no longer because a server is patient.
        interval = isReliable || drawn.upperBound < timers.datagramInterval.lowerBound ? drawn : timers.datagramInterval
        patience = isReliable ? timers.pong : nil
        isAnswerExpected = agreement.hasOutbound || hasAnswered
        nextTime = now
        nextTime = now + draw(&generator)
    }

    /// Whether the other side has answered a ping, or said that it will.
    var expectsAnswers: Bool { isAnswerExpected }
    /// Until when the ping has to be answered.
    var end: MediaTime? { answerEnd }
    /// When the next one leaves.
    var pingTime: MediaTime { nextTime }

    /// The bytes of a keep-alive, when it is time.
    mutating func ping(_ generator: inout SeededGenerator, at now: MediaTime) -> [UInt8]? {
        guard nextTime <= now else { return nil }
        nextTime = now + draw(&generator)
        guard let patience else { return Self.lineEnd }
        isWaiting = true
        if isAnswerExpected, answerEnd == nil { answerEnd = now + patience }
        return Self.lineEnd + Self.lineEnd
    }

    /// A line end came that is no ping; it counts when one was sent.
    mutating func receivePong() {
        guard isWaiting else { return }
        (isWaiting, isAnswerExpected, answerEnd, isProven) = (false, true, nil, true)
    }

    private func draw(_ generator: inout SeededGenerator) -> Duration {
        interval.lowerBound + (interval.upperBound - interval.lowerBound) * generator.nextUnit()
    }

    static let lineEnd: [UInt8] = [.carriageReturn, .lineFeed]
}
