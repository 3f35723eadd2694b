internal import CallBasics
internal import MediaEngine
internal import SDP
internal import SIP
internal import SIPTransport

/// The phone and its call screen: pushes, actions, sound, and what the desk orders.
extension Phone {
    /// The sound is this phone's, as the system says: calls have the engine's card from now on.
    ///
    /// Without a provider they have it from the start.
    public func activateAudio() { engine.setCallCardAllowed(true) }

    /// The sound is somebody else's: calls go on without a card.
    public func deactivateAudio() { engine.setCallCardAllowed(false) }

    /// Does what the screen wants, one action after the other: all of them, or none when one does not fit.
    ///
    /// What becomes of each `CallProvider.performed` tells. Who talks is held before another call begins to talk.
    public func perform(_ transaction: ProviderAction...) { perform(transaction) }

    /// As the other.
    public func perform(_ transaction: [ProviderAction]) {
        consult { desk, now in desk.perform(transaction, at: now) }
    }

    /// The call that the screen knows by this identifier; nil before its INVITE is here, and after its end.
    public func call(of identifier: CallUUID) -> PhoneCall? {
        screen?.desk[identifier]?.handle.flatMap { calls[$0] }
    }

    /// What the screen knows a call by; nil after its end, and without a screen.
    public func identifier(of call: PhoneCall) -> CallUUID? { screen?.desk.entry(of: call.handle)?.uuid }

    /// All calls end at once, and the screen is told nothing more of them.
    public func resetCalls() { consult { desk, _ in desk.reset() } }

    /// Takes a push of a call: that is shown at once, and all accounts register anew, so that its INVITE comes.
    ///
    /// Without a provider there is nobody to show it to: the INVITE is told by `events`. On a push of a text, call `refreshRegistrations`: the
    /// text is told by `events`.
    ///
    /// - Returns: What the screen knows the call by; nil where it is not shown.
    @discardableResult
    public func receive(_ push: PushPayload) -> CallUUID? {
        guard !isClosed else { return nil }
        guard screen != nil else {
            refreshRegistrations()
            return nil
        }
        var shown: CallUUID?
        consult { desk, now in shown = desk.receive(push, at: now) }
        return shown
    }

    /// Registers all accounts anew now.
    public func refreshRegistrations() {
        let handles = accounts.map(\.handle)
        act { agent, now in for handle in handles { agent.refresh(handle, at: now) } }
    }

    /// Tells the server of an account another way to wake this phone, or none.
    ///
    /// - Throws: `state` when there is no such account
    public func setPush(_ push: PhonePush?, of account: String) throws {
        let handle = try handle(of: account)
        let parameters = push?.parameters
        act { agent, now in agent.setPush(parameters, of: handle, at: now) }
    }

    /// Whether the server of an account sends pushes to it; nil when it was not asked, or has not answered.
    public func isPushServed(of account: String) -> Bool? {
        guard let handle = accounts.first(where: { $0.address == account })?.handle else { return nil }
        return act { agent, _ in agent.binding(of: handle)?.isPushServed }
    }

    /// For how long the server of an account keeps its binding, in seconds from now; nil when it has none.
    package func bindingSeconds(of account: String) -> Double? {
        guard let handle = accounts.first(where: { $0.address == account })?.handle else { return nil }
        return act { agent, now in agent.binding(of: handle).map { ($0.expiresAt - now).milliseconds / 1000 } }
    }

    /// Lets the desk decide something, and does what it says.
    func consult(_ body: (inout CallDesk, MediaTime) -> Void) {
        guard let screen else { return }
        body(&screen.desk, SIPEndpoint<UserAgent>.now)
        settle(screen)
    }

    private func settle(_ screen: CallScreen) {
        screen.settle { obey($0) }
        noteCalls()
    }

    /// The screen shows a call, or not.
    package func note(_ uuid: CallUUID, _ refusal: CallRefusal?) { consult { desk, _ in desk.note(uuid, refusal) } }

    /// It is time for the desk.
    package func handleDeskTimeout() { consult { desk, now in desk.handleTimeout(at: now) } }

