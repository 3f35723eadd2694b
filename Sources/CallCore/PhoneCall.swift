internal import CallBasics
public import MediaEngine
internal import SDP
internal import SIP
internal import SIPTransport

/// One call of a phone, from its INVITE to its end.
///
/// Thread: any. It is an actor on the event loop of its phone.
public actor PhoneCall {
    /// What the agent may tell beyond what was taken: keys and progress beyond it are lost, and of twice as many all but the
    /// answer and the end.
    private static let inboxLimit = 256
    private static let eventLimit = 1024

    /// Whom it is with: the URI that was called, or the caller's.
    public nonisolated let remote: String
    /// The name that the caller shows of himself; it proves nothing.
    public nonisolated let remoteName: String?
    /// The Call-ID, by which others know it, too.
    public nonisolated let callID: String
    /// Whether this side calls.
    public nonisolated let isOutgoing: Bool
    /// What happens, in order, to the end; for one listener.
    public nonisolated let events: AsyncStream<PhoneCallEvent>
    /// How it ended; nil before.
    public private(set) var end: PhoneCallEnd?
    /// Whether it was answered, by either side.
    public private(set) var isAnswered = false
    /// Quality and counts of its sound; nil before its end, and when no sound ever flowed, or its end failed.
    public private(set) var report: CallReport?

    /// Where it is; when both sides hold it, `held`.
    public var state: State {
        if end != nil { return .ended }
        if isAnswered { return held.us ? .held : held.them ? .heldRemotely : .talking }
        guard isOutgoing else { return .incoming }
        return hasEarlyMedia ? .earlyMedia : isRinging ? .ringing : .outgoing
    }

    /// How long they have talked; nil before the answer.
    public var duration: Duration? { answerTime.map { (endTime ?? SIPEndpoint<UserAgent>.now) - $0 } }

    /// The order in which calls of a phone began.
    nonisolated let number: Int
    nonisolated let handle: CallHandle
    private nonisolated let endpoint: SIPEndpoint<UserAgent>
    private nonisolated let inbox: AsyncStream<AgentEvent>
    private nonisolated let mail: AsyncStream<AgentEvent>.Continuation
    private nonisolated let continuation: AsyncStream<PhoneCallEvent>.Continuation
    weak let phone: Phone?
    /// What was told and not taken.
    private var waitingCount = 0
    var sound: CallSound?
    private var isAnswering = false
    private var answerTime: MediaTime?
    private var endTime: MediaTime?
    private var isRinging = false
    private var hasEarlyMedia = false
    /// What became of its sound, when that is why it ends.
    private var problem: String?
    /// The sound whose end is waited for.
    private weak var watched: CallSound?
    private(set) var held = (us: false, them: false)
    /// Whether this side has held it only to hand it over.
    var isHeldForTransfer = false
    var isMuted = false
    var keys: Task<Void, Never>?
    /// Hears what the engine tells.
    var listening: Task<Void, Never>?
    /// The call that has taken its place, and has its sound.
    weak var successor: PhoneCall?
    /// The call that hears what the engine tells of the sound, where this one has taken it over.
    var listener: PhoneCall?
    private var answerWaiters: [CheckedContinuation<Void, any Error>] = []
    private var endWaiters: [CheckedContinuation<PhoneCallEnd, Never>] = []

    /// The event loop of its phone.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { endpoint.unownedExecutor }

    init(
        _ handle: CallHandle,
        number: Int,
        of phone: Phone,
        remote: (uri: String, name: String?),
        callID: String,
        isOutgoing: Bool,
        _ sound: CallSound? = nil
    ) {
        (self.handle, self.phone, endpoint) = (handle, phone, phone.endpoint)
        (self.number, self.callID, self.isOutgoing) = (number, callID, isOutgoing)
        (self.remote, remoteName) = remote
        self.sound = sound
        (inbox, mail) = AsyncStream.makeStream()
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.eventLimit))
    }

    /// The call that does what is asked of this one until it is known that this one has ended: nobody need hear of a replacement first.
    private var heir: PhoneCall? { end == nil ? successor : nil }

    /// The engine's call, with volume, mute, levels, recording and figures; nil before both sides have agreed.
    public var media: MediaEngine.Call? { get async { await sound?.call } }

    // MARK: What it is asked to do

    /// Waits for the answer.
    ///
    /// Whoever cancels the waiting takes the call back.
    ///
    /// - Throws: `PhoneCallEnd` when it ends before
    public func answered() async throws {
        if isAnswered { return }
        if let end { throw end }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { answerWaiters.append($0) }
        } onCancel: {
            Task { await hangUp() }
        }
    }

    /// Waits for the end; then `report` is there.
    @discardableResult public func ended() async -> PhoneCallEnd {
        if let end { return end }
        return await withCheckedContinuation { endWaiters.append($0) }
    }

    /// Tells the caller that it rings (180).
    ///
    /// - Throws: `PhoneError` when it does not
    public func ring() throws {
        let handle = handle
        try PhoneError.wrapping(.state) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in try agent.ring(handle, at: now) }
        }
    }

    /// Answers a call that came.
    ///
    /// - Parameter sound: Says where its sound comes from and goes to; the engine's call card unless it says otherwise.
    /// - Throws: `PhoneError` when it does not ring any more, or the two have no codec in common: then it was answered
    ///   488. `EngineError` when there is no port.
    public func answer(_ sound: @escaping @Sendable (inout CallConfiguration) -> Void = { _ in }) async throws {
        guard let phone, !isOutgoing, !isAnswering, end == nil else {
            throw PhoneError(.state, "The call does not ring. Only a call that came is answered, once.")
        }
        isAnswering = true
        let made: CallSound
        do { made = try await phone.makeSound(sound) } catch {
            isAnswering = false
            throw error
        }
        let (handle, session) = (handle, made.session)
        do {
            try PhoneError.wrapping(.state) { () throws(SIPError) in
                try act { agent, now throws(SIPError) in try agent.answer(handle, session, at: now) }
            }
            self.sound = made
        } catch {
            _ = try? await made.end(after: .zero)
            throw error
        }
    }

    /// Refuses a call that came: 486 is busy, 480 not now, 603 declined.
    public func reject(status: Int = 603) {
        let (handle, status) = (handle, min(max(status, 400), 699))
        act { agent, now in agent.reject(handle, status: status, at: now) }
    }

    /// Tells who calls to call somebody else instead (302); a call that came, and is not answered.
    ///
    /// - Throws: `PhoneError` when `uri` is none
    public func redirect(to uri: String) throws {
        let target = try PhoneError.uri(uri)
        let handle = handle
        act { agent, now in agent.redirect(handle, to: target, at: now) }
    }

    /// Ends it, whatever it is at: CANCEL, a refusal or BYE.
    ///
    /// `ended` waits for that.
    public func hangUp() {
        if let heir { return heir.assumeIsolated { $0.hangUp() } }
        let handle = handle
        act { agent, now in agent.hangUp(handle, at: now) }
    }

    /// Holds or resumes the call; events tell when both sides know.
    public func setHeld(_ isHeld: Bool) {
        if let heir { return heir.assumeIsolated { $0.setHeld(isHeld) } }
        let (handle, sound) = (handle, sound)
        act { agent, now in
            guard var session = agent.session(of: handle) else { return }
            sound?.describe(&session, isHeld: isHeld)
            agent.change(handle, to: session, at: now)
        }
    }

    /// Mutes the microphone for this call, or not, also before there is sound; the other side is not told.
    public func setMuted(_ isMuted: Bool) async {
        if let heir { return await heir.setMuted(isMuted) }
        self.isMuted = isMuted
        if let call = await sound?.call { call.isMuted = isMuted }
    }

    /// Sends and receives at another own address, and tells the other side so, as soon as that can be.
    func move(to address: SocketAddress) async {
        // Where the address has gone again, it stays, and ends with its own.
        await tell(try? await sound?.move(to: address))
    }

    /// Looks for another way, since nothing gets through any more (ICE).
    private func findWay(of sound: CallSound) async {
        if let successor { return await successor.findWay(of: sound) }
        guard self.sound === sound, endTime == nil else { return }
        await tell(try? await sound.findWay())
    }

    /// Tells the other side where sound comes to now.
    private func tell(_ place: CallSound.Place?) async {
        guard let place else { return }
        // Meanwhile another call may have taken it over.
        let handle = successor?.handle ?? handle
        act { agent, now in
            guard var session = agent.session(of: handle) else { return }
            place.tell(in: &session)
            agent.change(handle, to: session, at: now)
        }
    }

    // MARK: What the agent tells

    /// Takes what the agent tells; on its event loop, as the phone is.
    nonisolated func tell(_ event: AgentEvent) { assumeIsolated { $0.put(event) } }

    private func put(_ event: AgentEvent) {
        let limit: Int
        switch event {
        case .established, .ended: limit = .max
        case .key, .progress: limit = Self.inboxLimit
        default: limit = 2 * Self.inboxLimit
        }
        guard waitingCount < limit else { return }
        waitingCount += 1
        mail.yield(event)
    }

    /// Its phone was closed before it ended.
    nonisolated func lose() { mail.finish() }

    /// Takes what the agent tells, to the end.
    func run() async {
        for await event in inbox {
            waitingCount -= 1
            if case .ended(_, let end) = event {
                var cause: String?
                if case .failed(.unanswered) = end.cause { cause = await endpoint.takeSecurityFailure()?.message }
                return await finish(PhoneCallEnd(end, with: remote, securityFailure: cause))
            }
            await receive(event)
        }
        await finish(PhoneCallEnd(.network, .unreachable, "The phone was closed before the call had ended."))
    }

    private func receive(_ event: AgentEvent) async {
        switch event {
        case .progress(_, let response):
            let status = response.statusCode ?? 0
            if status == 180 { isRinging = true }
            continuation.yield(.progress(status: status))
        case .agreed(_, let session):
            await agree(session)
            if !isAnswered { hasEarlyMedia = isOutgoing }
        case .established:
            (isAnswered, answerTime) = (true, SIPEndpoint<UserAgent>.now)
            continuation.yield(.answered)
            if let sound { expectKeys(sound) }
            for waiter in answerWaiters { waiter.resume() }
            answerWaiters = []
        case .key(_, let relay): continuation.yield(.key(relay.key))
        case .changeRefused(_, let status): continuation.yield(.changeRefused(status: status))
        case .transfer(_, let progress): follow(progress)
        case .transferRequested(_, let wishes):
            continuation.yield(.transferRequested(PhoneTransfer(wishes)))
        case .transferLapsed: continuation.yield(.transferLapsed)
        default: break
        }
    }

    private func agree(_ session: AgreedSession) async {
        guard let sound else { return }
        do {
            try await sound.apply(session)
        } catch {
            return lose(sound, error)
        }
        if isAnswered { expectKeys(sound) }
        let call = await sound.call
        // Meanwhile another call may have taken it over.
        guard self.sound === sound else { return }
        if listening == nil, let call {
            if isMuted { call.isMuted = true }
            listening = Task { [weak self] in for await event in call.events { await self?.handle(event) } }
        }
        guard let audio = session.audio else { return }
        note(audio.isHeldLocally, &held.us, by: .us)
        note(audio.isHeldRemotely, &held.them, by: .them)
    }

    /// Ends it unless the other side proves itself in time, where DTLS makes the keys, and when ICE has lost it.
    ///
    /// Before the answer it may take as long as it likes: somebody else may answer.
    private func expectKeys(_ sound: CallSound) {
        Task { [weak self] in
            do throws(PhoneError) { try await sound.secured() } catch { await self?.lose(sound, error) }
        }
        guard watched !== sound else { return }
        watched = sound
        Task { [weak self] in
            await sound.ended()
            if let failure = sound.securityFailure { await self?.lose(sound, failure) }
        }
        Task { [weak self] in for await _ in sound.losses { await self?.findWay(of: sound) } }
    }

    /// Ends it, for its sound cannot be had.
    private func lose(_ sound: CallSound, _ error: any Error) {
        guard self.sound === sound, endTime == nil else { return }
        problem = "\(error)"
        hangUp()
    }

    private func note(_ isNow: Bool, _ was: inout Bool, by side: PhoneCallEnd.Side) {
        guard isNow != was else { return }
        was = isNow
        continuation.yield(isNow ? .held(by: side) : .resumed(by: side))
    }

    private func handle(_ event: CallEvent) {
        if let successor { return successor.assumeIsolated { $0.handle(event) } }
        if case .keyDown(let digit) = event, let key = "\(digit)".first { return _ = continuation.yield(.key(key)) }
        continuation.yield(.media(event))
    }

    private func follow(_ progress: TransferProgress) {
        switch progress {
        case .accepted(let status), .progress(let status): continuation.yield(.transferring(status: status))
        case .done(let status):
            continuation.yield(.transferring(status: status))
            hangUp()
        case .failed(let status):
            continuation.yield(.transferFailed(status: status))
            if isHeldForTransfer { setHeld(false) }
        }
    }

    private func finish(_ end: PhoneCallEnd) async {
        endTime = SIPEndpoint<UserAgent>.now
        let talk = duration ?? .zero
        keys?.cancel()
        do {
            report = try await sound?.end(after: talk)
            if isAnswered { problem = problem ?? sound?.securityFailure?.message }
        } catch {
            // As when a recording could not be written to its end.
            problem = problem ?? "\(error)"
            listening?.cancel()
        }
        await listening?.value
        let end = problem.map { PhoneCallEnd(.us, .failed, $0) } ?? end
        self.end = end
        for waiter in answerWaiters { waiter.resume(throwing: end) }
        for waiter in endWaiters { waiter.resume(returning: end) }
        (answerWaiters, endWaiters) = ([], [])
        continuation.yield(.ended(end))
        continuation.finish()
    }

    /// Lets the agent do something in this very turn, for both are on one event loop.
    func act<Result: Sendable, E: Error>(
        _ body: @Sendable (inout UserAgent, MediaTime) throws(E) -> Result
    ) throws(E) -> Result {
        try endpoint.inTurn(body)
    }
}
