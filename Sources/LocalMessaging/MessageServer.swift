import Glibc
import NIOCore
import Synchronization

/// Serves a name in a group to any number of clients.
///
/// The name belongs to this server until it stops or its process dies, however it dies; then the next may take it.
///
/// Thread: any.
public final class MessageServer: Sendable {
    /// What happened to a client.
    public enum ClientChange: Sendable {
        /// It is connected.
        case joined
        /// Its connection is over.
        case left(Invalidation)
    }

    /// The name that clients connect to.
    public let name: String
    private let listener: any MessageListener
    private let clientTable: ClientTable

    /// Starts to serve `name` in `group`.
    ///
    /// - Parameters:
    ///   - name: Letters, digits, `.`, `-` and `_`, at most 64 bytes.
    ///   - group: The group whose processes may connect.
    ///   - handlers: The messages that are accepted of clients.
    ///   - configuration: Bounds of each connection.
    ///   - shouldAccept: Decides on a client by what the kernel says of it; answers why not, or nil to accept. Nil
    ///     accepts processes of this user.
    ///   - clientChanged: Told of each client that comes and goes, on the thread that serves all connections: it must
    ///     not wait there.
    /// - Returns: The server, which clients find from now on.
    /// - Throws: `ServerError`, as when the name is taken; `GroupError` when it is no name.
    public static func start(
        name: String,
        in group: GroupContainer,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration = MessagingConfiguration(),
        shouldAccept: (@Sendable (PeerIdentity) async -> String?)? = nil,
        clientChanged: (@Sendable (MessageConnection, ClientChange) -> Void)? = nil
    ) async throws -> MessageServer {
        try await start(
            name: name,
            over: SocketTransport(group: group),
            handlers: handlers,
            configuration: configuration,
            shouldAccept: shouldAccept,
            clientChanged: clientChanged
        )
    }

    package static func start(
        name: String,
        over transport: any MessageTransport,
        handlers: MessageHandlers,
        configuration: MessagingConfiguration,
        shouldAccept: (@Sendable (PeerIdentity) async -> String?)?,
        clientChanged: (@Sendable (MessageConnection, ClientChange) -> Void)?
    ) async throws -> MessageServer {
        let clients = ClientTable(maximum: configuration.maximumClients, changed: clientChanged)
        let decide: @Sendable (PeerIdentity) async -> String? = { peer in
            if let shouldAccept { return await shouldAccept(peer) }
            return peer.user == geteuid() ? nil : "user \(peer.user) is not user \(geteuid()), whose group this is."
        }
        let listener = try await transport.listen(as: name) { channel in
            channel.eventLoop.makeCompletedFuture {
                let refusal = clients.count(channel)
                let established = channel.eventLoop.makePromise(of: MessageConnection.self)
                let handler = ConnectionHandler(
                    role: .server { peer in if let refusal { refusal } else { await decide(peer) } },
                    transport: transport,
                    handlers: handlers,
                    configuration: configuration,
                    established: established,
                    acceptAttachments: { clients.acceptAttachments() }
                )
                try channel.pipeline.syncOperations.addHandler(handler)
                let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
                established.futureResult.whenSuccess { clients.add($0, driver: bound) }
            }
        }
        // Known before the first client is accepted, which may pass descriptors at once.
        clients.open(listener)
        do {
            try await listener.open()
        } catch {
            await listener.close()
            throw error
        }
        return MessageServer(name: name, listener: listener, clients: clients)
    }

    private init(name: String, listener: any MessageListener, clients: ClientTable) {
        self.name = name
        self.listener = listener
        clientTable = clients
    }

    /// The clients that are connected now, in the order in which they came.
    public var clients: [MessageConnection] { clientTable.connections }

