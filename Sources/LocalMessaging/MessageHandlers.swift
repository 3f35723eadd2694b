import NIOCore

/// What a handler is told beside the message.
public struct MessageContext: Sendable {
    /// Where the message came from; answers and messages of one's own may be sent there.
    public let connection: MessageConnection
    /// The topic under which it was published; empty when under none.
    public let topic: String
    /// What came with it.
    public let attachments: Attachments
}

/// The message types that a side accepts, and what is done with each.
///
/// A type that is not here is refused before anything of it is decoded; its sender is told so.
///
/// Thread: handlers run on the concurrency pool, or on `MessagingConfiguration.handlerExecutor`. Those of one peer begin
/// in the order in which it sent; one for a plain message ends before the next begins. Requests are served side by side
/// from where their handlers first wait: up to there, which is what keeps the order, one runs after the other.
public struct MessageHandlers: Sendable {
    enum Entry: Sendable {
        case message(@Sendable (ByteBuffer, MessageBounds, MessageContext) async throws -> Void)
        case request(@Sendable (ByteBuffer, MessageBounds, MessageContext) async throws -> (ByteBuffer, Attachments))
    }

    private var entries: [MessageType: Entry] = [:]
    var failed: (@Sendable (RemoteFailure, MessageType, MessageConnection) -> Void)?

    /// No type is accepted.
    public init() {}

    /// Accepts messages of a type.
    public mutating func on<Message: LocalMessage>(
        _: Message.Type,
        perform: @escaping @Sendable (Message, MessageContext) async -> Void
    ) {
        add(
            Message.messageType,
            .message { payload, bounds, context in
                await perform(try Self.decode(Message.self, payload, bounds), context)
            }
        )
    }

    /// Accepts requests of a type; what `answer` throws is told to the sender.
    public mutating func reply<Request: LocalRequest>(
        to _: Request.Type,
        with answer: @escaping @Sendable (Request, MessageContext) async throws -> Request.Reply
    ) {
        replyWithAttachments(to: Request.self) { (try await answer($0, $1), .none) }
    }

    /// Accepts requests of a type, and answers with attachments.
    public mutating func replyWithAttachments<Request: LocalRequest>(
        to _: Request.Type,
        with answer: @escaping @Sendable (Request, MessageContext) async throws -> (Request.Reply, Attachments)
    ) {
        add(
            Request.messageType,
            .request { payload, bounds, context in
                let (reply, attachments) = try await answer(try Self.decode(Request.self, payload, bounds), context)
                return (try MessageCoding.encode(reply), attachments)
            }
        )
    }

    /// Hears of plain messages that the peer could not take.
    ///
    /// Thread: the one that serves all connections; `perform` must not wait there.
    public mutating func onFailure(
        perform: @escaping @Sendable (RemoteFailure, MessageType, MessageConnection) -> Void
    ) {
        failed = perform
    }

    var types: [MessageType] { entries.keys.sorted { ($0.name, $0.version) < ($1.name, $1.version) } }

    func entry(for type: MessageType) -> Entry? { entries[type] }

    private mutating func add(_ type: MessageType, _ entry: Entry) {
        precondition(entries[type] == nil, "\(type) has a handler already.")
        precondition(entries.count < Handshake.maximumTypeCount, "A side accepts at most 1024 types.")
        entries[type] = entry
    }

    private static func decode<Message: Decodable>(
        _: Message.Type,
        _ payload: ByteBuffer,
        _ bounds: MessageBounds
    ) throws(RemoteFailure) -> Message {
        do throws(MessageCoding.Failure) {
            return try MessageCoding.decode(Message.self, from: payload, within: bounds)
        } catch {
            throw RemoteFailure(.undecodable, error.description)
        }
    }
}
