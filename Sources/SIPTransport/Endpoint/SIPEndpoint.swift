package import CallBasics
internal import Glibc
package import NIOCore
internal import NIOPosix
package import SIP

/// A user agent, or a server, with its sockets, the names it asks for, and the time: all on one event loop.
///
/// What it is asked to do goes through `perform`; what it tells comes by `events`, to one listener.
package actor SIPEndpoint<Element: SIPElement> {
    /// Answers a question about names.
    package typealias Names = @Sendable (DNSQuestion) async -> DNSAnswer

    package typealias Listening = (transport: Flow.Transport, address: CallBasics.SocketAddress)

    /// Events that may wait for their listener; one who takes none any more loses those that follow.
    package static var eventLimit: Int { 16_384 }

    /// How long the machine may sleep, or the process stand still, until connections and bindings are made anew.
    private static var absenceLimit: Duration { .seconds(30) }

    /// What the agent tells, in order.
    package nonisolated let events: AsyncStream<Element.Event>
    private nonisolated let loop: any EventLoop
    private let sockets: SIPSockets
    private let names: Names
    private let continuation: AsyncStream<Element.Event>.Continuation
    private var element: Element
    private var locals: [Flow.Transport: [CallBasics.SocketAddress]] = [:]
    private var timer: (time: MediaTime, task: Scheduled<Void>)?
    private var sleepWatch = SleepWatch(from: .now)
    private var isClosed = false
    private var messageTap: MessageTap?
    private var stepListener: (@Sendable (EndpointStep, MediaTime) -> Void)?
    private var eventListener: (@Sendable (Element.Event, MediaTime) -> Void)?
    private var absenceListener: (@Sendable () -> Void)?
    /// Where others can reach it, as it was opened.
    package private(set) var listening: [Listening] = []
    /// Events that found no room.
    package private(set) var lostEventCount = 0
    /// Why the last connection by TLS could not be made; nil since one could.
    private var securityFailure: SIPSocketError?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    /// An element that has no sockets yet.
    package init(
        _ element: Element,
        on loop: any EventLoop,
        security: SIPSecurity = SIPSecurity(),
        names: @escaping Names
    ) {
        (self.element, self.loop, self.names) = (element, loop, names)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.eventLimit))
        sockets = SIPSockets(on: loop, security)
    }

    /// An element on an event loop of the process.
    package init(_ element: Element, security: SIPSecurity = SIPSecurity(), names: @escaping Names) {
        self.init(element, on: MultiThreadedEventLoopGroup.singleton.next(), security: security, names: names)
    }

    /// Secures connections from now on as told, with files read anew; those that are open stay.
    ///
    /// - Throws: `SIPSocketError` when a file cannot be used; all is as before then
    package func secure(by security: SIPSecurity) async throws { try await sockets.secure(by: security).get() }

    /// Why the last connection by TLS could not be made; nil since one could, and once it was told.
    package func takeSecurityFailure() -> SIPSocketError? { securityFailure.take() }

    /// The present time on the clock of the element.
    package static var now: MediaTime { .zero + .nanoseconds(Int64(NIODeadline.now().uptimeNanoseconds)) }

    /// Opens sockets on an address, UDP and TCP on one port; more addresses one after another.
    ///
    /// TLS alone has the port of `address`, else the next one, or any where that is not said. Without an own certificate
    /// nobody can connect to it: it has any port then, which Contact says, for a server that uses the connection it knows.
    ///
    /// - Returns: The address with its port, of the first transport
    /// - Throws: `SIPSocketError` when the port is another's, or the certificate cannot be used
    package func open(at address: CallBasics.SocketAddress, _ transports: [Flow.Transport]) async throws
        -> CallBasics.SocketAddress
    {
        sockets.delegate = self
        let bound = try await bind(address, transports)
        for (transport, address) in bound {
            // A wildcard can be told to nobody: its flows have the addresses of the interfaces.
            let told = address.isUnspecified ? try InterfaceAddresses.all(of: address) : [address]
            locals[transport, default: []] += told
            element.setLocalAddresses(locals[transport, default: []], of: transport, at: Self.now)
        }
        listening += bound.filter { $0.transport != .tls || sockets.hasCertificate }
        carry()
        return bound.first?.address ?? address
    }

    /// Moves to another own address, as when the machine got one.
    ///
    /// It keeps its ports, unless they are somebody else's there. Connections of the former address end, and accounts
    /// register anew.
    ///
    /// - Returns: The address with its port, of the first transport
    /// - Throws: `SIPSocketError` when nothing can be opened there; all is as before then
    package func move(to address: CallBasics.SocketAddress) async throws -> CallBasics.SocketAddress {
        let (former, port) = (sockets.ownChannels, locals[.udp]?.first?.port ?? locals[.tcp]?.first?.port ?? 0)
        let transports = Flow.Transport.allCases.filter { locals[$0]?.isEmpty == false }
        let bound: [Listening]
        do {
            bound = try await bindOnce(address.with(port: port), transports)
        } catch {
            sockets.closeOwn(except: former)
            bound = try await bindOnce(address.with(port: 0), transports)
        }
        guard !isClosed else { return address }
        sockets.retireOwn(former)
        listening = bound.filter { $0.transport != .tls || sockets.hasCertificate }
        for (transport, address) in bound { locals[transport] = [address] }
        for transport in transports {
            element.setLocalAddresses(locals[transport, default: []], of: transport, at: Self.now)
        }
        carry()
        return bound.first?.address ?? address
    }

    private func bind(_ address: CallBasics.SocketAddress, _ transports: [Flow.Transport]) async throws -> [Listening] {
        for attempt in 1... {
            do {
                return try await bindOnce(address, transports)
            } catch {
                // The port of one protocol may be another's in the other; any free pair will do.
                guard address.port == 0, locals.isEmpty, attempt < 16 else { throw error }
                try await sockets.closeAll().get()
            }
        }
        return []
    }

    private func bindOnce(_ address: CallBasics.SocketAddress, _ transports: [Flow.Transport]) async throws
        -> [Listening]
    {
        var (bound, next): ([Listening], CallBasics.SocketAddress) = ([], address)
        for transport in transports where transport != .tls {
            let opening = transport == .udp ? sockets.bindDatagrams(at: next) : sockets.listen(.tcp, at: next)
            next = try await opening.get()
            bound.append((transport, next))
        }
        guard transports.contains(.tls) else { return bound }
        var port = address.port
        if !bound.isEmpty { port = port > 0 && sockets.hasCertificate ? port &+ 1 : 0 }
        bound.append((.tls, try await sockets.listen(.tls, at: address.with(port: port)).get()))
        return bound
    }

    /// Lets the element do something, at the present time.
    package func perform<Result: Sendable>(
        _ body: @Sendable (inout Element, MediaTime) throws -> Result
    ) rethrows -> Result {
        defer { carry() }
        return try body(&element, Self.now)
    }

    /// Tells of each message that is sent and received from now on, on the event loop; of nothing any more with nil.
    package func tap(showingSecrets: Bool = false, _ listener: (@Sendable (TappedMessage) -> Void)?) {
        messageTap = listener.map { MessageTap(showsSecrets: showingSecrets, $0) }
    }

    /// Tells that the machine has slept, or the process stood still, for so long that connections are made anew; on the event loop.
    package func watchAbsence(_ listener: @escaping @Sendable () -> Void) { absenceListener = listener }

    /// Tells what is done for the element from now on, but messages, and what it tells, when it tells it; on the event loop.
    package func watch(
        steps: @escaping @Sendable (EndpointStep, MediaTime) -> Void,
        events: @escaping @Sendable (Element.Event, MediaTime) -> Void
    ) {
        (stepListener, eventListener) = (steps, events)
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
            case .open(let flow, let name):
                stepListener?(.opening(flow), Self.now)
                sockets.open(flow, tlsName: name)
            case .send(let bytes, let flow):
                messageTap?.noteSent(bytes, on: flow, at: Self.now)
                sockets.send(bytes, on: flow)
            case .close(let flow):
                messageTap?.forget(flow)
                sockets.close(flow)
            case .ask(let question): ask(question)
            case .event(let event):
                eventListener?(event, Self.now)
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
        let absence = sleepWatch.absence(at: .now, due: timer?.time)
        timer = nil
        if let absence, absence > Self.absenceLimit {
            element.handleAbsence(at: Self.now)
            absenceListener?()
        }
        element.handle(.timeout, at: Self.now)
        carry()
    }

    private func ask(_ question: DNSQuestion) {
        stepListener?(.asked(question), Self.now)
        Task {
            let answer = await names(question)
            stepListener?(.answered(answer, question), Self.now)
            element.handle(.answer(answer, to: question), at: Self.now)
            carry()
        }
    }

    private func handle(_ input: ElementInput) {
        guard !isClosed else { return }
        messageTap?.noteReceived(input, at: Self.now)
        element.handle(input, at: Self.now)
        carry()
    }

    /// Why a connection failed, in the system's words where it was the system.
    private static func reason(_ error: any Error) -> String {
        guard let error = error as? IOError else { return "\(error)" }
        return String(cString: strerror(error.errnoCode))
    }

    /// The own address that others can be told, where the socket knows only a wildcard.
    private func told(_ local: CallBasics.SocketAddress) -> CallBasics.SocketAddress {
        guard local.isUnspecified else { return local }
        return locals[.udp]?.first { $0.isIPv4 == local.isIPv4 } ?? local
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
            return endpoint.element.accept(transport, local: local, remote: remote, at: Self.now)
        }
    }

    package nonisolated func handleOpened(_ flow: Flow) {
        assumeIsolated { endpoint in
            if flow.transport == .tls { endpoint.securityFailure = nil }
            endpoint.stepListener?(.opened(flow), Self.now)
            endpoint.handle(.opened(flow))
        }
    }

    package nonisolated func handleFailed(_ flow: Flow, _ error: any Error) {
        assumeIsolated { endpoint in
            if flow.transport == .tls { endpoint.securityFailure = error as? SIPSocketError }
            endpoint.stepListener?(.failed(flow, Self.reason(error)), Self.now)
            endpoint.handle(.failed(flow))
        }
    }

    package nonisolated func handleClosed(_ flow: Flow) {
        assumeIsolated { endpoint in
            endpoint.stepListener?(.failed(flow, "the other side closed it"), Self.now)
            endpoint.handle(.failed(flow))
        }
    }

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
        assumeIsolated { endpoint in
            let flow = Flow(.udp, local: endpoint.told(local), remote: remote)
            endpoint.stepListener?(.failed(flow, "nobody is there, or no way leads there"), Self.now)
            endpoint.handle(.failed(flow))
        }
    }
}
