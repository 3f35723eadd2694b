package import CallBasics
package import NIOCore
package import SIP

/// A user agent, or a server, with its sockets, the names it asks for, and the time: all on one event loop.
///
/// What it is asked to do goes through `perform`; what it tells comes by `events`, to one listener.
package actor SIPEndpoint<Element: SIPElement> {
    /// Answers a question about names.
    package typealias Names = @Sendable (DNSQuestion) async -> DNSAnswer

    /// Events that may wait for their listener; one who takes none any more loses those that follow.
    package static var eventLimit: Int { 16_384 }

    /// What the agent tells, in order.
    package nonisolated let events: AsyncStream<Element.Event>
    private nonisolated let loop: any EventLoop
    private let sockets: SIPSockets
    private let names: Names
    private let continuation: AsyncStream<Element.Event>.Continuation
    private var element: Element
    private var locals: [CallBasics.SocketAddress] = []
    private var timer: (time: MediaTime, task: Scheduled<Void>)?
    private var isClosed = false
    /// Events that found no room.
    package private(set) var lostEventCount = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    /// An element that has no sockets yet.
    package init(_ element: Element, on loop: any EventLoop, names: @escaping Names) {
        (self.element, self.loop, self.names) = (element, loop, names)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.eventLimit))
        sockets = SIPSockets(on: loop)
    }

    /// The present time on the clock of the element.
    package static var now: MediaTime { .zero + .nanoseconds(Int64(NIODeadline.now().uptimeNanoseconds)) }

    /// Opens sockets: UDP and TCP on the same port of `address`, or on any when that is 0; more addresses one after another.
    ///
    /// - Returns: The address with its port.
    /// - Throws: `SIPSocketError` when the port is another's
    package func open(at address: CallBasics.SocketAddress, _ transports: [Flow.Transport]) async throws
        -> CallBasics.SocketAddress
    {
        sockets.delegate = self
        let bound = try await bind(address, transports)
        // A wildcard can be told to nobody: its flows have the addresses of the interfaces.
        locals += bound.isUnspecified ? try InterfaceAddresses.all(of: bound) : [bound]
        for transport in transports { element.setLocalAddresses(locals, of: transport, at: Self.now) }
        carry()
        return bound
    }

    private func bind(_ address: CallBasics.SocketAddress, _ transports: [Flow.Transport]) async throws
        -> CallBasics.SocketAddress
    {
        for attempt in 1... {
            var bound = address
            do {
                if transports.contains(.udp) { bound = try await sockets.bindDatagrams(at: bound).get() }
                if transports.contains(.tcp) { bound = try await sockets.listen(at: bound).get() }
                return bound
            } catch {
                // The port of one protocol may be another's in the other; any free pair will do.
                guard address.port == 0, locals.isEmpty, attempt < 16 else { throw error }
                try await sockets.closeAll().get()
            }
        }
        return address
    }

    /// Lets the element do something, at the present time.
    package func perform<Result: Sendable>(
        _ body: @Sendable (inout Element, MediaTime) throws -> Result
    ) rethrows -> Result {
        defer { carry() }
        return try body(&element, Self.now)
    }

    /// Closes the sockets; `events` ends.
    package func close() async {
        isClosed = true
        timer?.task.cancel()
        timer = nil
        try? await sockets.closeAll().get()
        continuation.finish()
    }

    /// Does what the element says, and waits for its deadline.
    private func carry() {
        while let output = element.poll() {
            switch output {
            case .open(let flow, _): sockets.open(flow)
            case .send(let bytes, let flow): sockets.send(bytes, on: flow)
            case .close(let flow): sockets.close(flow)
            case .ask(let question): ask(question)
            case .event(let event):
                if case .dropped = continuation.yield(event) { lostEventCount += 1 }
            }
        }
        guard element.deadline != timer?.time else { return }
        timer?.task.cancel()
        timer = nil
        guard let time = element.deadline, !isClosed else { return }
        let delay = TimeAmount.nanoseconds(max((time - Self.now).nanoseconds, 0))
        let task = loop.scheduleTask(in: delay) { [weak self] in
            self?.assumeIsolated { $0.handleTimeout() }
            return
        }
        timer = (time, task)
    }

    private func handleTimeout() {
        timer = nil
        element.handle(.timeout, at: Self.now)
        carry()
    }

    private func ask(_ question: DNSQuestion) {
        Task {
            let answer = await names(question)
            element.handle(.answer(answer, to: question), at: Self.now)
            carry()
        }
    }

    private func handle(_ input: ElementInput) {
        guard !isClosed else { return }
        element.handle(input, at: Self.now)
        carry()
    }

    /// The own address that others can be told, where the socket knows only a wildcard.
    private func told(_ local: CallBasics.SocketAddress) -> CallBasics.SocketAddress {
        guard local.isUnspecified else { return local }
        return locals.first { $0.isIPv4 == local.isIPv4 } ?? local
    }
}

extension SIPEndpoint: SIPSocketsDelegate {
    package nonisolated func accept(
        _ transport: Flow.Transport,
        local: CallBasics.SocketAddress,
        remote: CallBasics.SocketAddress
    ) -> Flow? {
        assumeIsolated { endpoint in
            guard !endpoint.isClosed else { return nil }
            let local = endpoint.told(local)
            return endpoint.element.accept(transport, local: local, remote: remote, at: Self.now)
        }
    }

    package nonisolated func handleOpened(_ flow: Flow) { assumeIsolated { $0.handle(.opened(flow)) } }
    package nonisolated func handleFailed(_ flow: Flow) { assumeIsolated { $0.handle(.failed(flow)) } }
    package nonisolated func handleClosed(_ flow: Flow) { assumeIsolated { $0.handle(.failed(flow)) } }

    package nonisolated func receive(_ bytes: [UInt8], on flow: Flow) {
        assumeIsolated { $0.handle(.bytes(bytes, flow)) }
    }

    package nonisolated func receive(
        datagram: [UInt8],
        local: CallBasics.SocketAddress,
        remote: CallBasics.SocketAddress
    ) {
        assumeIsolated { $0.handle(.datagram(datagram, local: $0.told(local), remote: remote)) }
    }

    package nonisolated func handleUndelivered(local: CallBasics.SocketAddress, remote: CallBasics.SocketAddress) {
        assumeIsolated { $0.handle(.failed(Flow(.udp, local: $0.told(local), remote: remote))) }
    }
}
