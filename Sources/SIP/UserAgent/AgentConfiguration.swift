package import CallBasics
package import SDP

/// What a user agent is, and what it wants of the way to others.
package struct AgentConfiguration: Sendable {
    /// Who requests without an account come from, and the user part of the own Contact.
    package var identity: NameAddress
    /// What is taken and told to others.
    package var capabilities = Capabilities.phone
    /// What may carry messages.
    package var transports: [Flow.Transport] = [.udp, .tcp]
    /// Which addresses are asked for, as `ResolutionWishes` has it.
    package var families: [ResolutionWishes.Family] = [.ipv6, .ipv4]
    /// The way that requests without an account have to go, as by an outbound proxy.
    package var routes: [NameAddress] = []
    /// The value of User-Agent and Server; nil says nothing of the program.
    package var product: String?
    /// The address that Contact says in the place of the flow's own: a mapping by hand.
    package var advertised: SocketAddress?
    /// How long sessions may last without a refresh.
    package var sessionTimer = SessionTimer.Wishes()
    /// Whether provisional responses are to be acknowledged (RFC 3262): own INVITEs require it then, and callers who know it do it.
    ///
    /// Else that is so where the other side wants it.
    package var wantsReliableProvisionals = false
    /// Whether others may ask this side to call somebody; then the user decides on each.
    package var takesTransfers = false
    /// Whether others can connect by TLS; else Contact names the own end of the connection, once the other side has told it.
    package var isReachableByTLS = true
    /// Whether requests go on to where a 3xx leads; else that is a refusal.
    package var followsRedirections = true
    /// How long an own call rings before it is taken back.
    package var callPatience = Duration.seconds(60)
    /// How long a received call rings before it is answered 486.
    package var ringPatience = Duration.seconds(45)
    /// How long a request other than INVITE waits for its answer at each target.
    package var requestPatience = Duration.seconds(15)
    /// How long calls outlive the network.
    package var networkPatience = Duration.seconds(60)
    /// Whether a MESSAGE is answered 200 at once; else its user answers each.
    package var answersMessages = true
    /// The status by which texts are refused, but no receipts and the like; nil takes them.
    package var textRefusal: Int?
    /// Calls beyond these are answered 503.
    package var callCount = 65_536
    /// Calls of one address that ring at once; those beyond are answered 503.
    package var ringingPerSource = 32
    /// Rooms that this side is in, or invited to; those beyond are answered 503.
    package var roomCount = 1024

    package init(identity: NameAddress) { self.identity = identity }
}

extension Capabilities {
    /// What a phone takes: calls with their changes, keys, messages, questions.
    package static let phone = Capabilities(
        methods: [.invite, .ack, .cancel, .bye, .prack, .options, .info, .update, .message, .refer, .notify],
        extensions: ["timer", "100rel", "replaces", "norefersub"],
        bodies: [
            BodyTypes(
                .invite,
                ["application/sdp", "multipart/mixed", "multipart/alternative", ResourceList.type]
            ),
            BodyTypes(.update, ["application/sdp", "multipart/mixed", "multipart/alternative"]),
            BodyTypes(.info, ["application/dtmf-relay", "application/dtmf"]),
            BodyTypes(.message, InstantMessage.types),
        ]
    )
}

/// Names a call; after its end the name stays unused.
package struct CallHandle: SlotName {
    package let slot: Int
    package let serial: UInt64

    package init(slot: Int, serial: UInt64) { (self.slot, self.serial) = (slot, serial) }
}

/// Names an account of a user agent.
package struct AccountHandle: SlotName {
    package let slot: Int
    package let serial: UInt64

    package init(slot: Int, serial: UInt64) { (self.slot, self.serial) = (slot, serial) }
}

/// Names a request on its way; after its end the name stays unused.
package struct ErrandID: SlotName {
    package let slot: Int
    package let serial: UInt64

    package init(slot: Int, serial: UInt64) { (self.slot, self.serial) = (slot, serial) }
}

