/// What a core runs: the side of it that talks to a server.
///
/// A core calls `start`, then `fetchPending`, `run` and `perform` in any order and also at the same time, and `stop` at
/// the end. Everything that arrives goes to the context, and only when the context has it (the transaction is
/// committed) is it acknowledged to the server: a process that dies in between gets it again, and the context tells
/// the repeat by its key. A service never starts by itself and keeps nothing of its own between two processes.
public protocol CoreService: Sendable {
    /// Takes the context and connects.
    ///
    /// A server that is not to be reached now is no error: `fetchPending`, `run` and `perform` connect again, with
    /// back-off.
    ///
    /// - Throws: what cannot mend by itself, such as a configuration that makes no sense.
    func start(_ context: CoreContext) async throws

    /// Pulls all that is pending now, and returns when each was delivered to the context and acknowledged to the server.
    ///
    /// Connections that end are made again until the task is cancelled, which is how a caller sets a limit.
    ///
    /// - Throws: what the context threw, `CancellationError`, or what cannot mend by itself.
    func fetchPending() async throws

    /// Stays connected and delivers what is pending and what arrives, until the task is cancelled.
    ///
    /// - Throws: as `fetchPending`; it never returns without an error.
    func run() async throws

    /// Performs an action at the server; returns when the server has it.
    ///
    /// An action may be performed again when it is not known whether it was; the server tells it by its identifier.
    ///
    /// - Throws: as `fetchPending`.
    func perform(_ action: MessageAction) async throws

    /// Sends the receipts that are still to be sent and closes the connection.
    ///
    /// Nothing is delivered after it has returned. What is still running ends with `CancellationError`.
    func stop() async
}

/// What a core gives to its service: its epoch, and the doors to the store.
public struct CoreContext: Sendable {
    /// The ownership under which the service writes.
    public let epoch: Epoch

    private let deliverMessage: @Sendable (IncomingMessage) async throws -> Bool
    private let deliverInvitation: @Sendable (RoomInvitation) async throws -> Bool
    private let recordCallRecord: @Sendable (CallRecord) async throws -> Void

    /// A context whose doors are closures: the store's in a core, anything in a test.
    public init(
        epoch: Epoch,
        deliver: @escaping @Sendable (IncomingMessage) async throws -> Bool,
        deliverInvitation: @escaping @Sendable (RoomInvitation) async throws -> Bool,
        recordCall: @escaping @Sendable (CallRecord) async throws -> Void
    ) {
        self.epoch = epoch
        deliverMessage = deliver
        self.deliverInvitation = deliverInvitation
        recordCallRecord = recordCall
    }

    /// Commits the message; true when it is new, false when it had come before.
    ///
    /// - Throws: when it is not committed; it must not be acknowledged then.
    @discardableResult
    public func deliver(_ message: IncomingMessage) async throws -> Bool {
        try await deliverMessage(message)
    }

    /// Commits the invitation; true when the room is new, false when it had come before.
    ///
    /// - Throws: when it is not committed; it must not be acknowledged then.
    @discardableResult
    public func deliver(_ invitation: RoomInvitation) async throws -> Bool {
        try await deliverInvitation(invitation)
    }

    /// Adds a call that has ended to the log.
    ///
    /// - Throws: when it is not committed.
    public func recordCall(_ call: CallRecord) async throws {
        try await recordCallRecord(call)
    }
}

/// A message as it came from a server.
public struct IncomingMessage: Codable, Sendable, Hashable {
    /// The identifier that a push carries, too; the key of the message.
    public var callID: String
    /// The sender's own identifier of the message, the same when it is sent again under another call-id.
    public var messageID: String?
    /// The address of the chat room in which it was written; nil when it came to us alone.
    public var room: String?
    /// The address of who wrote it.
    public var sender: String
    /// What was written.
    public var text: String

    /// A message of these parts.
    public init(callID: String, messageID: String? = nil, room: String? = nil, sender: String, text: String) {
        self.callID = callID
        self.messageID = messageID
        self.room = room
        self.sender = sender
        self.text = text
    }
}

/// An invitation to a chat room as it came from a server.
public struct RoomInvitation: Codable, Sendable, Hashable {
    /// The address of the room, which a push carries, too; the key of the invitation.
    public var address: String
    /// What the room is about.
    public var subject: String?
    /// The address of who invites.
    public var invitedBy: String

    /// An invitation of these parts.
    public init(address: String, subject: String? = nil, invitedBy: String) {
        self.address = address
        self.subject = subject
        self.invitedBy = invitedBy
    }
}

/// A call that has ended, for the calls log.
public struct CallRecord: Codable, Sendable, Hashable {
    /// Who called.
    public enum Direction: String, Codable, Sendable, CaseIterable {
        /// The other side called us.
        case incoming
        /// We called the other side.
        case outgoing
    }

    /// What became of the call.
    public enum Outcome: String, Codable, Sendable, CaseIterable {
        /// Somebody talked.
        case answered
        /// The called side did not answer.
        case missed
        /// The called side refused.
        case declined
        /// Another device of the called side answered.
        case answeredElsewhere
        /// The call could not be made.
        case failed
    }

    /// The identifier of the call; the key of the record.
    public var callID: String
    /// The address of the other side.
    public var remote: String
    /// Who called.
    public var direction: Direction
    /// What became of it.
    public var outcome: Outcome
    /// The wall-clock time at which the call began, for display.
    ///
    /// Units: seconds since 1970, UTC.
    public var startedAt: Int64
    /// How long the sides were connected; zero when they never were.
    public var duration: Duration

    /// A record of these parts.
    public init(
        callID: String,
        remote: String,
        direction: Direction,
        outcome: Outcome,
        startedAt: Int64,
        duration: Duration
    ) {
        self.callID = callID
        self.remote = remote
        self.direction = direction
        self.outcome = outcome
        self.startedAt = startedAt
        self.duration = duration
    }
}

/// What a person did with a notification, to be performed by the core that runs.
///
/// Shape: `{"id", "callID", "kind": "reply", "text"}` or `{"id", "callID", "kind": "markAsSeen"}` as JSON.
public struct MessageAction: Sendable, Hashable, Identifiable {
    /// What is to be done.
    public enum Kind: Sendable, Hashable {
        /// Answer the message with this text.
        case reply(String)
        /// Tell the sender that the message was seen.
        case markAsSeen
    }

    /// Tells one action from another; the same when an action is performed again.
    public var id: String
    /// The message it answers.
    public var callID: String
    /// What is to be done.
    public var kind: Kind

    /// An action of these parts.
    public init(id: String, callID: String, kind: Kind) {
        self.id = id
        self.callID = callID
        self.kind = kind
    }
}

extension MessageAction: Codable {
    private enum CodingKeys: CodingKey {
        case id, callID, kind, text
    }

    private enum KindName: String, Codable {
        case reply, markAsSeen
    }

    /// Reads an action in the shape named above.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        id = try members.decode(String.self, forKey: .id)
        callID = try members.decode(String.self, forKey: .callID)
        kind =
            switch try members.decode(KindName.self, forKey: .kind) {
            case .reply: .reply(try members.decode(String.self, forKey: .text))
            case .markAsSeen: .markAsSeen
            }
    }

    /// Writes the action in the shape named above.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(callID, forKey: .callID)
        switch kind {
        case .reply(let text):
            try members.encode(KindName.reply, forKey: .kind)
            try members.encode(text, forKey: .text)
        case .markAsSeen:
            try members.encode(KindName.markAsSeen, forKey: .kind)
        }
    }
}
