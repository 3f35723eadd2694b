public import CallBasics

/// Why a message was not sent, or a request not answered.
public enum MessagingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The connection is over.
    case invalidated(Invalidation)
    /// The peer does not list this type among those that it accepts; those of the same name that it does.
    case notAccepted(MessageType, accepted: [UInt16])
    /// The frame would be larger than the peer accepts.
    case tooLarge(byteCount: Int, limit: Int)
    /// No answer came in time.
    case timedOut(Duration)
    /// More requests without answer than allowed.
    case tooManyRequests(limit: Int)
    /// The message could not be encoded, or the answer not decoded.
    case coding(MessageType, String)
    /// A topic has more than 255 bytes.
    case topicTooLong(byteCount: Int)
    /// Descriptors could not be passed.
    case attachments(String)
    /// The peer could not take the message, or its handler failed.
    case failed(RemoteFailure)

    /// What failed, and the remedy where there is one.
    public var description: String {
        switch self {
        case .invalidated(let reason): "The connection is over: \(reason)"
        case .notAccepted(let type, let accepted):
            accepted.isEmpty
                ? "The peer accepts no \(type.name). Register a handler for it there."
                : "The peer accepts no \(type), but version \(accepted.map(String.init).joined(separator: ", "))."
        case .tooLarge(let byteCount, let limit):
            "A message of \(byteCount) bytes is larger than the \(limit) that the peer accepts. "
                + "Put large data into a blob, which is passed as memory."
        case .timedOut(let limit): "No answer within \(limit)."
        case .tooManyRequests(let limit): "\(limit) requests wait for answers already. Wait for some of them."
        case .coding(let type, let why): "\(type) could not be coded: \(why)"
        case .topicTooLong(let byteCount): "A topic of \(byteCount) bytes; 255 are the most. Choose a shorter one."
        case .attachments(let why): "Attachments could not be passed: \(why)"
        case .failed(let failure): failure.description
        }
    }
}

/// What the other side says of a message that it could not take.
public struct RemoteFailure: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: String, Hashable, Sendable, Codable {
        /// No handler is registered for the type, so nothing was decoded.
        case unknownType
        /// The bytes were not a message of that type, or went beyond the bounds.
        case undecodable
        /// The handler threw.
        case handlerFailed
    }

    /// The kind of failure.
    public let code: Code
    /// What the other side says.
    public let message: String

    /// A failure to be told to the sender of a message.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

/// Why a connection is over; said exactly once.
public enum Invalidation: Error, Hashable, Sendable, CustomStringConvertible {
    /// This side closed it.
    case closed
    /// The peer closed it in order.
    case closedByPeer
    /// The stream ended without a goodbye: the peer has ended, or was killed.
    case peerDied
    /// The server does not accept this client.
    case refused(String)
    /// The peer speaks another version of the protocol.
    case incompatible(version: UInt8)
    /// The peer broke the protocol.
    case violation(String)
    /// The peer took no bytes, or only a few, for this long while some waited.
    case stalled(Duration)
    /// The exchange that begins a connection took longer than this.
    case handshakeTimedOut(Duration)
    /// There is no server of this name.
    case noServer(String)
    /// The system reported an error.
    case system(String)

    /// What happened, and the remedy where there is one.
    public var description: String {
        switch self {
        case .closed: "it was closed here."
        case .closedByPeer: "the peer closed it."
        case .peerDied: "the peer's process ended."
        case .refused(let why): "the server refused: \(why)"
        case .incompatible(let version): "the peer speaks version \(version) of the protocol; this is 1."
        case .violation(let why): "the peer broke the protocol: \(why)"
        case .stalled(let limit): "the peer read nothing, or next to nothing, for \(limit)."
        case .handshakeTimedOut(let limit): "the peer did not introduce itself within \(limit)."
        case .noServer(let name): "nobody serves \(name). Start its server, or wait for it."
        case .system(let why): why
        }
    }
}

/// Why a server could not be started.
public typealias ServerError = Failure<ServerFault>

/// The kinds of `ServerError`.
public enum ServerFault: Hashable, Sendable {
    /// A live server has the name.
    case taken
    /// Something that is no socket has the name.
    case notASocket
    /// The system refused.
    case system
}
