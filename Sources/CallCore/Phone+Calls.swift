internal import CallBasics
internal import Glibc
public import MediaEngine
internal import SDP
internal import SIP
internal import SIPTransport

/// The calls of a phone: those that are on, and those that are over.
extension Phone {
    /// Calls somebody; `PhoneCall.answered` waits for the answer.
    ///
    /// - Parameters:
    ///   - uri: Whom, such as `sip:bob@example.org` or `sip:192.0.2.7`.
    ///   - account: The address of the account that calls; nil for the first one, or none.
    ///   - headers: Further headers of the INVITE.
    ///   - sound: Says where the call's sound comes from and goes to; the engine's call card unless it says otherwise.
    /// - Returns: The call, on its way.
    /// - Throws: `PhoneError` when the URI cannot be called, `EngineError` when there is no port or no such codec
    public func call(
        _ uri: String,
        from account: String? = nil,
        headers: [(name: String, value: String)] = [],
        _ sound: @escaping @Sendable (inout CallConfiguration) -> Void = { _ in }
    ) async throws -> PhoneCall {
        let call = try await place(uri, from: account, headers: headers, sound)
        consult { desk, _ in desk.noteOutgoing(call.handle, callID: call.callID, CallUpdate(remote: uri)) }
        return call
    }

    func place(
        _ uri: String,
        from account: String?,
        headers: [(name: String, value: String)],
        _ sound: @escaping @Sendable (inout CallConfiguration) -> Void
    ) async throws -> PhoneCall {
        let target = try PhoneError.uri(uri)
        let sender = try account.map(handle) ?? accounts.first?.handle
        return try await place(uri, sound) { agent, media, now throws(SIPError) in
            var wishes = UserAgent.CallWishes(session: media.session, account: sender)
            (wishes.spareSessions, wishes.headers) = (media.spareSessions, headers)
            return try agent.call(target, wishes, at: now)
        }
    }

    /// Calls whom the other side of a call asks to call.
    func follow(
        _ transfer: PhoneTransfer,
        from call: CallHandle,
        _ sound: @escaping @Sendable (inout CallConfiguration) -> Void
    ) async throws -> PhoneCall {
        let made = try await place(transfer.target, sound) { agent, media, now throws(SIPError) in
            try agent.acceptTransfer(
                call,
                number: transfer.number,
                media.session,
                spares: media.spareSessions,
                at: now
            )
        }
        let update = CallUpdate(remote: transfer.target)
        consult { desk, _ in desk.noteOutgoing(made.handle, callID: made.callID, update) }
        continuation.yield(.outgoing(made))
        return made
    }

    private func place(
        _ uri: String,
        _ sound: @escaping @Sendable (inout CallConfiguration) -> Void,
        _ begin: @Sendable (inout UserAgent, CallSound, MediaTime) throws(SIPError) -> CallHandle
    ) async throws -> PhoneCall {
        let media = try await makeSound(sound)
        let (handle, callID): (CallHandle, String)
        do throws(PhoneError) {
            // Meanwhile, ports were opened.
            guard !isClosed else { throw Self.closed }
            (handle, callID) = try PhoneError.wrapping(.invalid) { () throws(SIPError) in
                try act { agent, now throws(SIPError) in
                    let handle = try begin(&agent, media, now)
                    return (handle, agent.callID(of: handle) ?? "")
                }
            }
        } catch {
            _ = try? await media.end(after: .zero)
            throw error
        }
        let call = PhoneCall(
            handle,
            number: takeNumber(),
            of: self,
            remote: (uri, nil),
            callID: callID,
            isOutgoing: true,
            media
        )
        // Its events come in turns after this one.
        calls[handle] = call
        log.begin(handle, callID, with: (uri, nil), isOutgoing: true, unixSeconds: Self.unixSeconds)
        Task { await call.run() }
        // Meanwhile, the phone may have moved.
        let address = localAddress
        if media.session.address != address.host { Task { await call.move(to: address) } }
        return call
    }

    private func takeNumber() -> Int {
        callCount += 1
        return callCount
    }

    /// The calls that are on, in the order in which they began.
    public var currentCalls: [PhoneCall] { calls.values.sorted { $0.number < $1.number } }

    /// Hangs up all calls, as each is at; a call screen ends calls by its actions, or by `resetCalls`.
    public func hangUpAll() async { for call in currentCalls { await call.hangUp() } }

