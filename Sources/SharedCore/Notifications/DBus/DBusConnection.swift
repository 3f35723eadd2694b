internal import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// A connection to a message bus: calls with their replies, and what else arrives.
///
/// Thread: any. Bytes are read on an event loop; nothing blocks.
/// Source: D-Bus Specification 0.43.
final class DBusConnection: Sendable {
    private struct State {
        var lastSerial: UInt32 = 0
        var calls: [UInt32: CheckedContinuation<DBusMessage, any Error>] = [:]
        var end: NotificationError?
    }

    /// Signals, and calls of our methods, in their order; the latest 1024 wait.
    let arrivals: AsyncStream<DBusMessage>

    private let channel: any Channel
    private let arrival: AsyncStream<DBusMessage>.Continuation
    private let state = Mutex(State())

    /// Connects to the first of `addresses` that answers, authenticates as this user and takes a name.
    ///
    /// - Throws: `NotificationError`.
    static func connect(to addresses: [DBusAddress]) async throws -> DBusConnection {
        var failure = NotificationError(.noBus, "There is no session bus. Start a desktop session.")
        for address in addresses {
            let socket: CInt
            do throws(NotificationError) {
                socket = try address.connect()
            } catch {
                failure = error
                continue
            }
            let connection = try await DBusConnection(socket: socket)
            _ = try await connection.call(.call(Self.bus, Self.busPath, Self.bus, "Hello"))
            return connection
        }
        throw failure
    }

    private init(socket: CInt) async throws {
        (arrivals, arrival) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1024))
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let authenticated = loop.makePromise(of: Void.self)
        do {
            channel = try await ClientBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(ByteToMessageHandler(DBusDecoder()))
                        try pipeline.addHandler(DBusAuthenticator(authenticated: authenticated))
                    }
                }
                .withConnectedSocket(socket).get()
        } catch {
            authenticated.fail(error)
            throw NotificationError(.noBus, "The bus cannot be spoken to: \(error). Start a desktop session.")
        }
        do {
            let timeout = loop.scheduleTask(in: .seconds(5)) {
                authenticated.fail(NotificationError(.timedOut, "The bus did not let us in within 5 s. Check it."))
            }
            defer { timeout.cancel() }
            try await authenticated.futureResult.get()
            let receiver = DBusReceiver(onMessage: { self.take($0) }, onEnd: { self.end($0) })
            try await channel.eventLoop.submit { [channel] in
                try channel.pipeline.syncOperations.addHandler(receiver)
                if !channel.isActive { receiver.onEnd(nil) }
            }.get()
        } catch {
            channel.close(promise: nil)
            throw (error as? NotificationError) ?? Self.closed(error)
        }
    }

    /// Calls a method and waits for what it returns.
    ///
    /// - Throws: `NotificationError`, with code `refused` when the answer is an error; `CancellationError`.
    @discardableResult
    func call(_ message: DBusMessage, timeout: Duration = .seconds(5)) async throws -> [DBusValue] {
        let name = message.member ?? ""
        let serial = nextSerial()
        let limit = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) { [self] in
            let error = NotificationError(.timedOut, "The desktop did not answer \(name) within \(timeout). Check it.")
            finish(serial, with: .failure(error))
        }
        defer { limit.cancel() }
        let reply = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let end = state.withLock { state in
                    if state.end == nil { state.calls[serial] = continuation }
                    return state.end
                }
                if let end { continuation.resume(throwing: end) } else { send(message, serial: serial) }
                // What was cancelled before has not found the continuation.
                if Task.isCancelled { finish(serial, with: .failure(CancellationError())) }
            }
        } onCancel: {
            finish(serial, with: .failure(CancellationError()))
        }
        guard reply.kind == .reply else {
            let text = reply.body.first?.string ?? ""
            let message =
                "The desktop refused \(name): \(reply.errorName ?? "no name") \(text). Check what shows notifications."
            throw NotificationError(.refused, message)
        }
        return reply.body
    }

    /// Sends a message that has no answer.
    func send(_ message: DBusMessage) {
        send(message, serial: nextSerial())
    }

    /// Whether the bus has closed it, or it was closed.
    var hasEnded: Bool { state.withLock { $0.end != nil } }

    /// Ends the connection; calls that wait fail.
    func close() {
        channel.close(promise: nil)
    }

    static var bus: String { "org.freedesktop.DBus" }
    static var busPath: String { "/org/freedesktop/DBus" }

    private func send(_ message: DBusMessage, serial: UInt32) {
        var message = message
        message.serial = serial
        channel.writeAndFlush(ByteBuffer(bytes: message.serialize()), promise: nil)
    }

    private func nextSerial() -> UInt32 {
        state.withLock { state in
            // Zero is no serial.
            state.lastSerial = state.lastSerial == .max ? 1 : state.lastSerial + 1
            return state.lastSerial
        }
    }

    private func take(_ message: DBusMessage) {
        switch message.kind {
        case .reply, .error:
            // An answer that came too late has nobody who waits.
            if let serial = message.replySerial { finish(serial, with: .success(message)) }
        case .call, .signal:
            arrival.yield(message)
        }
    }

    private func finish(_ serial: UInt32, with result: Result<DBusMessage, any Error>) {
        state.withLock { $0.calls.removeValue(forKey: serial) }?.resume(with: result)
    }

    private func end(_ cause: (any Error)?) {
        let error = (cause as? NotificationError) ?? Self.closed(cause)
        let calls = state.withLock { state in
            if state.end == nil { state.end = error }
            defer { state.calls = [:] }
            return state.calls.values
        }
        for call in calls { call.resume(throwing: error) }
        arrival.finish()
    }

    private static func closed(_ cause: (any Error)?) -> NotificationError {
        let reason = cause.map { ": \($0)" } ?? ""
        return NotificationError(.disconnected, "The bus closed the connection\(reason). Start a desktop session.")
    }
}

