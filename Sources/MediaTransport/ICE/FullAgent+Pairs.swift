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
}
