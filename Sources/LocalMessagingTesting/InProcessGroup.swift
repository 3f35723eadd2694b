public import LocalMessaging
import NIOCore
import NIOEmbedded
import Synchronization

/// A group within one process, for tests: no sockets in the file system, and time that a test moves.
///
/// Servers and clients are the ordinary ones, with every bound and waiting time of theirs; only what is between them is
/// in memory. Each peer is this process. Time-outs, stall limits and pauses pass when `advanceTime` says so and not
/// before, so a test of them takes no time and has one outcome.
///
/// Thread: any. A side that is not closed, stopped or killed stays as long as the process.
public final class InProcessGroup: Sendable {
    private let network: InProcessNetwork
    private let sides = Mutex<[ObjectIdentifier: InProcessSide]>([:])

    /// An empty group at time zero.
    public init() {
        network = InProcessNetwork()
    }

    /// Starts to serve `name`; see `MessageServer.start`.
    public func startServer(
        name: String,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration = MessagingConfiguration(),
        shouldAccept: (@Sendable (PeerIdentity) async -> String?)? = nil,
        clientChanged: (@Sendable (MessageConnection, MessageServer.ClientChange) -> Void)? = nil
    ) async throws -> MessageServer {
        let side = InProcessSide(on: network.eventLoop)
        let server = try await MessageServer.start(
            name: name,
            over: InProcessTransport(network: network, side: side),
            handlers: handlers,
            configuration: configuration,
            shouldAccept: shouldAccept,
            clientChanged: clientChanged
        )
        sides.withLock { $0[ObjectIdentifier(server)] = side }
        return server
    }

    /// Connects to the server called `name`; see `MessageClient.connect`.
    public func connect(
        to name: String,
        handlers: MessageHandlers = MessageHandlers(),
        configuration: MessagingConfiguration = MessagingConfiguration(),
        waitingForServer limit: Duration? = nil,
        reconnection: Reconnection? = nil,
        changed: (@Sendable (MessageClient.Change) -> Void)? = nil
    ) async throws -> MessageClient {
        let side = InProcessSide(on: network.eventLoop)
        let client = try await MessageClient.connect(
            to: name,
            over: InProcessTransport(network: network, side: side),
            handlers: handlers,
            configuration: configuration,
            waitingForServer: limit,
            reconnection: reconnection,
            changed: changed
        )
        sides.withLock { $0[ObjectIdentifier(client)] = side }
        return client
    }

    // MARK: Time

    /// Moves the time on; what is due by then happens at its time and in its order.
    ///
    /// Handlers and whoever awaits run on the concurrency pool, so let the test wait for what it expects of them, before
    /// and after.
    public func advanceTime(by duration: Duration) async {
        await network.eventLoop.advanceTime(by: TimeAmount(duration))
    }

    /// Moves the time on, `step` by `step`, until `isDone`: for what begins to wait at a moment that nobody can see, as
    /// the pauses of a reconnection do.
    public func advanceTime(inStepsOf step: Duration, until isDone: () async -> Bool) async {
        while await !isDone() {
            await advanceTime(by: step)
            await Task.yield()
        }
    }

    // MARK: Faults

    /// Ends a server as a SIGKILL would: its streams end without a goodbye, and its name is free.
    public func kill(_ server: MessageServer) async {
        network.release(server.name, of: side(of: server))
        await side(of: server)?.kill()
    }

    /// Ends a client as a SIGKILL would: its stream ends without a goodbye, and it does not connect again.
    public func kill(_ client: MessageClient) async {
        await side(of: client)?.kill()
    }

    /// Has a client read nothing, as a SIGSTOP would, until it is told otherwise.
    public func holdReading(of client: MessageClient, _ isHeld: Bool = true) async {
        await side(of: client)?.holdReading(isHeld)
    }

    /// Has a server read nothing of any client, until it is told otherwise.
    public func holdReading(of server: MessageServer, _ isHeld: Bool = true) async {
        await side(of: server)?.holdReading(isHeld)
    }

    private func side(of object: AnyObject) -> InProcessSide? {
        sides.withLock { $0[ObjectIdentifier(object)] }
    }
}