    /// Sends a message to every client that accepts its type and, when there is a topic, has subscribed to it.
    ///
    /// All that have room get it at once; then those are waited for that have none. A client that reads nothing for
    /// `stallLimit` is dropped, so one that hangs holds the others up once at most. Clients for which the message is too
    /// large are passed over.
    ///
    /// - Returns: The number of clients that it was sent to.
    /// - Throws: `MessagingError` when the message cannot be coded.
    @discardableResult
    public func broadcast<Message: LocalMessage>(
        _ message: Message,
        topic: String = "",
        attachments: Attachments = .none
    ) async throws -> Int {
        let listeners = clients.filter { client in
            client.acceptedByPeer.contains(Message.messageType) && (topic.isEmpty || client.isSubscribed(to: topic))
        }
        // Coded once: the bytes are the same for all.
        guard
            let frame = try listeners.first?.coded(message, as: .message, topic: topic, attachments: attachments)
        else { return 0 }
        var count = 0
        var waiting: [MessageConnection] = []
        for client in listeners where client.takes(frame) {
            do throws(MessagingError) {
                if try client.admit(frame) { count += 1 } else { waiting.append(client) }
            } catch {
                // It has left meanwhile.
                continue
            }
        }
        guard !waiting.isEmpty else { return count }
        return await withTaskGroup(of: Bool.self) { group in
            for client in waiting { group.addTask { (try? await client.enqueue(frame)) != nil } }
            for await isSent in group where isSent { count += 1 }
            return count
        }
    }

    /// Ends all connections after what was sent before is written, and gives the name free.
    public func stop() async {
        clientTable.close()
        await withTaskGroup(of: Void.self) { group in
            for client in clients { group.addTask { await client.close() } }
        }
        await listener.close()
    }
}

/// The clients of a server.
private final class ClientTable: Sendable {
    private struct Client {
        let connection: MessageConnection
        let driver: NIOLoopBound<ConnectionHandler>
    }

    private struct State {
        var clients: [ObjectIdentifier: Client] = [:]
        var order: [ObjectIdentifier] = []
        /// Channels that are open, with a connection or on the way to it.
        var channelCount = 0
        var listener: (any MessageListener)?
        var isClosed = false
    }

    private let maximum: Int
    private let changed: (@Sendable (MessageConnection, MessageServer.ClientChange) -> Void)?
    private let state = Mutex(State())

    init(maximum: Int, changed: (@Sendable (MessageConnection, MessageServer.ClientChange) -> Void)?) {
        self.maximum = maximum
        self.changed = changed
    }

    var connections: [MessageConnection] {
        state.withLock { state in state.order.compactMap { state.clients[$0]?.connection } }
    }

    /// Counts a client's channel, until it is closed; tells why it is not accepted, or nil when there is a place for it.
    func count(_ channel: any Channel) -> String? {
        channel.closeFuture.whenComplete { [weak self] _ in self?.state.withLock { $0.channelCount -= 1 } }
        return state.withLock { state in
            state.channelCount += 1
            return state.channelCount <= maximum ? nil : "\(maximum) clients are connected, which is the most."
        }
    }

    func open(_ listener: any MessageListener) {
        state.withLock { $0.listener = listener }
    }

    func close() {
        state.withLock { $0.isClosed = true }
    }

    func add(_ connection: MessageConnection, driver: NIOLoopBound<ConnectionHandler>) {
        let id = ObjectIdentifier(connection)
        let isLate = state.withLock { state in
            guard !state.isClosed else { return true }
            state.clients[id] = Client(connection: connection, driver: driver)
            state.order.append(id)
            return false
        }
        // It hears of the end as the others do, so that it may look for the next server.
        guard !isLate else { return driver.value.closeInOrder() }
        changed?(connection, .joined)
        connection.onInvalidation { [weak self] reason in self?.remove(id, reason) }
    }

    private func remove(_ id: ObjectIdentifier, _ reason: Invalidation) {
        let client = state.withLock { state in
            state.order.removeAll { $0 == id }
            return state.clients.removeValue(forKey: id)
        }
        if let client { changed?(client.connection, .left(reason)) }
    }

    /// Hands sockets for descriptors to the connections whose tokens came with them; on the event loop.
    func acceptAttachments() -> String? {
        let (listener, clients) = state.withLock { ($0.listener, Array($0.clients.values)) }
        return listener?.acceptAttachments { token, process, socket in
            clients.first { $0.driver.value.token == token }?.driver.value.take(socket, from: process)
        }
    }
}
