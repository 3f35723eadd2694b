internal import CallBasics
public import MediaEngine
package import SIP
internal import SIPTransport
internal import Synchronization

/// A phone: it calls by SIP and is called, registers accounts and sends texts, with the sound of an engine.
///
///     let phone = try await Phone(engine)
///     let call = try await phone.call("sip:door@192.0.2.7")
///     try await call.answered()
///
/// What comes by itself is told by `events`. With a `CallProvider` a call screen is told of each call first, decides about it,
/// and says when sound may flow. Messages go by UDP, TCP or TLS; sound goes in the clear unless `PhoneConfiguration.mediaEncryption`
/// wants keys.
/// Thread: any. It is an actor on the event loop of its sockets.
public actor Phone {
    /// Events that may wait for their listener; a call that finds no room is answered 480.
    private static let eventLimit = 1024

    /// What happens by itself, in order; for one listener.
    ///
    /// It has to be read: when 1024 events wait, texts, and, without a provider, calls that come are answered 480.
    public nonisolated let events: AsyncStream<PhoneEvent>
    /// Where SIP is listened to; another one after `PhoneEvent.moved`.
    public nonisolated var localAddress: SocketAddress { place.withLock { $0 } }
    nonisolated let place: Mutex<SocketAddress>
    /// What servers know it by over all its addresses (RFC 5626, section 4.1).
    nonisolated let instance: String
    /// Calls of the phone that hear each other: take in `PhoneCall.media`, or have the screen act by `setGroup`.
    ///
    /// It can be recorded as a whole. With a screen, only that takes calls in and out.
    public nonisolated let conference: Conference
    nonisolated let engine: CallEngine
    nonisolated let configuration: PhoneConfiguration
    nonisolated let endpoint: SIPEndpoint<UserAgent>
    let continuation: AsyncStream<PhoneEvent>.Continuation
    private var listening: Task<Void, Never>?
    var watcher: NetworkWatcher?
    var calls: [CallHandle: PhoneCall] = [:] { didSet { noteCalls() } }
    /// Whether a call is on, or a push has told of one, and who hears so.
    private var (isInCall, tellInCall): (Bool, @Sendable (Bool) -> Void) = (false, { _ in })
    var callCount = 0
    /// In the order in which they were registered.
    var accounts: [(address: String, handle: AccountHandle)] = []
    /// Who waits for what comes of a registration.
    var registering: [AccountHandle: CheckedContinuation<Void, any Error>] = [:]
    var log = CallLog()
    /// Texts that are to be kept; nil where `events` tells of them.
    let inbox: TextInbox?
    var composing = ComposingTable()
    var composingAlarm = PhoneAlarm()
    /// Texts that may wait.
    var outbox = TextOutbox()
    var outboxAlarm = PhoneAlarm()
    /// Who waits for what a request comes to, and what it is about.
    private var requests: [ErrandID: (name: String, done: CheckedContinuation<RequestAnswer, Never>)] = [:]
    var openRooms: [RoomHandle: PhoneRoom] = [:]
    var drafts: [RoomHandle: (subject: String?, members: [String])] = [:]
    var creating: [RoomHandle: CheckedContinuation<String, any Error>] = [:]
    var leaving: [RoomHandle: CheckedContinuation<Void, any Error>] = [:]
    /// Keeps invitations; nil where `events` tells of them.
    let keepInvitation: (@Sendable (PhoneInvitation) async throws -> Void)?
    var network = PhoneNetwork()
    /// Who waits for accounts to be registered anew, and which still are not.
    var renewals: [(waiting: Set<AccountHandle>, done: CheckedContinuation<Void, Never>)] = []
    var isClosed = false
    /// What the screen is told, and wants; nil without a screen.
    let screen: CallScreen?
    /// The last change of the conference that was begun.
    var grouping: Task<Void, Never>?

    /// The event loop of its sockets.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { endpoint.unownedExecutor }

    /// Opens the sockets of a phone.
    ///
    /// - Parameters:
    ///   - engine: Makes the sound of its calls.
    ///   - configuration: Where it is, and what it offers.
    ///   - provider: The call screen, if there is one. Then the engine's call card stays closed until `activateAudio`.
    ///   - keep: Keeps texts that come, one after the other: the server is told that one was taken once this has returned, and
    ///     keeps it for later when this throws. Nil has `events` tell of them.
    ///   - keepInvitation: Keeps invitations to rooms in the same way.
    /// - Throws: `PhoneError` when the port is another's, or the address none of this machine
    public init(
        _ engine: CallEngine,
        _ configuration: PhoneConfiguration = PhoneConfiguration(),
        provider: (any CallProvider)? = nil,
        keepingTexts keep: (@Sendable (PhoneText) async throws -> Void)? = nil,
        keepingInvitations keepInvitation: (@Sendable (PhoneInvitation) async throws -> Void)? = nil
    ) async throws {
        let instance = configuration.instance.map { CallUUID($0) } ?? CallUUID()
        guard let instance else {
            throw PhoneError(
                .invalid,
                "\(configuration.instance ?? "") is no UUID. Give one such as f81d4fae-7dec-11d0-a765-00a0c91e6bf6."
            )
        }
        self.instance = "urn:uuid:\(instance)"
        let local = await Self.address(configuration.local)
        guard !local.isUnspecified else {
            throw PhoneError(.invalid, "\(local) can be told to nobody. Give the address of one interface.")
        }
        let names: DNSClient
        do { names = try DNSClient() } catch { throw PhoneError(.noNames, error.message) }
        let agent = try Self.agent(configuration, local)
        let endpoint = SIPEndpoint(agent, security: configuration.security) { question in await names.ask(question) }
        do {
            place = Mutex(try await endpoint.open(at: local, configuration.flowTransports))
        } catch {
            await endpoint.close()
            let isSecurity = (error as? SIPSocketError)?.code == .security
            throw PhoneError(isSecurity ? .security : .noPort, "\(error)")
        }
        (self.engine, self.configuration, self.endpoint) = (engine, configuration, endpoint)
        self.keepInvitation = keepInvitation
        conference = engine.makeConference()
        let inbox = keep.map { _ in TextInbox() }
        self.inbox = inbox
        screen = provider.map { CallScreen($0, seed: .random(in: .min ... .max)) }
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.eventLimit))
        listening = Task { [weak self] in for await event in endpoint.events { await self?.handle(event) } }
        if let keep, let inbox {
            Task { [weak self] in
                for await item in inbox.items {
                    var isKept = true
                    do { try await keep(item.text) } catch { isKept = false }
                    await self?.answer(item.request, item.transaction, isKept ? 200 : 480)
                }
            }
        }
        if configuration.local == nil { followNetwork() }
        if configuration.wakesNetwork {
            await endpoint.watchAbsence { [weak self] in Task { await self?.wakeNetwork() } }
        }
        guard let screen else { return }
        engine.setCallCardAllowed(false)
        screen.open(for: self)
    }

    deinit {
        if let screen {
            screen.close()
            // The card may be another phone's since this one was closed.
            if !isClosed { engine.setCallCardAllowed(true) }
        }
        watcher?.close()
        inbox?.close()
        for call in calls.values { call.lose() }
        continuation.finish()
        let (endpoint, calls, accounts) = (endpoint, Array(calls.keys), accounts.map(\.handle))
        Task {
            await endpoint.perform { agent, now in for call in calls { agent.hangUp(call, at: now) } }
            await endpoint.close(afterUnregistering: accounts)
        }
    }

    private static func address(_ wished: SocketAddress?) async -> SocketAddress {
        if let wished { return wished }
        return await SourceAddress.towards(elsewhere) ?? .loopback(port: 0)
    }

    /// Nothing is sent to it; the kernel says which own address would lead there (RFC 5737).
    static let elsewhere = SocketAddress(ipv4: 0xC633_6401, port: 5060)

    private static func agent(_ configuration: PhoneConfiguration, _ local: SocketAddress) throws(PhoneError)
        -> UserAgent
    {
        let host = local.isIPv4 ? local.host : "[\(local.host)]"
        let identity = NameAddress(try PhoneError.uri("sip:\(host)"), displayName: configuration.displayName)
        var made = AgentConfiguration(identity: identity)
        made.transports = configuration.flowTransports
        made.families = local.isIPv4 ? [.ipv4] : [.ipv6]
        made.product = configuration.product
        made.isReachableByTLS = configuration.security.certificate != nil
        made.answersMessages = false
        made.followsRedirections = configuration.followsRedirections
        made.takesTransfers = configuration.takesTransfers
        (made.callPatience, made.ringPatience) = (configuration.callPatience, configuration.ringPatience)
        return UserAgent(made, seed: .random(in: .min ... .max))
    }

    // MARK: What it is asked to do

    /// Secures connections from now on as told, with files read anew, as when a certificate was renewed; those that are open stay.
    ///
    /// - Throws: `security` when a file cannot be used; all is as before then
    public func secure(by security: SIPSecurity) async throws {
        do { try await endpoint.secure(by: security) } catch { throw PhoneError(.security, "\(error)") }
    }

    /// Sends a MESSAGE, and waits until it is taken.
    func send(_ type: String, _ body: [UInt8], to uri: String, from account: String?) async throws {
        if let problem = try await request(type, body, to: uri, from: account).problem { throw problem }
    }

    /// Sends a MESSAGE, and waits for its answer.
    ///
    /// Throws: when it cannot be sent
    func request(_ type: String, _ body: [UInt8], to uri: String, from account: String?) async throws -> RequestAnswer {
        let target = try PhoneError.uri(uri)
        let sender = try account.map(handle) ?? accounts.first?.handle
        guard !isClosed else { throw Self.closed }
        let errand = try PhoneError.wrapping(.invalid) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in
                try agent.send(.message, to: target, account: sender, type: type, body: body, at: now)
            }
        }
        return await wait(for: errand, of: "The text")
    }

    /// Waits for what a request comes to.
    func wait(for errand: ErrandID, of name: String) async -> RequestAnswer {
        await withCheckedContinuation { requests[errand] = (name, $0) }
    }

    /// Hangs up all calls, takes the bindings of all accounts away, and closes the sockets; a second at most.
    ///
    /// - Parameter keepsBindings: Whether the servers go on knowing it, for another process of the same instance, or a push.
    public func close(keepingBindings keepsBindings: Bool = false) async {
        guard !isClosed else { return }
        isClosed = true
        watcher?.close()
        inbox?.close()
        composingAlarm.cancel()
        outboxAlarm.cancel()
        for call in calls.values { await call.hangUp() }
        let handles = accounts.map(\.handle)
        await endpoint.close(afterUnregistering: keepsBindings ? [] : handles)
        await listening?.value
        for handle in registering.keys { settle(handle, Self.closed) }
        for errand in requests.keys { settle(errand, RequestAnswer(problem: Self.closed)) }
        closeRooms()
        endOutbox()
        for handle in handles { noteRenewed(handle) }
        for (handle, call) in calls {
            call.lose()
            consult { desk, _ in desk.noteEnd(handle, .failed) }
            write(.ended(handle, CallEnd(.us, .hungUp)), of: handle)
        }
        calls = [:]
        consult { desk, _ in desk.close() }
        if screen != nil { engine.setCallCardAllowed(true) }
        continuation.finish()
    }

    static let noNetwork = PhoneError(.noNetwork, "There is no network. It is registered once there is.")
    static let closed = PhoneError(.state, "The phone was closed. Make another.")

    // MARK: What the agent tells

    private func handle(_ event: AgentEvent) {
        switch event {
        case .incoming(let handle, let invite): report(handle, invite)
        case .registration(let handle, let state, let reason): note(handle, state, reason)
        case .message(let message, let request, let transaction):
            if let transaction { receive(message, request, transaction) }
        case .response(let errand, let response, _):
            guard let status = response.statusCode, status >= 200 else { return }
            settle(errand, RequestAnswer(response, status, to: requests[errand]?.name ?? "It"))
        case .failed(let errand, _):
            let words = "\(requests[errand]?.name ?? "It") was not answered."
            settle(errand, RequestAnswer(problem: PhoneError(.unanswered, securityFailure ?? words)))
        case .room(let room, let event): handle(event, of: room)
        default:
            guard let handle = event.call, let call = calls[handle] else { return }
            call.tell(event)
            if screen != nil { note(event, of: handle) }
            write(event, of: handle)
            if case .ended = event { calls[handle] = nil }
        }
    }

    /// Why the last connection by TLS could not be made, once.
    var securityFailure: String? { endpoint.assumeIsolated { $0.takeSecurityFailure() }?.message }

    // MARK: Whether a call is on

    /// Has `told` hear whether a call is on, or a push has told of one: now, and in the very turn in which that changes.
    package func watchCalls(_ told: @escaping @Sendable (Bool) -> Void) {
        tellInCall = told
        told(isInCall)
    }

    /// Calls, or what the desk knows of some, may have come or gone.
    func noteCalls() {
        let isNow = !calls.isEmpty || screen?.desk.entries.isEmpty == false
        guard isNow != isInCall else { return }
        isInCall = isNow
        tellInCall(isNow)
    }

    // MARK: Who waits

    private func settle(_ errand: ErrandID, _ answer: RequestAnswer) {
        requests.removeValue(forKey: errand)?.done.resume(returning: answer)
    }

    static func result(_ problem: PhoneError?) -> Result<Void, any Error> {
        problem.map { .failure($0) } ?? .success(())
    }

    /// Lets the agent do something in this very turn, for both are on one event loop.
    func act<Result: Sendable, E: Error>(
        _ body: @Sendable (inout UserAgent, MediaTime) throws(E) -> Result
    ) throws(E) -> Result {
        try endpoint.inTurn(body)
    }
}

/// What came of a request, such as a MESSAGE.
struct RequestAnswer: Sendable {
    /// Why it was not taken; nil when it was.
    var problem: PhoneError?
    /// How long the other side wants to be left alone.
    var retryAfter: Duration?
}

extension RequestAnswer {
    init(_ response: SIPMessage, _ status: Int, to name: String) {
        guard status >= 300 else { return }
        let words = "\(status) \(response.reasonPhrase)"
        problem = PhoneError(.refused(status: status), "\(name) was refused: \(words).")
        retryAfter = (try? response.value(.retryAfter, as: RetryAfter.self)).map { .seconds(Int64($0.seconds)) }
    }
}
