internal import CallBasics
internal import SDP
internal import SIP
internal import SIPTransport

/// Somebody who calls and is called, and does in each call what a script says: the other side of a phone in a test.
///
///     let peer = try await ScriptedPeer(called: [.ring, .pause(.milliseconds(50)), .answer, .hold, .resume, .hangUp])
///     let call = try await phone.call(peer.address)
///
/// It listens at a port of 127.0.0.1, by UDP and TCP, describes PCMU and sends no sound. Steps that need an answer wait for
/// it; a script ends with its call. When a script is over its call goes on, until the other side ends it.
/// Thread: any.
public actor ScriptedPeer {
    /// What is done in a call.
    public enum Step: Hashable, Sendable {
        /// Tells the caller that it rings (180).
        case ring
        case answer
        /// Refuses a call that rings, with a status of 300 to 699.
        case refuse(Int)
        /// Tells the caller to call somebody else (302).
        case redirect(to: String)
        case pause(Duration)
        /// Waits until the one who is called tells more than 100, such as that it rings.
        case awaitProgress
        case awaitAnswer
        /// Waits until the other side holds the call.
        case awaitHold
        /// Waits until the other side does not hold the call.
        case awaitResume
        /// Holds the call, with a=sendonly, and waits until that is answered.
        case hold
        case resume
        /// Presses a key, by INFO: 0 to 9, *, #, A to D.
        case key(Character)
        /// Asks the other side to call somebody else, and waits until that is answered or refused.
        case transfer(to: String)
        /// Ends the call, or takes it back.
        case hangUp
    }

    /// What a peer hears of others.
    public enum Event: Hashable, Sendable {
        /// Somebody calls; the address is that of From.
        case incoming(from: String)
        /// What the one who is called says before the answer: 180, 183.
        case progress(Int)
        case answered
        /// The other side holds the call, or goes on with it.
        case held(Bool)
        /// A key came by INFO.
        case key(Character)
        /// A hold or resume of this side was refused with this status.
        case changeRefused(Int)
        /// What became of a transfer: the status of the new call, or of the refusal.
        case transferred(Int)
        /// A text came, and was answered 200.
        case text(String, from: String)
        /// A call is over: by the other side or not, with a status where it was refused, taken back or not answered.
        case ended(byOther: Bool, status: Int?)
        /// A step of the script could not be done, and the script is over.
        case failed(Step, reason: String)
    }

    /// One call, with what its script waits for.
    private struct Talk {
        var script: Task<Void, Never>?
        var (hasProgress, isAnswered) = (false, false)
        var (isHeld, isHeldByOther) = (false, false)
        /// Changes that were refused, and transfers that have come to an end.
        var (refusalCount, transferCount) = (0, 0)
        var waiter: (isDone: (Talk) -> Bool, CheckedContinuation<Void, Never>)?
    }

    private struct NotNow: Error, CustomStringConvertible {
        let description = "The call is not at that point."
    }

    /// What it is called by: the address of record behind a registrar, else where it listens.
    public nonisolated let address: String
    /// What it hears, for one reader.
    public nonisolated let events: AsyncStream<Event>
    private let endpoint: SIPEndpoint<UserAgent>
    private let continuation: AsyncStream<Event>.Continuation
    private let sound: SilentPort
    private let calledScript: [Step]
    private var account: AccountHandle?
    private var talks: [CallHandle: Talk] = [:]
    /// Own calls that are being made: what is heard meanwhile waits until they have their names.
    private var callingCount = 0
    private var heldBack: [AgentEvent] = []
    private var registering: CheckedContinuation<Int?, Never>?
    private var listening: Task<Void, Never>?
    private var isClosed = false

    /// Opens a peer, and registers it where there is a registrar.
    ///
    /// - Parameters:
    ///   - name: The user part of its address.
    ///   - registrar: Where it registers, and what its calls go through; nil for none.
    ///   - password: What proves who it is.
    ///   - script: What it does in calls that come.
    /// - Throws: `network`, `invalid`, `notRegistered`
    public init(
        _ name: String = "peer",
        at registrar: TestRegistrar? = nil,
        password: String? = nil,
        called script: [Step] = [.ring, .answer]
    ) async throws(TestingError) {
        sound = try SilentPort()
        let record = try TestingError.uri("sip:\(name)@\(registrar?.domain ?? "127.0.0.1")")
        let configuration = AgentConfiguration(identity: NameAddress(record))
        endpoint = SIPEndpoint(UserAgent(configuration, seed: .random(in: .min ... .max))) { _ in .failure }
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(4096))
        calledScript = script
        let own = try await endpoint.openOnLoopback()
        address = registrar == nil ? "sip:\(name)@\(own)" : record.description
        let told = endpoint.events
        listening = Task { [weak self] in
            for await event in told { await self?.receive(event) }
            await self?.noteClosed()
        }
        guard let registrar else { return }
        do { try await register(record, at: registrar, password) } catch {
            await close()
            throw error
        }
    }

    // MARK: What a test asks for

    /// Calls somebody, and does what the script says.
    ///
    /// The script begins at once: `awaitAnswer` first where its steps are for a call that is answered.
    ///
    /// - Throws: `invalid` when the address cannot be called, `closed`
    public func call(_ address: String, _ script: [Step] = []) async throws(TestingError) {
        guard !isClosed else { throw Self.closed }
        let uri = try TestingError.uri(address)
        let wishes = UserAgent.CallWishes(session: sound.session, account: account)
        callingCount += 1
        defer {
            callingCount -= 1
            if callingCount == 0 {
                let heard = heldBack
                heldBack = []
                for event in heard { handle(event) }
            }
        }
        do {
            let made = try await endpoint.perform { agent, now in try agent.call(uri, wishes, at: now) }
            if !isClosed { start(script, made) }
        } catch {
            throw TestingError(.invalid, "\(address) cannot be called: \(error)")
        }
    }

    /// Sends a text to somebody.
    ///
    /// - Throws: `invalid` when it cannot be sent there, `closed`
    public func send(_ text: String, to address: String) async throws(TestingError) {
        guard !isClosed else { throw Self.closed }
        let (uri, account) = (try TestingError.uri(address), account)
        do {
            _ = try await endpoint.perform { agent, now in
                try agent.send(
                    .message,
                    to: uri,
                    account: account,
                    type: "text/plain",
                    body: Array(text.utf8),
                    at: now
                )
            }
        } catch {
            throw TestingError(.invalid, "No text can be sent to \(address): \(error)")
        }
    }

    /// Ends its calls and its binding, and closes its sockets; `events` ends.
    public func close() async {
        guard !isClosed else { return }
        isClosed = true
        let (handles, account) = (Array(talks.keys), account)
        await endpoint.perform { agent, now in
            for handle in handles { agent.hangUp(handle, at: now) }
            if let account { agent.unregister(account, at: now) }
        }
        await endpoint.close()
        await listening?.value
    }

    private static let closed = TestingError(.closed, "The peer was closed. Make another one.")

    // MARK: Registered

    private func register(
        _ record: SIPURI,
        at registrar: TestRegistrar,
        _ password: String?
    ) async throws(TestingError) {
        var made = AccountConfiguration(identity: NameAddress(record))
        made.routes = [NameAddress(try TestingError.uri(registrar.proxy))]
        if let password { made.credentials = [Credentials(userName: record.user ?? "", password: password)] }
        let account = await endpoint.perform { [made] agent, _ in agent.addAccount(made) }
        self.account = account
        let status = await withCheckedContinuation { waiter in
            registering = waiter
            Task {
                do { try await endpoint.perform { agent, now in try agent.register(account, at: now) } } catch {
                    noteRegistered(nil)
                }
            }
        }
        guard status == 200 else {
            let why = status.map { "with \($0)" } ?? "by silence"
            throw TestingError(.notRegistered(status), "\(registrar.domain) refused \(record) \(why).")
        }
    }

    /// The registration has come to an end that is told: 200, a refusal, or nil for no answer.
    private func noteRegistered(_ status: Int?) {
        registering?.resume(returning: status)
        registering = nil
    }

    // MARK: Scripts

    private func start(_ script: [Step], _ handle: CallHandle) {
        talks[handle] = Talk()
        talks[handle]?.script = Task { [weak self] in
            for step in script {
                guard !Task.isCancelled, let self else { return }
                guard await self.perform(step, handle) else { return }
            }
        }
    }

    /// Whether the script goes on.
    private func perform(_ step: Step, _ handle: CallHandle) async -> Bool {
        do {
            try await carryOut(step, handle)
        } catch {
            guard talks[handle] != nil else { return false }
            continuation.yield(.failed(step, reason: "\(error)"))
            return false
        }
        return talks[handle] != nil
    }

    private func carryOut(_ step: Step, _ handle: CallHandle) async throws {
        let session = sound.session
        switch step {
        case .ring: try await endpoint.perform { agent, now in try agent.ring(handle, at: now) }
        case .answer:
            try await endpoint.perform { agent, now in try agent.answer(handle, session, at: now) }
            await wait(handle) { $0.isAnswered }
        case .refuse(let status): await endpoint.perform { agent, now in agent.reject(handle, status: status, at: now) }
        case .redirect(let address):
            let uri = try TestingError.uri(address)
            await endpoint.perform { agent, now in agent.redirect(handle, to: uri, at: now) }
        case .pause(let time): try await Task.sleep(for: time)
        case .awaitProgress: await wait(handle) { $0.hasProgress || $0.isAnswered }
        case .awaitAnswer: await wait(handle) { $0.isAnswered }
        case .awaitHold: await wait(handle) { $0.isHeldByOther }
        case .awaitResume: await wait(handle) { !$0.isHeldByOther }
        case .hold: try await setHeld(true, handle)
        case .resume: try await setHeld(false, handle)
        case .key(let key):
            try await endpoint.perform { agent, now in try agent.send(DTMFRelay(key), in: handle, at: now) }
        case .transfer(let address):
            let (uri, count) = (try TestingError.uri(address), talks[handle]?.transferCount ?? 0)
            try await endpoint.perform { agent, now in try agent.transfer(handle, to: uri, at: now) }
            await wait(handle) { $0.transferCount > count }
        case .hangUp: await endpoint.perform { agent, now in agent.hangUp(handle, at: now) }
        }
    }

    private func setHeld(_ isHeld: Bool, _ handle: CallHandle) async throws {
        guard let talk = talks[handle], talk.isAnswered else { throw NotNow() }
        let count = talk.refusalCount
        await endpoint.perform { agent, now in
            guard var session = agent.session(of: handle) else { return }
            session.hold = isHeld ? .withMusic : nil
            agent.change(handle, to: session, at: now)
        }
        await wait(handle) { $0.isHeld == isHeld || $0.refusalCount > count }
    }

    /// Waits until something holds of a call, or its end.
    private func wait(_ handle: CallHandle, until isDone: @escaping (Talk) -> Bool) async {
        guard let talk = talks[handle], !isDone(talk) else { return }
        await withCheckedContinuation { talks[handle]?.waiter = (isDone, $0) }
    }

    /// Notes something of a call, and lets its script go on that waits for it.
    private func note(_ handle: CallHandle, _ change: (inout Talk) -> Void) {
        guard var talk = talks[handle] else { return }
        change(&talk)
        let waiter = talk.waiter
        if let waiter, waiter.isDone(talk) {
            talk.waiter = nil
            waiter.1.resume()
        }
        talks[handle] = talk
    }

    // MARK: What is heard

    private func receive(_ event: AgentEvent) {
        if callingCount > 0 { heldBack.append(event) } else { handle(event) }
    }

    private func handle(_ event: AgentEvent) {
        switch event {
        case .registration(_, .ok, _): noteRegistered(200)
        case .registration(_, .failed, .status(let status)): noteRegistered(status)
        case .registration(_, .failed, _): noteRegistered(nil)
        case .incoming(let handle, let invite):
            continuation.yield(.incoming(from: (try? invite.from())?.uri.description ?? ""))
            start(calledScript, handle)
        case .progress(let handle, let response):
            continuation.yield(.progress(response.statusCode ?? 0))
            note(handle) { $0.hasProgress = true }
        case .established(let handle):
            continuation.yield(.answered)
            note(handle) { $0.isAnswered = true }
        case .agreed(let handle, let session): note(session, handle)
        case .key(_, let relay): continuation.yield(.key(relay.key))
        case .changeRefused(let handle, let status):
            continuation.yield(.changeRefused(status))
            note(handle) { $0.refusalCount += 1 }
        case .transfer(let handle, .done(let status)), .transfer(let handle, .failed(let status)):
            continuation.yield(.transferred(status))
            note(handle) { $0.transferCount += 1 }
        case .ended(let handle, let end):
            continuation.yield(.ended(byOther: end.side == .them, status: end.told))
            forget(handle)
        case .message(let message, _, _):
            guard case .text(let text) = message.content else { return }
            continuation.yield(.text(text, from: message.sender.description))
        default: break
        }
    }

    private func note(_ session: AgreedSession, _ handle: CallHandle) {
        guard let audio = session.audio, let talk = talks[handle] else { return }
        if talk.isHeldByOther != audio.isHeldRemotely { continuation.yield(.held(audio.isHeldRemotely)) }
        note(handle) { ($0.isHeld, $0.isHeldByOther) = (audio.isHeldLocally, audio.isHeldRemotely) }
    }

    private func forget(_ handle: CallHandle) {
        guard let talk = talks.removeValue(forKey: handle) else { return }
        talk.script?.cancel()
        talk.waiter?.1.resume()
    }

    private func noteClosed() {
        isClosed = true
        noteRegistered(nil)
        for handle in talks.keys { forget(handle) }
        continuation.finish()
    }
}

extension CallEnd {
    /// The status that says how it ended; nil where there is none.
    fileprivate var told: Int? {
        switch cause {
        case .refused(let status): status
        case .cancelled: 487
        case .timeout: 408
        case .failed: 503
        case .hungUp, .unacknowledged, .expired, .replaced, .unacceptable: nil
        }
    }
}
