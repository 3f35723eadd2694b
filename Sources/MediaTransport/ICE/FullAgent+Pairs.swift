import CallBasics

extension FullAgent {
    /// An address of the other side, and what checks of it have come to.
    struct Pair {
        enum State {
            case waiting
            case asked
            case valid
            case failed
        }

        let remote: SocketAddress
        /// With an own address that is the same for all, this alone orders them (RFC 8445, section 6.1.2.3).
        let priority: UInt32
        var state = State.waiting
        /// Whether the other side has proved that it is there.
        var isKnown = false
        /// Whether the other side, which controls, has said that it is to be used, and it has not been checked since.
        var isNominated = false
        /// When it answered last.
        var lastAnswer = MediaTime.zero
    }

    /// A request that waits for its answer.
    struct Question {
        enum Purpose {
            case check
            case nomination
            case consent
        }

        let transaction: STUNMessage.Transaction
        let remote: SocketAddress
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
