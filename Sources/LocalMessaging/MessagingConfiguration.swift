/// Bounds and waiting times of a connection.
public struct MessagingConfiguration: Sendable {
    /// The most bytes of a frame that is accepted: message, and what of its blob travels in the stream.
    public var maximumFrameByteCount = 1 << 20
    /// The most bytes of a blob that is accepted as sealed memory.
    public var maximumBlobByteCount = 256 << 20
    /// Blobs of this size and above travel as sealed memory instead of in the stream.
    public var sealedBlobByteCount = 128 << 10
    /// The most levels of nesting in a message.
    public var maximumDepth = 16
    /// The most values in a message.
    public var maximumValueCount = 65_536
    /// Bytes on their way to a peer at which its senders are suspended, until half of them are gone.
    public var sendBufferByteCount = 1 << 20
    /// Bytes of received messages that wait for their handlers, an open file counted as 16 KiB; at that size nothing
    /// more is read.
    public var receiveBufferByteCount = 256 << 10
    /// Requests of one peer that are served at the same time.
    public var maximumConcurrentRequests = 64
    /// Requests of this side that wait for their answers.
    public var maximumPendingRequests = 4096
    /// Topics that a client may subscribe to.
    public var maximumTopics = 256
    /// Clients that a server has at most, those that have not introduced themselves yet among them.
    public var maximumClients = 1024
    /// How long a peer may take no bytes, or only a few, while some wait for it; then it is dropped.
    public var stallLimit: Duration = .seconds(2)
    /// How long the exchange that begins a connection may take.
    public var handshakeLimit: Duration = .seconds(2)
    /// Where handlers run; nil is the concurrency pool.
    ///
    /// `MessagingExecutor.shared` answers faster, and is for handlers that take microseconds.
    public var handlerExecutor: (any TaskExecutor)?

    /// The defaults.
    public init() {}
}
