package import Glibc
package import NIOCore

/// How channels to a name are made and served: over Unix sockets, or within one process for tests.
package protocol MessageTransport: Sendable {
    /// What serves all channels, and whose time counts.
    var eventLoop: any EventLoop { get }

    /// Takes `name`; clients are accepted once the listener is opened.
    ///
    /// `initialize` is called for each client's channel before anything is read from it.
    func listen(
        as name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any MessageListener

    /// Connects to the server called `name`.
    ///
    /// - Throws: `Invalidation.noServer` when there is none now.
    func connect(
        to name: String,
        initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws -> any Channel

    /// Who is at the other end of `channel`; on the channel's event loop.
    func identity(of channel: any Channel) -> EventLoopFuture<PeerIdentity>

    /// Connects the socket for descriptors of a client of `name`.
    func connectAttachments(to name: String, token: [UInt8]) -> AttachmentSocket.Outcome<AttachmentSocket>
}

/// A server's place, until it is closed.
package protocol MessageListener: Sendable {
    /// Begins to accept clients.
    func open() async throws

    /// Accepts connections for descriptors that wait; answers why one could not be.
    func acceptAttachments(_ take: (_ token: [UInt8], _ process: pid_t, _ socket: AttachmentSocket) -> Void) -> String?

    /// Ends it: the name is free when this returns.
    func close() async
}
