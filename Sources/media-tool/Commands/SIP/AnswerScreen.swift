import CallBasics
import CallCore
import LocalMessaging
import MediaEngine
import SIP
import SIPTransport
import SharedPhone

/// A call screen of another process that decides about the calls of `sip answer`, in the place of a policy.
///
///     calls ──note──► desk ──report──► screen
///     calls ◄──order── desk ◄──perform── screen
///
/// It answers: a screen can begin no call here, and there is no conference.
actor AnswerScreen: ScreenedCalls {
    private let server = ScreenServer()
    private let screen: CallScreen
    private let party: SIPParty
    private let engine: CallEngine
    private let desk: AnswerDesk
    private let teller: SIPTeller
    /// Whether the session is described while it rings.
    private let isEarly: Bool
    private let orders: AsyncStream<CallDesk.Order>
    private let continuation: AsyncStream<CallDesk.Order>.Continuation

    init(_ party: SIPParty, _ engine: CallEngine, _ desk: AnswerDesk, isEarly: Bool, _ teller: SIPTeller) {
        (self.party, self.engine, self.desk, self.isEarly, self.teller) = (party, engine, desk, isEarly, teller)
        screen = CallScreen(server, seed: .random(in: .min ... .max))
        (orders, continuation) = AsyncStream.makeStream()
    }

    /// Lets screens of a group connect; the card is theirs to open.
    ///
    /// - Throws: `ServerError`, as when another process has the screens of that group
    func open(in group: GroupContainer) async throws {
        engine.setCallCardAllowed(false)
        screen.open(for: self)
        // One after the other, as the desk gives them.
        Task { [weak self, orders] in for await order in orders { await self?.obey(order) } }
        try await server.open(showing: self, in: group)
    }

    /// Lets the screens go.
    func close() async {
        await server.close()
        screen.close()
        continuation.finish()
    }

    // MARK: What calls come to

    /// A call has come.
    func receive(_ invite: SIPMessage, _ handle: CallHandle) {
        let from = try? invite.from()
        let remote = (uri: from?.uri.bytes.text ?? "", name: from?.displayName?.text)
        let (callID, update) = (invite.callID?.text ?? "", CallUpdate(invite, from: remote))
        consult { desk, now in desk.receive(handle, callID: callID, update, at: now) }
    }

    /// Something has become of a call.
    func note(_ event: AgentEvent, of handle: CallHandle) {
        if case .established = event { return consult { desk, now in desk.noteConnected(handle, at: now) } }
        screen.note(event, of: handle, at: SIPEndpoint<UserAgent>.now)
        screen.settle { continuation.yield($0) }
    }

    // MARK: What the screen wants

    func perform(_ transaction: [ProviderAction]) {
        let isAnswering = transaction.allSatisfy { action in
            switch action.kind {
            case .start, .setGroup: false
            case .answer, .end, .setHeld, .setMuted, .playDTMF: true
            }
        }
        guard isAnswering else {
            for action in transaction { _ = screen.tell(.performed(action, .failed(.notNow))) }
            return
        }
        consult { desk, now in desk.perform(transaction, at: now) }
    }

    func activateAudio() { engine.setCallCardAllowed(true) }

    func deactivateAudio() { engine.setCallCardAllowed(false) }

    func resetCalls() { consult { desk, _ in desk.reset() } }

    func receive(_ push: PushPayload) -> CallUUID? {
        var shown: CallUUID?
        consult { desk, now in shown = desk.receive(push, at: now) }
        return shown
    }

    func note(_ uuid: CallUUID, _ refusal: CallRefusal?) { consult { desk, _ in desk.note(uuid, refusal) } }

    func handleDeskTimeout() { consult { desk, now in desk.handleTimeout(at: now) } }

    private func consult(_ body: (inout CallDesk, MediaTime) -> Void) {
        body(&screen.desk, SIPEndpoint<UserAgent>.now)
        screen.settle { continuation.yield($0) }
    }

    // MARK: What the desk orders

    private func obey(_ order: CallDesk.Order) async {
        let endpoint = party.endpoint
        switch order {
        case .register:
            guard let account = party.account else { return }
            await endpoint.perform { agent, now in agent.refresh(account, at: now) }
        case .ring(let handle):
            let session = isEarly ? await desk.run(handle)?.session : nil
            try? await endpoint.perform { agent, now in try agent.ring(handle, with: session, at: now) }
        case .answer(let handle, let ticket):
            guard let session = await desk.run(handle)?.session else { return finish(ticket, isDone: false) }
            // Nothing that both know was answered 488 already; the end of the call tells it.
            do {
                try await endpoint.perform { agent, now in try agent.answer(handle, session, at: now) }
                finish(ticket, isDone: true)
            } catch {
                finish(ticket, isDone: false)
            }
        case .reject(let handle, let status):
            await endpoint.perform { agent, now in agent.reject(handle, status: status, at: now) }
        case .hangUp(let handle): await endpoint.perform { agent, now in agent.hangUp(handle, at: now) }
        case .hold(let handle, let isHeld, let ticket):
            guard let run = await desk.run(handle) else { return finish(ticket, isDone: false) }
            screen.begin(ticket, toHold: handle, isHeld)
            await run.setHeld(isHeld)
        case .mute(let handle, let isMuted): await desk.run(handle)?.setMuted(isMuted)
        case .keys(let handle, let keys, let ticket):
            let run = await desk.run(handle)
            // They take their time.
            Task {
                do {
                    guard let run else { throw CancellationError() }
                    try await run.send(keys: DTMFSequence(parsing: keys))
                    finish(ticket, isDone: true)
                } catch {
                    finish(ticket, isDone: false)
                }
            }
        case .noteMissed(let callID, let update):
            teller.tell(
                "missed",
                [("callID", JSONValue(callID)), ("from", .string(update.remote))],
                text: "The call that a push told of never came."
            )
        // None of its own, and none together: `perform` takes no such action.
        case .start(_, _, _, let ticket), .group(_, let ticket), .ungroup(_, let ticket): finish(ticket, isDone: false)
        case .attend: break
        }
    }

    private func finish(_ ticket: CallDesk.Ticket, isDone: Bool) {
        consult { desk, now in desk.done(ticket, isDone: isDone, at: now) }
    }
}