/// Something that a bus sends: a line while it authenticates, then messages.
enum DBusInbound: Hashable, Sendable {
    case line(String)
    case message(DBusMessage)
}

/// Cuts the stream of a bus into lines, up to the one that lets us in, and then into messages.
struct DBusDecoder: NIOSingleStepByteToMessageDecoder {
    typealias InboundOut = DBusInbound

    private var isAuthenticated = false

    mutating func decode(buffer: inout ByteBuffer) throws -> DBusInbound? {
        try isAuthenticated ? message(&buffer) : line(&buffer)
    }

    mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> DBusInbound? {
        if let inbound = try decode(buffer: &buffer) { return inbound }
        buffer.clear()
        return nil
    }

    private mutating func line(_ buffer: inout ByteBuffer) throws -> DBusInbound? {
        guard let end = buffer.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else {
            guard buffer.readableBytes <= Self.longestLine else { throw DBusReader.malformed }
            return nil
        }
        let byteCount = end + 1 - buffer.readerIndex
        guard byteCount <= Self.longestLine, let line = buffer.readString(length: byteCount) else {
            throw DBusReader.malformed
        }
        isAuthenticated = line.hasPrefix("OK ")
        return .line(line)
    }

    private func message(_ buffer: inout ByteBuffer) throws -> DBusInbound? {
        while buffer.readableBytes >= DBusMessage.headerByteCount {
            let byteCount = try DBusMessage.byteCount(ofHeader: buffer.readableBytesView)
            guard let bytes = buffer.readBytes(length: byteCount) else { return nil }
            if let message = try DBusMessage(parsing: bytes) { return .message(message) }
        }
        return nil
    }

    private static var longestLine: Int { 4096 }
}

/// Tells the bus which user we are; the kernel proves it.
///
/// Source: D-Bus Specification 0.43, "Authentication Protocol", mechanism EXTERNAL.
private final class DBusAuthenticator: ChannelInboundHandler {
    typealias InboundIn = DBusInbound
    typealias OutboundOut = ByteBuffer

    private let authenticated: EventLoopPromise<Void>

    init(authenticated: EventLoopPromise<Void>) {
        self.authenticated = authenticated
    }

    func channelActive(context: ChannelHandlerContext) {
        let user = String(geteuid()).utf8.map { String($0, radix: 16) }.joined()
        send("\0AUTH EXTERNAL \(user)\r\n", context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .line(let line) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        if line.hasPrefix("OK ") {
            send("BEGIN\r\n", context)
            authenticated.succeed()
        } else {
            let answer = line.prefix { $0 != "\r\n" && $0 != "\n" }
            authenticated.fail(
                NotificationError(.noBus, "The bus does not let this user in: \(answer). Check its rights.")
            )
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        authenticated.fail(error)
        context.fireErrorCaught(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        authenticated.fail(ChannelError.eof)
        context.fireChannelInactive()
    }

    private func send(_ text: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }
}

/// Hands messages to the connection, and tells it the end.
private final class DBusReceiver: ChannelInboundHandler, Sendable {
    typealias InboundIn = DBusInbound

    private let onMessage: @Sendable (DBusMessage) -> Void
    let onEnd: @Sendable ((any Error)?) -> Void

    init(
        onMessage: @escaping @Sendable (DBusMessage) -> Void,
        onEnd: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.onMessage = onMessage
        self.onEnd = onEnd
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .message(let message) = unwrapInboundIn(data) { onMessage(message) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        onEnd(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        onEnd(nil)
    }
}
