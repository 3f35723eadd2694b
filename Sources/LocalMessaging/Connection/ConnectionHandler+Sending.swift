import CLinux
import NIOCore
import Synchronization

/// What goes out, and what takes too long.
extension ConnectionHandler {
    /// Writes what the outbox holds, and stays awake for an answer when one is about to come.
    func flushPromptly() {
        flushOutbox()
        polling?.begin()
    }

    /// Writes what the outbox holds.
    func flushOutbox() {
        guard !isOver, let connection else { return }
        let (frames, deadline) = connection.state.withLock { state in
            state.isFlushScheduled = false
            return (state.outbox.takeFrames(), state.pending.earliestDeadline)
        }
        if let deadline { watchRequests(until: deadline) }
        if backlog.isEmpty { backlog = frames } else { backlog += frames }
        writeBacklog()
    }

    func writeBacklog() {
        guard !isOver, let context else { return }
        var written = 0
        var chunk = 0
        for frame in backlog {
            guard frame.files.isEmpty || passFiles(of: frame) else { break }
            written += 1
            unwrittenByteCount += frame.byteCount
            let isLast = written == backlog.count
            let hasBlob = frame.blob.readableBytes > 0
            write(frame.header, to: context, isLast: isLast && !hasBlob, unseen: &chunk)
            if hasBlob { write(frame.blob, to: context, isLast: isLast, unseen: &chunk) }
        }
        guard !isOver else { return }
        if chunk > 0 { context.write(wrapOutboundOut(ByteBuffer()), promise: wrote(chunk, on: context.eventLoop)) }
        backlog.removeFirst(written)
        context.flush()
        if unwrittenByteCount > 0 || !backlog.isEmpty { watchForStall() }
    }

    /// Writes bytes, and has progress seen at least for each two of `progressByteCount`: a peer that takes a large frame
    /// slowly does take it.
    private func write(_ bytes: ByteBuffer, to context: ChannelHandlerContext, isLast: Bool, unseen count: inout Int) {
        var rest = bytes
        while rest.readableBytes > 2 * Self.progressByteCount,
            let slice = rest.readSlice(length: Self.progressByteCount)
        {
            context.write(wrapOutboundOut(slice), promise: wrote(count + slice.readableBytes, on: context.eventLoop))
            count = 0
        }
        count += rest.readableBytes
        let isSeen = isLast || count >= Self.progressByteCount
        context.write(wrapOutboundOut(rest), promise: isSeen ? wrote(count, on: context.eventLoop) : nil)
        if isSeen { count = 0 }
    }

    private static var progressByteCount: Int { 64 << 10 }

    private func wrote(_ count: Int, on eventLoop: any EventLoop) -> EventLoopPromise<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess {
            self.unwrittenByteCount -= count
            self.lastProgress = eventLoop.now
            self.connection?.written(count)
            // The goodbye was the last of them.
            if self.isClosing, self.unwrittenByteCount == 0, self.backlog.isEmpty { self.end(.closed) }
        }
        return promise
    }

    private func watchForStall() {
        guard stallTimer == nil, let context else { return }
        let limit = configuration.stallLimit
        let begin = context.eventLoop.now
        let unread = unreadByteCount
        stallTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) {
            self.stallTimer = nil
            guard self.unwrittenByteCount > 0 || !self.backlog.isEmpty else { return }
            // A socket takes more only once most of it is read, so a slow reader is seen by what it has left there.
            let hasRead = unread.flatMap { before in self.unreadByteCount.map { $0 < before } } ?? false
            guard self.lastProgress < begin, !hasRead else { return self.watchForStall() }
            self.end(.stalled(limit))
        }
    }

    /// What the peer has not read of a socket, as its system counts; nil where there is none.
    private var unreadByteCount: CInt? {
        guard let operations = context?.pipeline.syncOperations else { return nil }
        let count = try? operations.withUnsafeTransportIfAvailable { (socket: NIOBSDSocket.Handle) in
            linux_unread_byte_count(socket)
        }
        return count.flatMap { $0 >= 0 ? $0 : nil }
    }

    private func watchRequests(until deadline: NIODeadline) {
        guard let context, requestTimer.map({ deadline < $0.deadline }) ?? true else { return }
        requestTimer?.scheduled.cancel()
        let scheduled = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            self.requestTimer = nil
            guard let connection = self.connection, let now = self.context?.eventLoop.now else { return }
            connection.endLateRequests(at: now)
            if let next = connection.state.withLock({ $0.pending.earliestDeadline }) { self.watchRequests(until: next) }
        }
        requestTimer = (deadline, scheduled)
    }

    /// Writes what is left, says goodbye, and ends.
    func closeInOrder() {
        guard !isOver, let connection else { return end(.closed) }
        guard !isClosing else { return }
        isClosing = true
        connection.sayGoodbye()
        flushOutbox()
    }

    func write(_ frame: Frame) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(frame.serialized(with: context.channel.allocator)), promise: nil)
    }
}
