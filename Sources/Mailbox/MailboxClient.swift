internal import CallBasics
import Glibc
import NIOCore
import NIOPosix
import SharedCore

/// Where a mailbox is; makes connections to it.
struct MailboxClient: Sendable {
    let host: String
    let port: Int

    /// Connects, runs `body`, and closes the connection when it ends.
    ///
    /// - Throws: `MailboxError` with code `unreachable` or `cannotConnect`, `CancellationError`, or what `body` throws.
    func withConnection<Result: Sendable>(
        _ body: (inout MailboxConnection) async throws -> Result
    ) async throws -> Result {
        let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        do {
            channel = try await connect()
        } catch let error as CancellationError {
            throw error
        } catch {
            throw MailboxError(connectingTo: "\(host):\(port)", error)
        }
        return try await channel.executeThenClose { lines, writer in
            let sender = MailboxSender(name: "\(host):\(port)", writer: writer)
            var connection = MailboxConnection(sender: sender, lines: lines.makeAsyncIterator())
            return try await body(&connection)
        }
    }

    private func connect() async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(.seconds(5))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(MailboxLineDecoder()))
                }
            }
            .connect(host: host, port: port)
        // A connect cannot be taken back; who is cancelled does not wait for it, and a late one is closed.
        let connected = loop.makePromise(of: (any Channel).self)
        connecting.cascade(to: connected)
        connected.futureResult.whenFailure { _ in
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return try await withTaskCancellationHandler {
            // On the loop, before it reads: nothing is missed.
            try await connected.futureResult.flatMapThrowing { channel in
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }.get()
        } onCancel: {
            connected.fail(CancellationError())
        }
    }
}

extension MailboxError {
    /// Why a connect failed: a name or a server that is not there may come, what the system forbids stays forbidden.
    init(connectingTo name: String, _ cause: any Error) {
        let causes = (cause as? NIOConnectionError)?.connectionErrors.map(\.error) ?? [cause]
        let isForbidden =
            !causes.isEmpty
            && causes.allSatisfy { ($0 as? IOError).map { Self.refusals.contains($0.errnoCode) } ?? false }
        let message =
            isForbidden
            ? "The system lets nobody connect to the mailbox \(name): \(cause). Check what this process may do."
            : "The mailbox \(name) is not to be reached: \(cause). Check the address, and that it runs."
        self.init(isForbidden ? .cannotConnect : .unreachable, message)
    }

    private static var refusals: Set<CInt> { [EACCES, EPERM, EINVAL, ENOPROTOOPT, EAFNOSUPPORT, EPROTONOSUPPORT] }
}

/// The way to a mailbox over a connection.
struct MailboxSender: Sendable {
    let name: String
    let writer: NIOAsyncChannelOutboundWriter<ByteBuffer>

    /// Sends a request; waits while the server does not take more.
    ///
    /// - Throws: `MailboxError`, `CancellationError`.
    func send(_ request: MailboxRequest) async throws {
        let line = try request.line()
        do {
            try await writer.write(ByteBuffer(bytes: line + [UInt8(ascii: "\n")]))
        } catch {
            throw disconnection(error)
        }
    }

    /// Why the connection is no more.
    fileprivate func disconnection(_ cause: (any Error)?) -> any Error {
        guard !Task.isCancelled else { return CancellationError() }
        let reason = cause.map { ": \($0)" } ?? ""
        let message = "The mailbox \(name) closed the connection\(reason). Check that it still runs."
        return MailboxError(.disconnected, message)
    }
}

/// A connection to a mailbox.
struct MailboxConnection {
    let sender: MailboxSender
    fileprivate var lines: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator

    /// Waits for what the server sends next.
    ///
    /// - Throws: `MailboxError`, `CancellationError`.
    mutating func receive() async throws -> MailboxResponse {
        let line: ByteBuffer?
        do {
            line = try await lines.next()
        } catch let error as MailboxError {
            throw error
        } catch {
            throw sender.disconnection(error)
        }
        guard let line else { throw sender.disconnection(nil) }
        switch try MailboxLine.decode(MailboxResponse.self, from: line) {
        case .error(let reason): throw MailboxError(.refused, "The mailbox \(sender.name) refused a request: \(reason)")
        case let response: return response
        }
    }
}
