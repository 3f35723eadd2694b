internal import NIOCore
internal import Synchronization

/// What waits in a connection, both ways, and whether it is over.
///
///     send ──► leaving ──► channel ──► agent            more than 64 KiB: not taken; insisted on: 1 MiB
///     frames ◄── arrived ◄── channel ◄── agent          64 frames or 1 MiB: no more is read
///
/// Thread: any.
final class ConnectionState: Sendable {
    /// Bytes of a message, either way.
    static let messageLimit = 1 << 20

    private struct Fields {
        var arrived = CircularBuffer<AgentFrame>()
        var arrivedByteCount = 0
        /// Whether a read has been put off until there is room.
        var isHeld = false
        /// Who waits for a frame, while none is there.
        var reader: CheckedContinuation<AgentFrame?, Never>?

        var leaving: [AgentFrame] = []
        /// Bytes of `leaving`, and of what the channel has and the kernel has not.
        var waitingByteCount = 0
        var isFlushScheduled = false
        var droppedCount = 0

        var end: End?

        /// Takes a frame that is to leave; whether a flush has to be scheduled for it.
        mutating func append(_ frame: AgentFrame) -> Bool {
            leaving.append(frame)
            waitingByteCount += frame.cost
            defer { isFlushScheduled = true }
            return !isFlushScheduled
        }
    }

    private enum End {
        case here
        case there(AgentError)
    }

    let channel: any Channel
    private let fields = Mutex(Fields())

    init(_ channel: any Channel) { self.channel = channel }

    /// What a connection is from now on that has been upgraded to WebSocket.
    ///
    /// Thread: the event loop.
    static func webSocket(
        on channel: any Channel,
        _ pace: ConnectionPace,
        isServer: Bool
    ) throws -> ConnectionState {
        let state = ConnectionState(channel)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(WebSocketHandler(state, pace, isServer: isServer))
        try pipeline.addHandler(FrameHandler(state, farewell: pace.farewell, isPlainStream: false))
        return state
    }

    // MARK: To the agent

    var droppedCount: Int { fields.withLock(\.droppedCount) }

    /// Bytes that the kernel has not taken yet, with what is around them.
    var waitingByteCount: Int { fields.withLock(\.waitingByteCount) }

    func send(_ frame: AgentFrame) -> Bool {
        let (isTaken, isFirst) = fields.withLock { fields in
            let isTaken =
                fields.end == nil && fields.waitingByteCount <= Self.sendLimit && frame.byteCount <= Self.messageLimit
            if !isTaken { fields.droppedCount += 1 }
            return (isTaken, isTaken && fields.append(frame))
        }
        if isFirst { scheduleFlush() }
        return isTaken
    }

    func insist(_ frame: AgentFrame) -> Bool {
        let (isTaken, isFirst, isOver) = fields.withLock { fields in
            if fields.end != nil { return (false, false, true) }
            let isTaken = fields.waitingByteCount + frame.cost <= Self.insistLimit
            return (isTaken, isTaken && fields.append(frame), false)
        }
        if isFirst { scheduleFlush() }
        if !isTaken, !isOver {
            end(AgentError(.disconnected, "The agent does not read what it is sent: more than 1 MiB waited for it."))
            channel.close(promise: nil)
        }
        return isTaken
    }

    private func scheduleFlush() { channel.eventLoop.execute { [self] in flush() } }

    /// Gives the channel what is to leave.
    ///
    /// Thread: the event loop.
    func flush() {
        let frames = fields.withLock { fields in
            fields.isFlushScheduled = false
            defer { fields.leaving = [] }
            return fields.leaving
        }
        guard !frames.isEmpty else { return }
        for frame in frames {
            let promise = channel.eventLoop.makePromise(of: Void.self)
            promise.futureResult.whenComplete { [self] _ in fields.withLock { $0.waitingByteCount -= frame.cost } }
            channel.write(frame, promise: promise)
        }
        channel.flush()
    }

    // MARK: From the agent

