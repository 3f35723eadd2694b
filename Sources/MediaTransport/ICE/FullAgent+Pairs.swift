import CallBasics
import SDP

extension FullAgent {
    /// An address of the other side, and what checks of it have come to.
    struct Pair {
        enum State {
            case waiting
            case asked
            case valid
            case failed
        }

        let route: Route
        /// How good the other side calls its address.
        let remotePriority: UInt32
        var state = State.waiting
        /// Whether the other side has proved that it is there.
        var isKnown = false
        /// Whether the other side, which controls, has said that it is to be used, and it has not been checked since.
        var isNominated = false
        /// When it answered last.
        var lastAnswer = MediaTime.zero

        /// Whether it goes by the relay of this side, or by one of the other side.
        var goesByRelay: Bool { route.isRelayed || remotePriority >> 24 == 0 }

        /// How good it is, as both sides reckon it.
        ///
        /// Source: RFC 8445, section 6.1.2.3.
        func priority(_ isControlling: Bool, _ component: ICEComponent) -> UInt64 {
            let own = UInt64(component.priority(route.isRelayed ? .relay : .host))
            let other = UInt64(remotePriority)
            let isGreater = isControlling ? own > other : other > own
            return min(own, other) << 32 + 2 * max(own, other) + (isGreater ? 1 : 0)
        }
    }

    /// A request that waits for its answer.
    struct Question {
        enum Purpose {
            case check
            case nomination
            case consent
        }

        let transaction: STUNMessage.Transaction
        let route: Route
        let purpose: Purpose
        let isControlling: Bool
        let bytes: [UInt8]
        let begin: MediaTime
        /// When it is sent again, or given up.
        var time: MediaTime
        var pause: Duration
        var sendsLeft: Int
    }

    // MARK: Times and limits

    /// How long after one check the next may be sent (Ta).
    static let pace = Duration.milliseconds(50)
    /// RTO, how often a check is sent in all (Rc), and how long the last one is waited for (Rm · RTO).
    static let leastPause = Duration.milliseconds(500)
    static let sendLimit = 7
    static let lastPause = Duration.seconds(8)
    /// How long an answer may take to a check that is not sent any more.
    static let lateLimit = Duration.seconds(2)
    /// How long a better way is waited for; one without a relay for longer, until checks that were lost have been sent again.
    static let patience = Duration.milliseconds(300)
    static let relayedPatience = Duration.seconds(2)
    static let consentLimit = Duration.seconds(30)
    /// Longer than a pause between two questions for consent.
    static let silenceLimit = Duration.seconds(8)
    /// How long nobody agrees to the way in use before another one is looked for: two questions for consent have been lost.
    static let lossLimit = Duration.seconds(12)
    static let lossLead = Duration.seconds(4)
    /// How long old peers may nominate (RFC 8445, section 8.3).
    static let settlingTime = Duration.seconds(3)
    /// How long the other side may change its mind, for which its consent checks are the last occasion.
    static let relayPatience = Duration.seconds(10)
    static let pairLimit = 100
    /// How many there may be before none by the relay is added: others need no help.
    static let relayedLimit = 64
}
