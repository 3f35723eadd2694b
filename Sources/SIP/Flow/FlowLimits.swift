internal import CallBasics

/// What is refused, so that no one takes all memory.
package struct FlowLimits: Hashable, Sendable {
    /// Connections accepted from one address.
    package var perSource = 64
    /// Connections accepted in all.
    package var accepted = 4096
    /// Connections that we opened.
    package var opened = 1024
    /// What waits for a connection to open.
    package var queuedMessages = 64
    package var queuedBytes = 262_144
    /// Parts of messages that have not come whole, of all connections.
    package var waitingBytes = 16_777_216
    /// UDP flows that are kept alive.
    package var keptFlows = 1024
    /// The largest packet of the path; nil when it is not known.
    package var mtu: Int?

    package init() {}

    /// How long a request by UDP may be.
    ///
    /// Units: bytes
    /// Source: RFC 3261, section 18.1.1
    var datagramByteCount: Int { mtu.map { $0 - 200 } ?? 1300 }
}

/// How long what is waited for.
package struct FlowTimers: Hashable, Sendable {
    /// For a connection to open.
    package var opening = Duration.seconds(10)
    /// For the rest of a message that began.
    package var message = Duration.seconds(32)
    /// For the first message of a connection that was accepted.
    package var firstMessage = Duration.seconds(32)
    /// For the answer to a message that ended a stream.
    package var answer = Duration.seconds(1)
    /// For a byte by a connection on which a request was not answered.
    package var suspicion = Duration.seconds(32)
    /// For any message by a connection that is not kept.
    package var idle = Duration.seconds(3600)
    /// For the answer to a ping.
    package var pong = Duration.seconds(10)
    /// Between the pings of a connection at most, when the server has no wish.
    package var streamInterval = Duration.seconds(30)
    /// Between the keep-alives of a UDP flow.
    package var datagramInterval = Duration.seconds(24)...Duration.seconds(29)
    /// How long TCP is not tried again where it was refused to a long request.
    package var refusal = Duration.seconds(300)

    package init() {}
}

/// Why a flow does not carry messages any more.
package enum FlowEnd: Hashable, Sendable {
    /// It could not be opened.
    case refused
    /// It did not open in time.
    case unopened
    /// The other side, or the network, closed it.
    case closed
    /// A datagram could not be delivered.
    case unreachable
    /// The own address is not there any more.
    case addressGone
    /// A ping was not answered.
    case noPong
    /// A request was not answered, and nothing came since.
    case unanswered
    /// No message came or went for long, or none at all.
    case idle
    /// A message did not come to its end in time.
    case slow
    /// What came is not SIP, or cannot be told apart any more.
    case faulty
    /// Too many parts of messages wait.
    case overloaded
}

/// How many entries each table of a stack's flows has; all are 0 when all is over.
package struct FlowCounts: Hashable, Sendable {
    /// Connections, and UDP flows that are kept.
    package internal(set) var flows = 0
    /// Targets with a connection that serves new requests.
    package internal(set) var targets = 0
    /// Addresses that connections were accepted from.
    package internal(set) var sources = 0
    package internal(set) var accepted = 0
    package internal(set) var opened = 0
    package internal(set) var kept = 0
    package internal(set) var deadlines = 0
    /// Bytes of messages that have not come whole.
    package internal(set) var waitingBytes = 0
    /// Targets that refused TCP to a long request.
    package internal(set) var refusals = 0
    /// What was not polled.
    package internal(set) var outputs = 0
}
