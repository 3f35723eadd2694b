import NIOCore

/// One end of a stream between two channels on one event loop, in the place of a socket: what one writes the other
/// reads, with a buffer of limited size between them.
///
///     writer ──► waiting (not written yet) ──► arrived (the reader's socket buffer) ──► reader
///
/// Thread: the event loop.
final class InProcessLink: ChannelDuplexHandler {
    typealias InboundIn = Never
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = Never

    /// Bytes that a reader has not taken at which writes wait; as by default for sockets (net.core.wmem_default).
    private static var capacity: Int { 212_992 }

    private var context: ChannelHandlerContext?
    private var partner: InProcessLink?
    private var waiting = CircularBuffer<(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)>()
    private var arrived = ByteBuffer()
    private var isReadWanted = false
    private var isAtEnd = false

    /// Whether this end reads nothing, as a stopped process.
    var isHeld: Bool {
        didSet { deliverSoon() }
    }

    init(isHeld: Bool) {
        self.isHeld = isHeld
    }

    /// Makes the two one stream.
    static func join(_ one: InProcessLink, _ other: InProcessLink) {
        one.partner = other
        other.partner = one
    }

    /// Ends the stream without a word.
    func cut() {
        context?.close(promise: nil)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        context.channel.read()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        waiting.append((unwrapOutboundIn(data), promise))
    }

    func flush(context: ChannelHandlerContext) {
        writeWaiting()
    }

    func read(context: ChannelHandlerContext) {
        isReadWanted = true
        deliverSoon()
    }

    func channelInactive(context: ChannelHandlerContext) {
        partner?.end()
        partner = nil
        failWaiting()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    // MARK: Writing

    private func writeWaiting() {
        guard let partner else {
            failWaiting()
            // Others hear of it when they have read what is left.
            if isHeld { cut() }
            return
        }
        while !waiting.isEmpty {
            let room = max(0, Self.capacity - partner.arrived.readableBytes)
            if let part = waiting[waiting.startIndex].bytes.readSlice(
                length: min(room, waiting.first?.bytes.readableBytes ?? 0)
            ) {
                partner.arrived.writeImmutableBuffer(part)
            }
            guard waiting.first?.bytes.readableBytes == 0 else { break }
            waiting.removeFirst().promise?.succeed()
        }
        partner.deliverSoon()
    }

    private func failWaiting() {
        while let next = waiting.popFirst() { next.promise?.fail(ChannelError.ioOnClosedChannel) }
    }

    // MARK: Reading

    private func end() {
        isAtEnd = true
        partner = nil
        deliverSoon()
    }

    private func deliverSoon() {
        context?.eventLoop.assumeIsolated().execute { self.deliver() }
    }

    /// Hands on what has arrived when it is asked for, and at the end in any case, as swift-nio does with sockets.
    private func deliver() {
        guard let context, context.channel.isActive, !isHeld else { return }
        if arrived.readableBytes > 0, isReadWanted || isAtEnd {
            isReadWanted = false
            let bytes = arrived
            arrived = ByteBuffer()
            context.fireChannelRead(wrapInboundOut(bytes))
            context.fireChannelReadComplete()
            partner?.writeWaiting()
            context.channel.read()
        }
        if isAtEnd, arrived.readableBytes == 0 { context.close(promise: nil) }
    }
}