    /// Takes a frame; one that comes after the end is none.
    func arrive(_ frame: AgentFrame) {
        let reader: CheckedContinuation<AgentFrame?, Never>? = fields.withLock { fields in
            guard fields.end == nil else { return nil }
            if let reader = fields.reader {
                fields.reader = nil
                return reader
            }
            fields.arrived.append(frame)
            fields.arrivedByteCount += frame.byteCount
            return nil
        }
        reader?.resume(returning: frame)
    }

    /// Whether more may be read now; otherwise it is, as soon as there is room.
    func mayRead() -> Bool {
        fields.withLock { fields in
            fields.isHeld =
                fields.end == nil
                && (fields.arrived.count >= Self.frameLimit || fields.arrivedByteCount >= Self.messageLimit)
            return !fields.isHeld
        }
    }

    /// Whether nothing is read because the reader is slow.
    var isHeld: Bool { fields.withLock(\.isHeld) }

    /// The next frame for the one reader; nil after the end, or when the task is cancelled.
    func next(isolation: isolated (any Actor)?) async -> AgentFrame? {
        switch step(of: nil) {
        case .frame(let frame): return frame
        case .over: return nil
        case .none: break
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { continuation in
                switch step(of: continuation) {
                case .frame(let frame): continuation.resume(returning: frame)
                case .over: continuation.resume(returning: nil)
                case .none: break
                }
            }
        } onCancel: {
            let reader = fields.withLock { $0.reader.take() }
            reader?.resume(returning: nil)
        }
    }

    private enum Step {
        case frame(AgentFrame)
        case over
    }

    /// What the reader gets; nil when it has to wait, for which it leaves `reader`.
    private func step(of reader: CheckedContinuation<AgentFrame?, Never>?) -> Step? {
        let (step, isResumed): (Step?, Bool) = fields.withLock { fields in
            if let frame = fields.arrived.popFirst() {
                fields.arrivedByteCount -= frame.byteCount
                let hasRoom =
                    fields.arrived.count <= Self.frameLimit / 2 && fields.arrivedByteCount <= Self.messageLimit / 2
                let isResumed = fields.isHeld && hasRoom
                if isResumed { fields.isHeld = false }
                return (.frame(frame), isResumed)
            }
            if fields.end != nil || reader != nil && Task.isCancelled { return (.over, false) }
            guard let reader else { return (nil, false) }
            precondition(fields.reader == nil, "the frames of a connection have one reader")
            fields.reader = reader
            return (nil, false)
        }
        if isResumed { channel.read() }
        return step
    }

    // MARK: The end

    /// Why it has ended, by the other side or because of it.
    var failure: AgentError? {
        fields.withLock { if case .there(let error)? = $0.end { error } else { nil } }
    }

    /// Ends it, with nil when this side wants it; only the first end counts.
    func end(_ failure: AgentError?) {
        let (reader, isHeld) = fields.withLock { fields -> (CheckedContinuation<AgentFrame?, Never>?, Bool) in
            guard fields.end == nil else { return (nil, false) }
            fields.end = failure.map { .there($0) } ?? .here
            // What is to leave goes before this side's farewell, and nowhere otherwise.
            if failure != nil {
                for frame in fields.leaving { fields.waitingByteCount -= frame.cost }
                fields.leaving = []
            }
            defer { fields.isHeld = false }
            return (fields.reader.take(), fields.isHeld)
        }
        reader?.resume(returning: nil)
        // The other side's farewell is to be read.
        if isHeld { channel.read() }
    }

    /// Bytes that wait in the kernel, so that few are behind what is counted here.
    static let sendBufferSize: ChannelOptions.Types.SocketOption.Value = 32_768
    /// What comes at once when the agent ends a connection that is not read.
    static let receiveBufferSize: ChannelOptions.Types.SocketOption.Value = 131_072

    private static let sendLimit = 64 << 10
    private static let insistLimit = 1 << 20
    private static let frameLimit = 64
}

extension AgentFrame {
    /// Its bytes and those around it, so that many empty ones are not nothing.
    fileprivate var cost: Int { byteCount + 14 }
}
