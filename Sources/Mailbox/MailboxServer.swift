internal import CallBasics
import NIOCore
import NIOPosix
package import SharedCore

/// A mailbox over TCP: it holds posts until they are acknowledged, and sends them by their script.
///
/// It stands where a SIP proxy with stored messages stands for a real core. Whoever can connect may read all: it binds
/// to the loopback address unless told otherwise.
///
/// Thread: one event loop has all of its state; the functions may be called from anywhere.
package final class MailboxServer: Sendable {
    /// The port it listens on.
    package let port: Int

    private let listener: any Channel
    private let exchange: NIOLoopBound<MailboxExchange>
    private let loop: any EventLoop

    /// Opens a mailbox that holds `posts`, whose delays count from now.
    ///
    /// - Parameters:
    ///   - host: the address to listen on.
    ///   - port: the port to listen on; 0 takes one that is free.
    ///   - posts: what it holds.
    ///   - onEvent: is told what happens, in order, on the event loop: it must be quick.
    /// - Returns: the mailbox, which listens.
    /// - Throws: `MailboxError` with code `cannotListen`.
    package static func start(
        host: String = "127.0.0.1",
        port: Int = 0,
        posts: [MailboxPost] = [],
        onEvent: @escaping @Sendable (MailboxEvent) -> Void = { _ in }
    ) async throws(MailboxError) -> MailboxServer {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        do {
            let exchange = try await loop.submit {
                NIOLoopBound(MailboxExchange(loop: loop, posts: posts, onEvent: onEvent), eventLoop: loop)
            }.get()
            let listener = try await ServerBootstrap(group: loop, childGroup: loop)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .serverChannelOption(.backlog, value: 1024)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        // Who does not read is not listened to: its requests wait in its own socket.
                        try pipeline.addHandler(BackPressureHandler())
                        try pipeline.addHandler(ByteToMessageHandler(MailboxLineDecoder()))
                        try pipeline.addHandler(MailboxServerHandler(exchange: exchange.value))
                    }
                }
                .bind(host: host, port: port).get()
            return MailboxServer(listener: listener, exchange: exchange, loop: loop)
        } catch {
            let message =
                "The mailbox cannot listen on \(host):\(port): \(error). Choose another port, or 0 for a free one."
            throw MailboxError(.cannotListen, message)
        }
    }

    private init(listener: any Channel, exchange: NIOLoopBound<MailboxExchange>, loop: any EventLoop) {
        self.listener = listener
        self.exchange = exchange
        self.loop = loop
        port = listener.localAddress?.port ?? 0
    }

    /// Puts posts into the mailbox; delays count from now, and what has the key of a post that is held is left out.
    package func post(_ posts: [MailboxPost]) async {
        await onLoop { $0.add(posts) }
    }

    /// What it holds and has seen.
    package var counts: MailboxCounts {
        get async { await onLoop { $0.state.counts } }
    }

    /// The keys of what it holds, in the order of being due.
    package var held: [String] {
        get async { await onLoop { $0.state.held } }
    }

    /// The actions that were performed, each once, in their order.
    package var actions: [MessageAction] {
        get async { await onLoop { $0.state.actions } }
    }

    /// Stops listening and drops every connection; what it held is lost.
    package func stop() async {
        // One that is closed already is what was wanted.
        try? await listener.close()
        await onLoop { $0.end() }
    }

    private func onLoop<Result: Sendable>(_ body: @escaping @Sendable (MailboxExchange) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            loop.execute { [exchange] in continuation.resume(returning: body(exchange.value)) }
        }
    }
}

/// The state of a mailbox with its connections and its timer, on one event loop.
final class MailboxExchange {
    private(set) var state = MailboxState()
    private let loop: any EventLoop
    private let start: NIODeadline
    private let onEvent: @Sendable (MailboxEvent) -> Void
    private var handlers: [Int: MailboxServerHandler] = [:]
    private var nextIdentifier = 0
    private var timer: Scheduled<Void>?

    init(loop: any EventLoop, posts: [MailboxPost], onEvent: @escaping @Sendable (MailboxEvent) -> Void) {
        self.loop = loop
        self.onEvent = onEvent
        start = loop.now
        state.add(posts, now: .zero)
        scheduleTimer()
    }

    private var now: Duration { .nanoseconds((loop.now - start).nanoseconds) }

    func add(_ posts: [MailboxPost]) {
        state.add(posts, now: now)
        sendAll()
    }

    /// Takes a connection; nil when there are too many.
    func connect(_ handler: MailboxServerHandler) -> Int? {
        guard handlers.count < Self.mostConnections else { return nil }
        nextIdentifier += 1
        handlers[nextIdentifier] = handler
        state.connect(nextIdentifier)
        onEvent(.connected)
        return nextIdentifier
    }

    func disconnect(_ identifier: Int, byScript: Bool) {
        handlers[identifier] = nil
        state.disconnect(identifier)
        onEvent(.disconnected(byScript: byScript))
    }

    func handle(_ request: MailboxRequest, from identifier: Int) {
        if let event = state.handle(request, from: identifier, now: now) { onEvent(event) }
        sendAll()
    }

    func refuse(_ identifier: Int, because reason: String) {
        state.refuse(identifier, because: reason)
    }

    func nextOutput(of identifier: Int) -> MailboxState.Output? {
        let output = state.nextOutput(of: identifier)
        if case .send(.post(let content)) = output { onEvent(.sent(content)) }
        return output
    }

    func end() {
        timer?.cancel()
        timer = nil
        for handler in handlers.values { handler.close() }
    }

    /// Lets every connection send what has come to wait, and sets the timer for what falls due next.
    private func sendAll() {
        for handler in handlers.values { handler.send() }
        scheduleTimer()
    }

    private func scheduleTimer() {
        timer?.cancel()
        timer = state.nextDue.map { due in
            loop.assumeIsolated().scheduleTask(deadline: start + TimeAmount(due)) {
                self.state.advance(to: self.now)
                self.sendAll()
            }
        }
    }

    private static var mostConnections: Int { 1024 }
}

/// One connection of a mailbox: requests in, and out what the exchange has for it while the socket takes it.
final class MailboxServerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let exchange: MailboxExchange
    private var context: ChannelHandlerContext?
    private var identifier: Int?
    private var isEndedByScript = false

    init(exchange: MailboxExchange) {
        self.exchange = exchange
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        identifier = exchange.connect(self)
        if identifier == nil { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if let identifier { exchange.disconnect(identifier, byScript: isEndedByScript) }
        identifier = nil
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let identifier else { return }
        do {
            exchange.handle(try MailboxLine.decode(MailboxRequest.self, from: unwrapInboundIn(data)), from: identifier)
        } catch {
            refuse(error)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        send()
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? MailboxError { refuse(error) } else { context.close(promise: nil) }
    }

    /// Sends what waits, as long as the socket takes it.
    func send() {
        guard let context, let identifier else { return }
        while context.channel.isWritable, let output = exchange.nextOutput(of: identifier) {
            switch output {
            case .send(let response):
                let line = response.line
                var buffer = context.channel.allocator.buffer(capacity: line.count + 1)
                buffer.writeBytes(line)
                buffer.writeInteger(UInt8(ascii: "\n"))
                context.write(wrapOutboundOut(buffer), promise: nil)
            case .close:
                isEndedByScript = true
                context.flush()
                context.close(promise: nil)
                return
            }
        }
        context.flush()
    }

    func close() {
        context?.close(promise: nil)
    }

    private func refuse(_ error: MailboxError) {
        guard let identifier else { return }
        exchange.refuse(identifier, because: error.message)
        send()
    }
}