    /// Holds all calls that talk; a call screen does so by its actions.
    public func holdAll() async {
        for call in currentCalls where await call.isAnswered { await call.setHeld(true) }
    }

    func makeSound(_ ends: @escaping @Sendable (inout CallConfiguration) -> Void) async throws -> CallSound {
        guard !isClosed else { throw Self.closed }
        guard network.media else {
            throw PhoneError(.noNetwork, "There is no network for sound. Say setMediaReachable(true) once there is.")
        }
        return try await CallSound(
            engine,
            at: localAddress.host,
            codecs: configuration.codecs,
            packetTime: configuration.packetTime,
            encryption: configuration.mediaEncryption,
            ice: configuration.ice,
            isPrivate: configuration.transports == [.tls] || localAddress.isLoopback,
            ends
        )
    }

    // MARK: What the agent tells

    func report(_ handle: CallHandle, _ invite: SIPMessage) {
        guard !isClosed else { return act { agent, now in agent.reject(handle, status: 480, at: now) } }
        // Nobody is disturbed for what cannot be answered.
        guard configuration.mediaEncryption.takes(try? invite.sessionDescription()) else {
            return act { agent, now in agent.reject(handle, status: 488, at: now) }
        }
        let from = try? invite.from()
        let remote = (from?.uri.bytes.text ?? "", from?.displayName?.text)
        let callID = invite.callID?.text ?? ""
        let call = PhoneCall(
            handle,
            number: takeNumber(),
            of: self,
            remote: remote,
            callID: callID,
            isOutgoing: false
        )
        calls[handle] = call
        log.begin(handle, callID, with: remote, isOutgoing: false, unixSeconds: Self.unixSeconds)
        Task { await call.run() }
        if let former = formerCall(of: handle) {
            // Who talks goes on talking: nothing rings (RFC 3891, section 3).
            return replace(former, by: call)
        }
        consult { desk, now in desk.receive(handle, callID: callID, CallUpdate(invite, from: remote), at: now) }
        if case .enqueued = continuation.yield(.incoming(call)) { return }
        // The screen decides, whoever else listens.
        guard screen == nil else { return }
        act { agent, now in agent.reject(handle, status: 480, at: now) }
    }

    /// The call whose place one takes that came.
    private func formerCall(of handle: CallHandle) -> PhoneCall? {
        act { agent, _ in agent.replacedCall(of: handle) }.flatMap { calls[$0] }
    }

    /// Answers a call in the place of another one; the screen goes on with it.
    private func replace(_ former: PhoneCall, by call: PhoneCall) {
        do { try call.assumeIsolated { try $0.answer(inPlaceOf: former) } } catch {
            let handle = call.handle
            return act { agent, now in agent.reject(handle, status: 480, at: now) }
        }
        let update = CallUpdate(remote: call.remote, displayName: call.remoteName)
        screen?.noteReplaced(former.handle, by: call.handle)
        consult { desk, _ in desk.noteReplaced(former.handle, by: call.handle, callID: call.callID, update) }
        if case .enqueued = continuation.yield(.replaced(former, by: call)) { return }
        // Nobody would know of it but the screen.
        if screen == nil { call.assumeIsolated { $0.hangUp() } }
    }

    // MARK: What is over

    /// Calls that are over, the newest first, 256 of them at most; `events` tells of each as it ends.
    public var callLog: [CallLogEntry] { log.entries }

    /// Calls that nobody took since `resetMissedCalls`; one that another phone of the user answered is none.
    public var missedCallCount: Int { log.missedCount }

    /// They have been looked at.
    public func resetMissedCalls() { log.resetMissed() }

    func write(_ event: AgentEvent, of handle: CallHandle) {
        switch event {
        case .established: log.noteAnswered(handle, at: SIPEndpoint<UserAgent>.now)
        case .ended(_, let end):
            guard let entry = log.noteEnd(handle, end, at: SIPEndpoint<UserAgent>.now) else { return }
            continuation.yield(.logged(entry))
        default: break
        }
    }

    /// A call that a push has told of never came.
    func writeMissed(_ callID: String?, _ update: CallUpdate) {
        continuation.yield(.logged(log.noteMissed(callID, update, unixSeconds: Self.unixSeconds)))
    }

    private static var unixSeconds: Int64 { Int64(time(nil)) }
}
