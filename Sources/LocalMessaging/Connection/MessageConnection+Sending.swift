import NIOCore
import Synchronization

/// How a frame goes out.
extension MessageConnection {
    /// The frame of a message, whose type the peer accepts and whose size it takes.
    func outgoing<Message: LocalMessage>(
        _ message: Message,
        as kind: Frame.Kind,
        correlation: UInt64 = 0,
        topic: String = "",
        attachments: Attachments
    ) throws(MessagingError) -> OutgoingFrame {
        let type = Message.messageType
        guard acceptedByPeer.contains(type) else {
            let versions = acceptedByPeer.filter { $0.name == type.name }.map(\.version).sorted()
            throw .notAccepted(type, accepted: versions)
        }
        return try checked(
            coded(message, as: kind, correlation: correlation, topic: topic, attachments: attachments)
        )
    }

    /// The frame of a message, whether the peer takes it or not.
    func coded<Message: LocalMessage>(
        _ message: Message,
        as kind: Frame.Kind,
        correlation: UInt64 = 0,
        topic: String = "",
        attachments: Attachments
    ) throws(MessagingError) -> OutgoingFrame {
        let type = Message.messageType
        let payload: ByteBuffer
        do throws(MessageCoding.Failure) {
            payload = try MessageCoding.encode(message)
        } catch {
            throw .coding(type, error.description)
        }
        let frame = Frame(kind, correlation: correlation, type: type, topic: topic, payload: payload)
        return try OutgoingFrame(frame, attachments, configuration, allocator: channel.allocator)
    }

    func checked(_ frame: OutgoingFrame) throws(MessagingError) -> OutgoingFrame {
        guard takes(frame) else { throw .tooLarge(byteCount: frame.byteCount - 4, limit: maximumFrameByteCount) }
        return frame
    }

    /// Puts a frame on its way, after a wait while there is no room; `id` is the request's when it is one.
    ///
    /// With `isPrompt` it is written at once where that can be: somebody waits for it. Otherwise frames that are sent one
    /// after the other are written together.
    func enqueue(_ frame: OutgoingFrame, as id: UInt64? = nil, isPrompt: Bool = false) async throws {
        guard try !admit(frame, isPrompt: isPrompt) else { return }
        let id = id ?? state.withLock { $0.pending.nextCorrelation() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Outbox.Waiter(id: id, frame: frame, continuation: continuation)
                let (refusal, admitted, mustFlush) = state.withLock { state -> ((any Error)?, [Outbox.Waiter], Bool) in
                    if let reason = state.end { return (MessagingError.invalidated(reason), [], false) }
                    if Task.isCancelled { return (CancellationError(), [], false) }
                    // Its time may have run out while it was encoded; nobody would look at it again.
                    if let failure = state.pending.failure(of: id) { return (failure, [], false) }
                    state.outbox.wait(waiter)
                    // Room may have come before the wait began; and a flush looks at the time that requests have.
                    return (nil, state.outbox.written(0), state.scheduleFlush())
                }
                if let refusal { continuation.resume(throwing: refusal) }
                for waiter in admitted { waiter.continuation.resume() }
                if mustFlush { flush() }
            }
        } onCancel: {
            stopWaiting(id, for: CancellationError())
        }
    }

    /// Takes a frame back that still waits for room; false when it does not.
    @discardableResult
    func stopWaiting(_ id: UInt64, for reason: any Error) -> Bool {
        let waiter = state.withLock { $0.outbox.removeWaiter(id) }
        waiter?.continuation.resume(throwing: reason)
        return waiter != nil
    }

    /// Puts a frame on its way when there is room; false when there is none.
    func admit(_ frame: OutgoingFrame, isPrompt: Bool = false) throws(MessagingError) -> Bool {
        let (reason, isAdmitted, mustFlush) = state.withLock { state -> (Invalidation?, Bool, Bool) in
            if let reason = state.end { return (reason, false, false) }
            guard state.outbox.hasRoom else { return (nil, false, false) }
            state.outbox.append(frame)
            return (nil, true, state.scheduleFlush())
        }
        if let reason { throw .invalidated(reason) }
        if mustFlush { flush(isPrompt: isPrompt) }
        return isAdmitted
    }

    /// Puts one of the protocol's own frames on its way, whatever the room.
    func enqueueControl(_ frame: Frame) {
        let frame = plain(frame)
        let mustFlush = state.withLock { state in
            guard state.end == nil else { return false }
            state.outbox.append(frame)
            return state.scheduleFlush()
        }
        if mustFlush { flush() }
    }

    /// Puts the goodbye on its way, and lets nobody send any more.
    func sayGoodbye() {
        let goodbye = plain(Frame(.goodbye))
        let waiters = state.withLock { state in
            state.isClosing = true
            state.outbox.append(goodbye)
            return state.outbox.takeWaiters()
        }
        for waiter in waiters { waiter.continuation.resume(throwing: MessagingError.invalidated(.closed)) }
    }

    func plain(_ frame: Frame) -> OutgoingFrame {
        OutgoingFrame(header: frame.serialized(with: channel.allocator), blob: ByteBuffer(), files: [])
    }

    /// Counts bytes as written, and lets in whom that made room for.
    func written(_ count: Int) {
        let (admitted, mustFlush) = state.withLock { state in
            let admitted = state.outbox.written(count)
            return (admitted, !admitted.isEmpty && state.scheduleFlush())
        }
        for waiter in admitted { waiter.continuation.resume() }
        if mustFlush { flush() }
    }

    private func flush(isPrompt: Bool = false) {
        if isPrompt, channel.eventLoop.inEventLoop { return driver.value.flushPromptly() }
        channel.eventLoop.execute { [driver] in driver.value.flushOutbox() }
    }
}

extension MessageConnection.State {
    /// Whether somebody must ask for a flush: one that was asked for takes all frames with it.
    mutating func scheduleFlush() -> Bool {
        defer { isFlushScheduled = true }
        return !isFlushScheduled
    }
}
