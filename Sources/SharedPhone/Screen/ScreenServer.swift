public import CallCore
public import LocalMessaging
internal import SharedCore

/// The call screens of other processes, as the provider of a phone: it tells each that connects what is on, and from then on
/// what happens; and has the phone do what they say.
///
///     let screens = ScreenServer()
///     let phone = try await Phone(engine, provider: screens)
///     try await screens.open(for: phone, in: group)
///
/// `SIPService(screensIn:)` has its own, for as long as its core runs.
///
/// A screen that goes takes nothing with it: calls and their sound go on, and the next one is told of them first. Without any,
/// calls that come are shown to the next. One that does not read is let go.
/// Thread: any.
public actor ScreenServer: CallProvider {
    /// The name in its group.
    public static let name = "calls"
    /// Reports that may wait for one screen.
    private static let reportLimit = 1024
    /// How long screens may take to say whether they show a call.
    private static let questionLimit = Duration.seconds(1)

    private enum Item: Sendable {
        case report(ScreenReport)
        case question(ScreenQuestion, CheckedContinuation<CallRefusal?, Never>)
    }

    /// What is known of an action of a screen.
    private enum Progress {
        case asked
        case awaited(CheckedContinuation<ActionOutcome, Never>)
        case over(ActionOutcome)
    }

    private struct Screen {
        let connection: MessageConnection
        let items: AsyncStream<Item>.Continuation
    }

    private weak var phone: (any ScreenedCalls)?
    private var server: MessageServer?
    private var screens: [MessageConnection.ID: Screen] = [:]
    private var shown: [ShownCall] = []
    private var isAudioActive = false
    private var actionCount: UInt64 = 0
    private var actions: [UInt64: Progress] = [:]
    /// Calls that the screens are asked about, and whether one of them has begun to answer it.
    private(set) var asked: [CallUUID: Bool] = [:]

    /// Screens that cannot connect yet.
    public init() {}

    /// Lets screens of a group connect.
    ///
    /// - Throws: `ServerError`, as when another core of the group has screens
    public func open(for phone: Phone, in group: GroupContainer) async throws {
        try await open(showing: phone, in: group)
    }

    /// As the other, for what stands for a phone.
    package func open(showing phone: any ScreenedCalls, in group: GroupContainer) async throws {
        self.phone = phone
        server = try await MessageServer.succeed(
            name: Self.name,
            in: group,
            handlers: handlers,
            clientChanged: { [weak self] connection, change in
                Task { [weak self] in
                    switch change {
                    case .joined: await self?.join(connection)
                    case .left: await self?.leave(connection)
                    }
                }
            }
        )
    }

    /// Lets all screens go; what they have begun has no outcome any more.
    public func close() async {
        await server?.stop()
        server = nil
        for screen in screens.values { screen.items.finish() }
        screens = [:]
        for case .awaited(let waiter) in actions.values { waiter.resume(returning: .failed(.notNow)) }
        actions = [:]
    }

    private var handlers: MessageHandlers {
        var handlers = MessageHandlers()
        handlers.reply(to: ScreenSnapshot.self) { [weak self] _, _ in
            await self?.snapshot ?? ScreenSnapshot.Reply(calls: [], isAudioActive: false)
        }
        handlers.reply(to: ScreenTransaction.self) { [weak self] transaction, _ in
            ScreenTransaction.Reply(outcomes: await self?.perform(transaction.steps) ?? [])
        }
        handlers.reply(to: ScreenCommand.self) { [weak self] command, _ in
            ScreenCommand.Reply(call: await self?.obey(command))
        }
        return handlers
    }

    private var snapshot: ScreenSnapshot.Reply { ScreenSnapshot.Reply(calls: shown, isAudioActive: isAudioActive) }

    // MARK: Screens

    private func join(_ connection: MessageConnection) {
        // Others only ask, or act.
        guard connection.acceptedByPeer.contains(ScreenReport.messageType), connection.invalidation == nil else {
            return
        }
        let (items, continuation) = AsyncStream.makeStream(
            of: Item.self,
            bufferingPolicy: .bufferingOldest(Self.reportLimit)
        )
        screens[connection.id] = Screen(connection: connection, items: continuation)
        continuation.yield(.report(.snapshot(snapshot)))
        Task {
            for await item in items {
                switch item {
                case .report(let report): try? await connection.send(report)
                case .question(let question, let waiter):
                    let reply = try? await connection.request(question, timeout: Self.questionLimit)
                    waiter.resume(returning: reply?.refusal)
                }
            }
        }
    }

    private func leave(_ connection: MessageConnection) {
        screens.removeValue(forKey: connection.id)?.items.finish()
    }

    private func tell(_ report: ScreenReport) { for screen in screens.values { put(.report(report), screen) } }

    @discardableResult
    private func put(_ item: Item, _ screen: Screen) -> Bool {
        switch screen.items.yield(item) {
        case .enqueued: return true
        case .dropped, .terminated:
            // It has missed something: it comes again, and is told all.
            leave(screen.connection)
            Task { await screen.connection.close() }
            return false
        @unknown default: return false
        }
    }

    // MARK: What the phone reports

    /// Asks the screens, all at once; shown unless one of them refuses in time, before another one answers it.
    public func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async throws(CallRefusal) {
        shown.append(ShownCall(call: call, update: update, isOutgoing: false))
        asked[call] = false
        defer { asked[call] = nil }
        let question = ScreenQuestion(call: call, update: update)
        let answers = screens.values.map { screen in Task { await ask(question, screen) } }
        for answer in answers {
            guard let refusal = await answer.value, asked[call] == false else { continue }
            shown.removeAll { $0.call == call }
            tell(.ended(call, .failed))
            throw refusal
        }
    }

    private func ask(_ question: ScreenQuestion, _ screen: Screen) async -> CallRefusal? {
        await withCheckedContinuation { waiter in
            if !put(.question(question, waiter), screen) { waiter.resume(returning: nil) }
        }
    }

    /// Tells the screens.
    public func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) {
        if let index = shown.firstIndex(where: { $0.call == call }) {
            shown[index].update = update
        } else {
            shown.append(ShownCall(call: call, update: update, isOutgoing: true))
        }
        if stage == .connected { change(call) { $0.isConnected = true } }
        tell(.outgoing(call, update, stage))
    }

    /// Tells the screens.
    public func reportUpdate(_ call: CallUUID, _ update: CallUpdate) {
        change(call) { $0.update = update }
        tell(.updated(call, update))
    }

    /// Tells the screens.
    public func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) {
        shown.removeAll { $0.call == call }
        tell(.ended(call, reason))
    }

    /// Tells the screens, and who asked for it.
    public func performed(_ action: ProviderAction, _ outcome: ActionOutcome) {
        if outcome == .fulfilled {
            switch action.kind {
            case .end: shown.removeAll { $0.call == action.call }
            case .answer: change(action.call) { $0.isConnected = true }
            case .setMuted(let isMuted): change(action.call) { $0.isMuted = isMuted }
            case .start, .setHeld, .setGroup, .playDTMF: break
            }
        }
        tell(.performed(action, outcome))
        note(outcome, of: action.id)
    }

    private func note(_ outcome: ActionOutcome, of id: UInt64) {
        switch actions[id] {
        case .awaited(let waiter)?:
            actions[id] = nil
            waiter.resume(returning: outcome)
        case .asked?: actions[id] = .over(outcome)
        case .over?, nil: break
        }
    }

    private func change(_ call: CallUUID, _ body: (inout ShownCall) -> Void) {
        if let index = shown.firstIndex(where: { $0.call == call }) { body(&shown[index]) }
    }

    // MARK: What screens want

    private func perform(_ steps: [ScreenTransaction.Step]) async -> [ActionOutcome] {
        guard let phone, !steps.isEmpty else { return steps.map { _ in .failed(.notNow) } }
        // Identifiers of several screens would meet.
        let transaction = steps.map { step in
            actionCount += 1
            return ProviderAction(id: actionCount, step.call, step.kind)
        }
        for action in transaction {
            actions[action.id] = .asked
            if action.kind == .answer, asked[action.call] != nil { asked[action.call] = true }
        }
        await phone.perform(transaction)
        var outcomes: [ActionOutcome] = []
        for action in transaction { outcomes.append(await outcome(of: action.id)) }
        return outcomes
    }

    private func outcome(of id: UInt64) async -> ActionOutcome {
        switch actions[id] {
        case .over(let outcome)?:
            actions[id] = nil
            return outcome
        case .asked?: return await withCheckedContinuation { actions[id] = .awaited($0) }
        // The screens were closed.
        case .awaited?, nil: return .failed(.notNow)
        }
    }

    private func obey(_ command: ScreenCommand) async -> CallUUID? {
        guard let phone else { return nil }
        switch command {
        case .setAudio(let isActive):
            if isActive { await phone.activateAudio() } else { await phone.deactivateAudio() }
            if isActive != isAudioActive {
                isAudioActive = isActive
                tell(.audio(isActive: isActive))
            }
        case .reset:
            let begun = Array(actions.keys)
            await phone.resetCalls()
            // Of these nothing is told any more.
            for id in begun { note(.failed(.unknownCall), of: id) }
            for call in shown { tell(.ended(call.call, .failed)) }
            shown = []
        case .push(let callID, let from, let displayName):
            return await phone.receive(PushPayload(callID: callID, from: from, displayName: displayName))
        }
        return nil
    }
}
