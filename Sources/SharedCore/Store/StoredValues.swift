public import Foundation

/// A message in the store.
public struct StoredMessage: Hashable, Sendable {
    /// Where a message is on its way to a person.
    public enum Status: Hashable, Sendable {
        /// Nobody shows it.
        case pending
        /// A process that lives has taken it to show it.
        case claimed(ProcessIdentity)
        /// It was shown; what it said is no longer kept.
        case acknowledged
    }

    /// The message; without text once it is acknowledged.
    public let message: IncomingMessage
    /// When it was received, by the wall clock: for people to read, never to decide by.
    public let receivedAt: Date
    /// Where it is.
    public let status: Status
}

/// A message that one process has taken to show it to a person.
public struct ClaimedMessage: Hashable, Sendable {
    /// The message.
    public let message: IncomingMessage
    /// When it was received, by the wall clock.
    public let receivedAt: Date
    /// Whether a process that died before it could acknowledge may have shown it already.
    public let isRepeated: Bool
    /// What no other message has.
    package let key: String
    /// The process that has it.
    package let claimant: ProcessIdentity
}

/// A chat room in the store.
public struct StoredRoom: Hashable, Sendable {
    /// The invitation by which it became known.
    public let invitation: RoomInvitation
    /// When that was, by the wall clock.
    public let createdAt: Date
}

/// An account of the group.
public struct StoredAccount: Hashable, Codable, Sendable {
    /// The address of the account, by which it is known.
    public let address: String
    /// What its service needs to know about it, by name.
    public let parameters: [String: String]

    /// An account.
    public init(address: String, parameters: [String: String] = [:]) {
        self.address = address
        self.parameters = parameters
    }
}

/// One call in the log.
public struct CallRecord: Hashable, Codable, Sendable {
    /// Who called whom.
    public enum Direction: String, Codable, Hashable, Sendable {
        /// The far end called.
        case incoming
        /// This side called.
        case outgoing
    }

    /// The identifier of the call; recording it again replaces what was recorded.
    public let callID: String
    /// The address of the far end.
    public let remote: String
    /// Who called whom.
    public let direction: Direction
    /// When it began, by the wall clock.
    public let startedAt: Date
    /// How long both could speak; nil when nobody answered.
    public let duration: Duration?

    /// A call.
    public init(callID: String, remote: String, direction: Direction, startedAt: Date, duration: Duration? = nil) {
        self.callID = callID
        self.remote = remote
        self.direction = direction
        self.startedAt = startedAt
        self.duration = duration
    }
}

/// How an account of the group is registered, as the core that runs last saw it.
public struct StoredRegistration: Hashable, Codable, Sendable {
    /// The address of the account.
    public let address: String
    /// Where the registration is, in the words of its service: for SIP `ok`, `failed` and `none`.
    public let state: String
    /// Why it is there; nil where nothing is wrong.
    public let reason: String?
    /// Until when the server keeps it, by the wall clock; nil when it does not.
    public let expiresAt: Date?
    /// Whether the server sends pushes; nil when it has not said.
    public let isPushServed: Bool?

    /// A registration.
    public init(
        address: String,
        state: String,
        reason: String? = nil,
        expiresAt: Date? = nil,
        isPushServed: Bool? = nil
    ) {
        self.address = address
        self.state = state
        self.reason = reason
        self.expiresAt = expiresAt
        self.isPushServed = isPushServed
    }
}

/// How many messages a store holds, and has seen through.
public struct MessageCounts: Hashable, Codable, Sendable {
    /// Messages that nobody has acknowledged yet, claimed or not.
    public let pending: Int
    /// Messages acknowledged since the group was created.
    public let acknowledged: Int
}

/// How much a store keeps of what is done with.
public struct StoreLimits: Hashable, Sendable {
    /// How many acknowledged messages are remembered, so that a late duplicate is known.
    public var acknowledgedCount = 10_000
    /// For how long they are, in time during which the machine was on or asleep.
    public var acknowledgedAge: Duration = .seconds(7 * 24 * 3600)
    /// How many calls the log holds.
    public var callCount = 1_000

    /// The limits that suit a group of one person.
    public init() {}
}