    private func obey(_ order: CallDesk.Order) {
        switch order {
        case .register: refreshRegistrations()
        case .ring(let handle): act { agent, now in try? agent.ring(handle, at: now) }
        case .reject(let handle, let status): act { agent, now in agent.reject(handle, status: status, at: now) }
        case .hangUp(let handle): act { agent, now in agent.hangUp(handle, at: now) }
        case .answer(let handle, let ticket):
            guard let call = calls[handle] else { return finish(ticket, isDone: false) }
            Task { [weak self] in
                do {
                    try await call.answer()
                    await self?.finish(ticket, isDone: true)
                } catch {
                    await call.reject(status: 480)
                    await self?.finish(ticket, isDone: false)
                }
            }
        case .start(let uuid, let uri, let account, let ticket):
            Task { [weak self] in await self?.start(uuid, uri, from: account, ticket) }
        case .hold(let handle, let isHeld, let ticket):
            guard let call = calls[handle] else { return finish(ticket, isDone: false) }
            screen?.begin(ticket, toHold: handle, isHeld)
            Task { await call.setHeld(isHeld) }
        case .mute(let handle, let isMuted):
            if let call = calls[handle] { Task { await call.setMuted(isMuted) } }
        case .group(let handles, let ticket):
            inTurn { phone in phone.finish(ticket, isDone: await phone.group(handles)) }
        case .ungroup(let handle, let ticket):
            inTurn { phone in
                if let call = await phone.calls[handle]?.media { try? await phone.conference.remove(call) }
                phone.finish(ticket, isDone: true)
            }
        case .noteMissed(let callID, let update): writeMissed(callID, update)
        case .attend(let isPresent): conference.isPresent = isPresent
        case .keys(let handle, let keys, let ticket):
            guard let call = calls[handle] else { return finish(ticket, isDone: false) }
            Task { [weak self] in
                var isDone = true
                do { try await call.sendDTMF(keys) } catch { isDone = false }
                await self?.finish(ticket, isDone: isDone)
            }
        }
    }

    /// Changes the conference, one after the other.
    private func inTurn(_ change: @escaping @Sendable (isolated Phone) async -> Void) {
        let former = grouping
        grouping = Task { [weak self] in
            await former?.value
            if let self { await change(self) }
        }
    }

    /// Takes calls into the conference: all of them, or none.
    private func group(_ handles: [CallHandle]) async -> Bool {
        var added: [MediaEngine.Call] = []
        do {
            for handle in handles {
                guard let call = await calls[handle]?.media else { throw PhoneError(.state, "The call is over.") }
                try await conference.add(call)
                added.append(call)
            }
            return true
        } catch {
            for call in added { try? await conference.remove(call) }
            return false
        }
    }

    private func finish(_ ticket: CallDesk.Ticket, isDone: Bool) {
        consult { desk, now in desk.done(ticket, isDone: isDone, at: now) }
    }

    private func start(_ uuid: CallUUID, _ uri: String, from account: String?, _ ticket: CallDesk.Ticket) async {
        do {
            let call = try await place(uri, from: account, headers: []) { _ in }
            // What comes of it, comes in turns after this one.
            let (handle, id) = (call.handle, call.callID)
            consult { desk, now in desk.started(uuid, handle, callID: id, ticket, at: now) }
            continuation.yield(.outgoing(call))
        } catch {
            finish(ticket, isDone: false)
        }
    }

    private func noteConnected(_ handle: CallHandle) {
        consult { desk, now in desk.noteConnected(handle, at: now) }
    }

    /// What a call comes to.
    func note(_ event: AgentEvent, of handle: CallHandle) {
        guard let screen else { return }
        guard case .established = event else {
            screen.note(event, of: handle, at: SIPEndpoint<UserAgent>.now)
            return settle(screen)
        }
        guard let call = calls[handle] else { return }
        Task { [weak self] in
            // Once there is sound.
            do { try await call.answered() } catch { return }
            await self?.noteConnected(handle)
        }
    }
}
