/// What a call screen wants done with a call.
///
/// Each is fulfilled or failed exactly once, as `CallProvider.performed` tells: an answer within 10 s, all else within 5 s. Of those
/// that a reset finds under way nothing is told.
public struct ProviderAction: Hashable, Sendable, Codable, Identifiable {
    /// What is to be done.
    public enum Kind: Hashable, Sendable, Codable {
        /// Call somebody; the screen gives the call its identifier.
        case start(to: String, account: String? = nil)
        /// Answer a call that came, also before its INVITE is here.
        case answer
        /// End a call, whatever it is at; one that rings is declined.
        case end
        /// Hold a call, or resume it.
        case setHeld(Bool)
        /// Take a call and another one into the conference, in which all hear each other; nil takes it out, and talks with it alone.
        ///
        /// To hold a call of the conference holds all of them: this side leaves it, and they go on among themselves.
        case setGroup(with: CallUUID?)
        /// Mute the microphone for this call; the other side is not told.
        case setMuted(Bool)
        /// Send keys to the other side: 0-9 * # A-D; `,` is a pause.
        case playDTMF(String)
    }

    /// What its outcome names; the screen counts up.
    public let id: UInt64
    /// The call that it is about.
    public let call: CallUUID
    /// What is to be done.
    public let kind: Kind

    /// An action on a call.
    public init(id: UInt64, _ call: CallUUID, _ kind: Kind) { (self.id, self.call, self.kind) = (id, call, kind) }

    /// How long it may take until it counts as failed.
    var limit: Duration { kind == .answer ? .seconds(10) : .seconds(5) }
}

/// What became of an action.
public enum ActionOutcome: Hashable, Sendable, Codable {
    /// Why an action was not performed.
    public enum Fault: String, Hashable, Sendable, Codable, CaseIterable {
        /// There is no such call, or not any more.
        case unknownCall
        /// It does not fit what the call is at.
        case notNow
        /// The network, or the other side, refused it.
        case refused
        /// It took too long.
        case timedOut
        /// Another action of the same transaction cannot be performed, so none was.
        case transactionRefused
    }

    case fulfilled
    case failed(Fault)
}

/// What a screen shows of a call.
public struct CallUpdate: Hashable, Sendable, Codable {
    /// The address of the other side; empty as long as it is not known.
    public var remote: String
    /// The name that the other side shows of itself; it proves nothing.
    public var displayName: String?
    /// Whether only the push has told of the call: what the INVITE says is still to come.
    public var isPlaceholder = false
    /// Whether this side holds it.
    public var isHeld = false
    /// Whether it is in the conference.
    public var isGrouped = false
    /// Whether the other side wants to send video, which is not taken.
    public var hasVideo = false

    /// A call with somebody.
    public init(remote: String, displayName: String? = nil, isPlaceholder: Bool = false) {
        (self.remote, self.displayName, self.isPlaceholder) = (remote, displayName, isPlaceholder)
    }
}

/// Why a call is not on the screen any more, where no action of the screen ended it.
public enum ReportedEnd: String, Hashable, Sendable, Codable, CaseIterable {
    /// It could not be made, or broke off.
    case failed
    /// The other side ended it, or took it back.
    case remoteEnded
    /// Nobody answered in time.
    case unanswered
    /// Another phone of the user answered it.
    case answeredElsewhere
    /// Another phone of the user declined it.
    case declinedElsewhere
}

/// How far an own call is.
public enum OutgoingStage: String, Hashable, Sendable, Codable, CaseIterable {
    /// The INVITE has left.
    case connecting
    /// The other side has answered.
    case connected
}

/// Why a screen does not show a call that came; nothing rings then.
public enum CallRefusal: String, Error, Hashable, Sendable, Codable, CaseIterable {
    /// The user is not to be disturbed, or has enough calls: 486.
    case busy
    /// The user does not want calls of that caller: 603.
    case blocked

    var status: Int { self == .busy ? 486 : 603 }
}