/// What a user agent tells its user.
package enum AgentEvent: Sendable {
    case registration(AccountHandle, Registration.State, Registration.Reason)
    /// A REGISTER that had no answer; the state follows.
    case registrationFailed(AccountHandle, RequestFailure)
    /// The way that an account was registered by carries nothing any more; the account registers anew.
    case flowEnded(AccountHandle, Flow, FlowEnd)
    /// Somebody calls: ring, answer or reject.
    case incoming(CallHandle, SIPMessage)
    /// A provisional response to the own INVITE, but 100.
    case progress(CallHandle, SIPMessage)
    /// Both sides have agreed on what flows, also before the call is answered.
    case agreed(CallHandle, AgreedSession)
    /// The call is answered.
    case established(CallHandle)
    /// A key came by INFO.
    case key(CallHandle, DTMFRelay)
    /// A change of the session was refused; all is as it was agreed before.
    case changeRefused(CallHandle, status: Int)
    /// What became of an own transfer.
    case transfer(CallHandle, TransferProgress)
    /// The other side wants a call to somebody else: accept or refuse it.
    case transferRequested(CallHandle, TransferRequest)
    /// Nobody has decided on that in time: it was refused.
    case transferLapsed(CallHandle)
    case ended(CallHandle, CallEnd)
    /// A message has come; it was answered 200, or waits for `answer` where a transaction is named.
    case message(InstantMessage, SIPMessage, TransactionID?)
    /// A provisional or the final response to a request of the user.
    case response(ErrandID, SIPMessage, Flow)
    case failed(ErrandID, RequestFailure)
    /// What became of an own subscription.
    case subscription(SubscriptionHandle, SubscriptionEvent)
    /// What happens to a chat room.
    case room(RoomHandle, RoomEvent)
    /// Where a request goes.
    case targets(ErrandID, [Target])

    /// The call that it is about; nil where it is about none.
    package var call: CallHandle? {
        switch self {
        case .incoming(let handle, _), .progress(let handle, _), .agreed(let handle, _), .established(let handle),
            .key(let handle, _), .changeRefused(let handle, _), .transfer(let handle, _),
            .transferRequested(let handle, _), .transferLapsed(let handle), .ended(let handle, _):
            handle
        default: nil
        }
    }
}

/// Why a request has no final response.
package enum RequestFailure: Error, Hashable, Sendable {
    /// Its URI leads nowhere.
    case unresolved(ResolutionError)
    /// No target answered; the last failure, and how many were tried.
    case unanswered(TargetFailure, triedCount: Int)
    /// It cannot be written.
    case invalid(SIPError)
}

/// How a call ended.
package struct CallEnd: Hashable, Sendable {
    package enum Side: Hashable, Sendable { case us, them, network }

    package enum Cause: Hashable, Sendable {
        /// BYE, after the call was answered.
        case hungUp
        /// Taken back, by either side, before it was answered.
        case cancelled
        /// Refused by either side with this status.
        case refused(Int)
        /// The INVITE, or a later request, was not answered in time.
        case timeout
        case failed(RequestFailure)
        /// The ACK to the own 2xx did not come.
        case unacknowledged
        /// The session was not refreshed in time.
        case expired
        /// Another call of the other side has taken its place.
        case replaced
        /// What the other side described cannot be taken.
        case unacceptable
    }

    package var side: Side
    package var cause: Cause
    /// The response that ended it, with its reason phrase and headers; nil when none did.
    package var response: SIPMessage?
    /// The header Reason of the BYE or CANCEL that ended it, as it came.
    package var reason: String?

    package init(_ side: Side, _ cause: Cause, response: SIPMessage? = nil, reason: String? = nil) {
        (self.side, self.cause, self.response, self.reason) = (side, cause, response, reason)
    }

    /// What a referrer is told of it.
    var status: Int {
        switch cause {
        case .refused(let status): status
        case .cancelled: 487
        case .timeout: 408
        case .failed(.unresolved): 404
        case .failed: 503
        case .hungUp, .unacknowledged, .expired, .replaced, .unacceptable: 500
        }
    }

    package static func == (one: CallEnd, other: CallEnd) -> Bool {
        one.side == other.side && one.cause == other.cause && one.reason == other.reason
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(side)
        hasher.combine(cause)
    }
}
