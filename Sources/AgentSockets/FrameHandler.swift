internal import Glibc
internal import NIOCore
internal import NIOSSL

/// On its way to the agent: this side wants to end the connection.
struct Farewell: Sendable {}

/// The end of the pipeline: what comes is kept for the reader, and the network is read while there is room.
///
///     ByteBuffer ◄──► messages of the protocol ◄── AgentFrame ──► FrameHandler ◄──► ConnectionState
///
/// Thread: the event loop.
final class FrameHandler: ChannelDuplexHandler {
    typealias InboundIn = AgentFrame
    typealias OutboundIn = AgentFrame
    typealias OutboundOut = AgentFrame

    private let state: ConnectionState
    private let farewellTime: TimeAmount
    /// Whether the end of the stream is the only farewell there is.
    private let isPlainStream: Bool
    private var isLeaving = false
    private var deadline: Scheduled<Void>?

    init(_ state: ConnectionState, farewell: Duration, isPlainStream: Bool) {
        (self.state, self.isPlainStream) = (state, isPlainStream)
        farewellTime = TimeAmount(farewell)
    }

    func read(context: ChannelHandlerContext) { if state.mayRead() { context.read() } }

    func channelRead(context _: ChannelHandlerContext, data: NIOAny) { state.arrive(unwrapInboundIn(data)) }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is Farewell, isPlainStream else {
            if event is Farewell { leave(context) }
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        leave(context)
        // Closed as a whole, what it has not read would undo what has been sent.
        context.close(mode: .output, promise: promise)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        // The protocol was broken, or ended by the agent: what it is told of that has a moment to get there.
        case let error as AgentError:
            state.end(error)
            leave(context)
        // Half a message at the end, or more of what was given up.
        case is ByteToMessageDecoderError: break
        // One that goes without the farewell of TLS is one that goes.
        case NIOSSLError.uncleanShutdown: context.close(promise: nil)
        default:
            state.end(AgentError(.disconnected, "The connection to the agent broke off: \(Self.text(of: error))."))
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        state.end(AgentError(.ended, "The agent has ended the connection."))
        context.fireChannelInactive()
    }

    func handlerRemoved(context _: ChannelHandlerContext) { deadline?.cancel() }

    /// Has the connection end soon, whatever the agent does.
    private func leave(_ context: ChannelHandlerContext) {
        guard !isLeaving else { return }
        isLeaving = true
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: farewellTime) { channel.close(promise: nil) }
    }

    static func text(of error: any Error) -> String {
        (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
    }
}
