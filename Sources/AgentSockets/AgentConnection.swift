internal import NIOCore

/// What brings frames to an agent.
///
/// Thread: any.
package protocol AgentTransport: Sendable {
    /// Sends a frame, unless too much waits; whether it was taken.
    @discardableResult func send(_ frame: AgentFrame) -> Bool
    /// Sends a frame, whatever waits; whether it was taken.
    @discardableResult func insist(_ frame: AgentFrame) -> Bool
    /// How many frames `send` has not taken.
    var droppedCount: Int { get }
    /// Why it has ended; nil while it has not, or when this side has ended it.
    var failure: AgentError? { get }
    /// Ends it and waits until it is ended.
    func close() async
}

/// A connection to an agent: frames both ways, in order.
///
/// By WebSocket a frame is a message of text or binary, by AudioSocket a whole message with its head. It ends with
/// whoever has it.
/// Thread: any.
/// Source: RFC 6455 for WebSocket.
package final class AgentConnection: AgentTransport {
    let state: ConnectionState

    /// The connection whose state this is, for as long as somebody has it.
    init(_ state: ConnectionState) { self.state = state }

    deinit {
        state.end(nil)
        state.channel.close(promise: nil)
    }

    /// Dials an agent.
    ///
    /// - Parameters:
    ///   - address: Where it is, and what it speaks.
    ///   - headers: Further header fields of the WebSocket request.
    ///   - subprotocol: What is asked for as the subprotocol of WebSocket; an agent that names none is taken.
    ///   - authoritiesPath: A PEM file of those who prove the certificates of wss; nil for those of this machine.
    ///   - patience: How long it may take in all.
    /// - Returns: A connection that is open.
    /// - Throws: `AgentError.Code.unreachable`
    package static func open(
        to address: AgentAddress,
        headers: [(name: String, value: String)] = [],
        subprotocol: String? = nil,
        authoritiesPath: String? = nil,
        patience: Duration = .seconds(5)
    ) async throws(AgentError) -> AgentConnection {
        let request = Opening.Request(headers: headers, subprotocol: subprotocol, authoritiesPath: authoritiesPath)
        return try await open(to: address, request, patience: patience, pace: ConnectionPace())
    }

    /// As the other one, with a pace of its own.
    static func open(
        to address: AgentAddress,
        _ request: Opening.Request = Opening.Request(),
        patience: Duration = .seconds(5),
        pace: ConnectionPace
    ) async throws(AgentError) -> AgentConnection {
        AgentConnection(try await Opening(address, request, patience, pace).run())
    }

    /// What the agent sends, in order, for one reader; it ends with the connection.
    ///
    /// No more is read from the network while 64 frames or 1 MiB wait for the reader, and nothing is lost.
    package var frames: AgentFrames { AgentFrames(state) }

    /// Sends a frame, unless the connection is full or over.
    ///
    /// It is full while more than 64 KiB wait: an agent that is behind gets less, not all of it late. A frame of more
    /// than 1 MiB is never taken.
    /// - Returns: Whether it was taken.
    @discardableResult package func send(_ frame: AgentFrame) -> Bool { state.send(frame) }

    /// Sends a frame even when the connection is full: marks, digits, the end.
    ///
    /// Where more than 1 MiB would wait, the connection is ended as one whose agent does not read.
    /// - Returns: Whether it was taken.
    @discardableResult package func insist(_ frame: AgentFrame) -> Bool { state.insist(frame) }

    /// How many frames `send` has not taken.
    package var droppedCount: Int { state.droppedCount }

    /// Ends it and waits until it is ended.
    ///
    /// What was sent before leaves first. Then WebSocket's close handshake, with code 1000, has 1 s; a stream of
    /// AudioSocket is ended in the agent's direction, and has 1 s for the other one.
    package func close() async {
        state.end(nil)
        let channel = state.channel
        channel.eventLoop.execute { [state] in
            state.flush()
            channel.triggerUserOutboundEvent(Farewell(), promise: nil)
        }
        // It never fails.
        try? await channel.closeFuture.get()
    }

    /// Why it has ended, once it has: one sentence; nil while it is open, or when this side has ended it.
    package var failure: AgentError? { state.failure }
}

/// How often a connection is looked after.
struct ConnectionPace: Sendable {
    /// From one ping to the next.
    var ping = Duration.seconds(20)
    /// Without anything from the agent, after which it is taken for gone.
    var silence = Duration.seconds(60)
    /// How long the other side has for its farewell.
    var farewell = Duration.seconds(1)
}
