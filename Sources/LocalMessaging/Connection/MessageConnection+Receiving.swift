import NIOCore
import Synchronization

/// What was received, and its handlers.
extension MessageConnection {
    /// Takes a message or request for its handler; answers the cost of all that wait.
    ///
    /// Thread: the channel's event loop.
    func receive(_ received: ReceivedFrame) -> Int {
        let isRequest = received.frame.kind == .request
        let (isNext, mustServe, cost) = state.withLock { state in
            if servesOnEventLoop, isRequest, state.inbox.isIdle, state.answeringCount < maximumAnswering {
                return (true, false, 0)
            }
            return (false, state.inbox.append(received), state.inbox.cost)
        }
        if isNext {
            answer(received)
        } else if mustServe, servesOnEventLoop {
            Task.immediate(executorPreference: configuration.handlerExecutor) { await self.serveInbox() }
        } else if mustServe {
            Task(executorPreference: configuration.handlerExecutor) { await self.serveInbox() }
        }
        return cost
    }

    private var maximumAnswering: Int { configuration.maximumConcurrentRequests }

    /// Runs the handlers of what has arrived: those of messages one after the other, those of requests side by side.
    private func serveInbox() async {
        let half = configuration.receiveBufferByteCount / 2
        while let received = state.withLock({ $0.inbox.takeFirst() }) {
            if received.frame.kind == .request {
                await roomToAnswer()
                answer(received)
            } else {
                await serve(received)
            }
            if state.withLock({ $0.inbox.handled(received, below: half) }) {
                channel.eventLoop.execute { [driver] in driver.value.resumeReading() }
            }
        }
    }

    private func serve(_ received: ReceivedFrame) async {
        do throws(RemoteFailure) {
            let (entry, context) = try handler(of: received)
            guard case .message(let perform) = entry else { throw RemoteFailure(notTaken: received.frame) }
            do {
                try await perform(received.frame.payload, MessageBounds(configuration), context)
            } catch {
                throw RemoteFailure(describing: error)
            }
        } catch {
            await fail(received.frame, error)
        }
    }

    /// What is to be done with a frame, and what is told beside its message.
    private func handler(
        of received: ReceivedFrame
    ) throws(RemoteFailure) -> (entry: MessageHandlers.Entry, context: MessageContext) {
        let frame = received.frame
        guard let type = frame.type, let entry = handlers.entry(for: type) else {
            throw RemoteFailure(.unknownType, "No handler for \(frame.type?.description ?? "a message without type").")
        }
        do throws(MessageCoding.Failure) {
            let attachments = try attachments(of: received)
            return (entry, MessageContext(connection: self, topic: frame.topic, attachments: attachments))
        } catch {
            throw RemoteFailure(.undecodable, error.description)
        }
    }

    /// Waits until fewer requests than the most are being answered.
    private func roomToAnswer() async {
        await withCheckedContinuation { continuation in
            let isNext = state.withLock { state in
                guard state.answeringCount >= maximumAnswering else { return true }
                state.nextToServe = continuation
                return false
            }
            if isNext { continuation.resume() }
        }
    }

    /// Begins to answer a request that the peer still waits for.
    private func answer(_ received: ReceivedFrame) {
        let correlation = received.frame.correlation
        let isWaitedFor = state.withLock { state in
            guard state.served[correlation] != nil else { return false }
            state.answeringCount += 1
            return true
        }
        guard isWaitedFor else { return }
        let answering = Task.immediate(executorPreference: configuration.handlerExecutor) {
            await self.reply(to: received)
        }
        let isStillWaitedFor = state.withLock { state in
            guard state.served[correlation] != nil else { return false }
            state.served[correlation] = .answering(answering)
            return true
        }
        // It has ended meanwhile, or the peer does not wait any more.
        if !isStillWaitedFor { answering.cancel() }
    }

    private func reply(to received: ReceivedFrame) async {
        let frame = received.frame
        do {
            let (entry, context) = try handler(of: received)
            guard case .request(let answer) = entry else { throw RemoteFailure(notTaken: frame) }
            let (payload, attachments) = try await answer(frame.payload, MessageBounds(configuration), context)
            let reply = Frame(.reply, correlation: frame.correlation, payload: payload)
            let outgoing = try OutgoingFrame(reply, attachments, configuration, allocator: channel.allocator)
            try await enqueue(checked(outgoing), isPrompt: true)
        } catch {
            await fail(frame, RemoteFailure(describing: error))
        }
        let next = state.withLock { state in
            state.served[frame.correlation] = nil
            state.answeringCount -= 1
            return state.nextToServe.take()
        }
        next?.resume()
    }

    /// Tells the sender of a frame why it was not taken; waits for room as any sender does.
    private func fail(_ frame: Frame, _ failure: RemoteFailure) async {
        guard let payload = try? MessageCoding.encode(failure.shortened) else { return }
        // A connection that is over has told its end already.
        try? await enqueue(plain(Frame(.failure, correlation: frame.correlation, type: frame.type, payload: payload)))
    }

    /// Takes note of a request that arrived; false when one with its number is waited for already.
    func begin(_ correlation: UInt64) -> Bool {
        state.withLock { state in
            // The task that answers the first one must stay known: the end of the connection cancels it.
            guard state.served[correlation] == nil else { return false }
            state.served[correlation] = .waiting
            return true
        }
    }

    /// The peer does not wait for the answer any more.
    func cancelServing(_ correlation: UInt64) {
        let request = state.withLock { $0.served.removeValue(forKey: correlation) }
        if case .answering(let task) = request { task.cancel() }
    }

    func attachments(of received: ReceivedFrame) throws(MessageCoding.Failure) -> Attachments {
        guard received.frame.hasSealedBlob, let first = received.files.first else {
            let blob = received.frame.blob
            return Attachments(blob: blob.readableBytes > 0 ? Blob(blob) : nil, files: received.files)
        }
        do throws(MessagingError) {
            let memory = try SealedMemory(mapping: first, maximumByteCount: configuration.maximumBlobByteCount)
            return Attachments(blob: Blob(memory), files: Array(received.files.dropFirst()))
        } catch {
            throw MessageCoding.Failure(error.description)
        }
    }
}

extension RemoteFailure {
    /// What a handler threw.
    init(describing error: any Error) {
        self = error as? RemoteFailure ?? RemoteFailure(.handlerFailed, "\(error)")
    }

    /// The type is known, and is not what the frame says it is.
    init(notTaken frame: Frame) {
        let type = frame.type?.description ?? "A message without type"
        self.init(.unknownType, "\(type) is not accepted as a \(frame.kind).")
    }

    /// With as much of the message as fits any frame.
    var shortened: RemoteFailure {
        guard message.utf8.count > 512 else { return self }
        // Bytes: a character may have any number of them.
        var end = message.utf8.index(message.startIndex, offsetBy: 512)
        while end.samePosition(in: message.unicodeScalars) == nil { message.utf8.formIndex(before: &end) }
        return RemoteFailure(code, String(message[..<end]))
    }
}
