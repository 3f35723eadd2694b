internal import NIOCore
internal import NIOWebSocket

/// The rules of WebSocket between frames of the network and messages: fragments, pings, the farewell.
///
/// Thread: the event loop.
/// Source: RFC 6455, sections 5 to 8.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = AgentFrame
    typealias OutboundIn = AgentFrame
    typealias OutboundOut = WebSocketFrame

    private let state: ConnectionState
    private let pace: (ping: TimeAmount, silence: TimeAmount)
    /// Whether the agent has dialled, and masks what it sends.
    private let isServer: Bool
    /// A message of which fragments have come.
    private var message: (isText: Bool, bytes: [UInt8])?
    /// A close frame has been sent: no other follows, and what comes is for nobody.
    private var isLeaving = false
    /// The end of writing it.
    private var farewell: EventLoopFuture<Void>?
    private var lastArrival = NIODeadline.now()
    private var pingTimer: RepeatedTask?
    private var silenceTimer: Scheduled<Void>?

    init(_ state: ConnectionState, _ pace: ConnectionPace, isServer: Bool) {
        (self.state, self.isServer) = (state, isServer)
        self.pace = (TimeAmount(pace.ping), TimeAmount(pace.silence))
    }

    // MARK: To the agent

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isLeaving else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .text(let bytes): write(.text, Self.buffer(bytes), context, promise)
        case .binary(let bytes): write(.binary, Self.buffer(bytes), context, promise)
        }
    }

    /// A message with room before it for the head of its frame, so that both leave in one piece.
    private static func buffer(_ bytes: [UInt8]) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: headLimit + bytes.count)
        buffer.moveWriterIndex(to: headLimit)
        buffer.moveReaderIndex(to: headLimit)
        buffer.writeBytes(bytes)
        return buffer
    }

    /// Two bytes, eight of the length, and four of the mask.
    private static let headLimit = 14

    private func write(
        _ opcode: WebSocketOpcode,
        _ bytes: ByteBuffer,
        _ context: ChannelHandlerContext,
        _ promise: EventLoopPromise<Void>? = nil
    ) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: isServer ? nil : .random(), data: bytes)
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    /// Pings and pongs are not kept for an agent that does not read: nothing bounds how many it asks for.
    private func writeControl(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        guard !isLeaving, context.channel.isWritable else { return }
        write(opcode, bytes, context)
        context.flush()
    }

    /// Says farewell; nil answers a close frame that gave no code.
    private func leave(_ code: UInt16?, _ context: ChannelHandlerContext) {
        guard !isLeaving else { return }
        let promise = context.eventLoop.makePromise(of: Void.self)
        farewell = promise.futureResult
        write(.connectionClose, code.map { ByteBuffer(integer: $0) } ?? ByteBuffer(), context, promise)
        context.flush()
        isLeaving = true
        message = nil
        stopTimers()
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is Farewell else { return context.triggerUserOutboundEvent(event, promise: promise) }
        leave(1000, context)
        promise?.succeed()
    }

    // MARK: From the agent

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard !isLeaving else {
            // That was all there was to wait for.
            if frame.opcode == .connectionClose { context.close(promise: nil) }
            return
        }
        guard (frame.maskKey != nil) == isServer, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            return fail(1002, "it sends frames that were not agreed on", context)
        }
        switch frame.opcode {
        case .ping: writeControl(.pong, frame.unmaskedData, context)
        case .pong: break
        case .connectionClose: takeClose(frame.unmaskedData, context)
        case .text, .binary:
            guard message == nil else { return fail(1002, "it begins a message within another", context) }
            message = (frame.opcode == .text, [])
            append(frame, context)
        case .continuation:
            guard message != nil else { return fail(1002, "it goes on with no message", context) }
            append(frame, context)
        default: fail(1002, "it sends frames of an unknown kind", context)
        }
    }

    /// In place: copied for each fragment, a message of many small ones would take minutes.
    private func append(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        let count = message?.bytes.count ?? 0
        guard count + frame.data.readableBytes <= ConnectionState.messageLimit else {
            return fail(1009, "it sends a message of more than 1 MiB", context)
        }
        message?.bytes.append(contentsOf: frame.unmaskedData.readableBytesView)
        guard frame.fin, let whole = message.take() else { return }
        guard whole.isText else { return context.fireChannelRead(wrapInboundOut(.binary(whole.bytes))) }
        guard String(validating: whole.bytes, as: UTF8.self) != nil else {
            return fail(1007, "it sends text that is no UTF-8", context)
        }
        context.fireChannelRead(wrapInboundOut(.text(whole.bytes)))
    }

    private func takeClose(_ data: ByteBuffer, _ context: ChannelHandlerContext) {
        var data = data
        guard data.readableBytes > 0 else {
            leave(nil, context)
            return end(AgentError(.ended, "The agent has ended the connection."), context)
        }
        guard let code = data.readInteger(as: UInt16.self), Self.isCode(code) else {
            return fail(1002, "it ends the connection by no code", context)
        }
        guard let reason = String(validating: data.readableBytesView, as: UTF8.self) else {
            return fail(1007, "it sends text that is no UTF-8", context)
        }
        leave(code, context)
        let told = reason.isEmpty ? "" : ": \(Self.shown(reason))"
        let text = "The agent has ended the connection (code \(code)\(told))."
        end(AgentError(Self.isInOrder(code) ? .ended : .disconnected, text), context)
    }

    /// The agent has ended it, and was answered: whoever was dialled closes.
    ///
    /// Source: RFC 6455, section 7.1.1.
    private func end(_ error: AgentError, _ context: ChannelHandlerContext) {
        context.fireErrorCaught(error)
        guard isServer else { return }
        let channel = context.channel
        farewell?.whenComplete { _ in channel.close(promise: nil) }
    }

    /// Whether a code says that all is well: done, or the agent goes.
    private static func isInOrder(_ code: UInt16) -> Bool { code == 1000 || code == 1001 }

    /// Whether a code may stand in a close frame.
    ///
    /// Source: RFC 6455, section 7.4.
    private static func isCode(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// What the other side wrote, safe to show.
    private static func shown(_ text: String) -> String {
        String(text.unicodeScalars.prefix(64).map { (0x20...0x7E).contains($0.value) ? Character($0) : "?" })
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength: fail(1009, "it sends a message of more than 1 MiB", context)
        case is NIOWebSocketError: fail(1002, "it sends control frames of a wrong form", context)
        default: context.fireErrorCaught(error)
        }
    }

    /// The agent broke the rules.
    private func fail(_ code: UInt16, _ reason: String, _ context: ChannelHandlerContext) {
        guard !isLeaving else { return }
        leave(code, context)
        context.fireErrorCaught(AgentError(.disconnected, "The connection to the agent was ended: \(reason)."))
    }

    // MARK: Time

    func handlerAdded(context: ChannelHandlerContext) {
        lastArrival = .now()
        let own = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        pingTimer = context.eventLoop.scheduleRepeatedTask(initialDelay: pace.ping, delay: pace.ping) { _ in
            own.value.handler.writeControl(.ping, ByteBuffer(), own.value.context)
        }
        awaitSilence(until: lastArrival + pace.silence, own)
    }

    /// What could not come before is no silence either.
    func read(context: ChannelHandlerContext) {
        lastArrival = .now()
        context.read()
    }

    /// Not of frames but of bytes: a long message that comes slowly is no silence.
    func channelReadComplete(context: ChannelHandlerContext) {
        lastArrival = .now()
        context.fireChannelReadComplete()
    }

    private typealias Own = NIOLoopBound<(handler: WebSocketHandler, context: ChannelHandlerContext)>

    private func awaitSilence(until deadline: NIODeadline, _ own: Own) {
        silenceTimer = own.value.context.eventLoop.scheduleTask(deadline: deadline) {
            own.value.handler.handleSilence(own)
        }
    }

    private func handleSilence(_ own: Own) {
        // What is not read may have come.
        if state.isHeld { lastArrival = .now() }
        let deadline = lastArrival + pace.silence
        guard deadline <= .now() else { return awaitSilence(until: deadline, own) }
        let time = pace.silence.shown
        state.end(AgentError(.disconnected, "Nothing has come from the agent for \(time), not even a pong."))
        own.value.context.close(promise: nil)
    }

    private func stopTimers() {
        pingTimer?.cancel()
        silenceTimer?.cancel()
        (pingTimer, silenceTimer) = (nil, nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        stopTimers()
        context.fireChannelInactive()
    }

    func handlerRemoved(context _: ChannelHandlerContext) { stopTimers() }
}

extension TimeAmount {
    /// As people are told.
    var shown: String {
        let milliseconds = nanoseconds / 1_000_000
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
