public import CallCore
public import LocalMessaging
internal import Synchronization

/// A call screen of its own process: it shows the calls of the core of its group, and says what becomes of them.
///
///     let screen = try await ScreenClient.connect(to: group, waitingForCore: .seconds(30))
///     for await event in screen.events {
///         if case .incoming(let call, _) = event { _ = try await screen.perform(.answer, on: call) }
///     }
///
/// When the core ends it waits for the next, and is told all that is on there first. Where none comes soon, what it showed is told
/// to have ended.
/// Thread: any.
public final class ScreenClient: Sendable {
    /// What a screen is told, in order.
    public enum Event: Hashable, Sendable {
        /// All that is on, at first and after each interruption: what was shown before is to go.
        case snapshot([ShownCall], isAudioActive: Bool)
        /// A call has come, or a push tells of one.
        case incoming(CallUUID, CallUpdate)
        /// A call of this side is under way, or was answered.
        case outgoing(CallUUID, CallUpdate, OutgoingStage)
        /// Something else is known of a call.
        case updated(CallUUID, CallUpdate)
        /// A call has ended that no action has ended.
        case ended(CallUUID, ReportedEnd)
        /// An action was fulfilled, or has failed; of this or another screen.
        case performed(ProviderAction, ActionOutcome)
        /// The sound is on, or off.
        case audio(isActive: Bool)
        /// The core has gone, or is not reached. What it had is told by the next `snapshot`, or, where that does not come within
        /// 2 s, is over: each call that was shown is told to have ended, as `failed`.
        case interrupted
    }

    /// Events that may wait for their listener; then the oldest are lost.
    private static let eventLimit = 4096
    /// How long the core may be away before its calls count as over.
    static let interruptionPatience = Duration.seconds(2)

    /// What it is told; for one listener.
    public let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let client: MessageClient
    private let shown: ShownCalls

    /// Connects to the core of a group.
    ///
    /// - Parameters:
    ///   - group: The group.
    ///   - limit: How long a core that is not there yet is waited for; nil fails at once.
    ///   - isScreen: Whether it is told of calls and stays; else it asks and acts alone, and `events` is empty.
    ///   - refusal: Says whether a call that came is not to be shown, within a second.
    /// - Returns: The screen, connected.
    /// - Throws: `Invalidation` when there is no core with screens
    public static func connect(
        to group: GroupContainer,
        waitingForCore limit: Duration? = nil,
        isScreen: Bool = true,
        refusing refusal: @escaping @Sendable (CallUUID, CallUpdate) async -> CallRefusal? = { _, _ in nil }
    ) async throws -> ScreenClient {
        let (events, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingNewest(eventLimit)
        )
        var handlers = MessageHandlers()
        let shown = ShownCalls(continuation)
        if isScreen {
            handlers.on(ScreenReport.self) { report, _ in shown.tell(Event(report)) }
            handlers.reply(to: ScreenQuestion.self) { question, _ in
                let refusal = await refusal(question.call, question.update)
                if refusal == nil { shown.tell(.incoming(question.call, question.update)) }
                return ScreenQuestion.Reply(refusal: refusal)
            }
        }
        let client = try await MessageClient.connect(
            to: ScreenServer.name,
            in: group,
            handlers: handlers,
            waitingForServer: limit,
            reconnection: isScreen ? .backingOff : nil,
            changed: { change in
                switch change {
                case .interrupted: shown.tell(.interrupted)
                case .reconnected: break
                case .invalidated: continuation.finish()
                }
            }
        )
        return ScreenClient(client, events, continuation, shown)
    }

    private init(
        _ client: MessageClient,
        _ events: AsyncStream<Event>,
        _ continuation: AsyncStream<Event>.Continuation,
        _ shown: ShownCalls
    ) {
        (self.client, self.events, self.continuation, self.shown) = (client, events, continuation, shown)
    }

    deinit { shown.close() }

    /// Has the phone do something with a call.
    ///
    /// - Returns: What became of it.
    /// - Throws: `MessagingError` when the core is not there, or ends meanwhile
    public func perform(_ kind: ProviderAction.Kind, on call: CallUUID) async throws -> ActionOutcome {
        try await perform([(call, kind)]).first ?? .failed(.notNow)
    }

    /// Has the phone do several things, one after the other: all of them, or none when one does not fit.
    ///
    /// - Returns: What became of each.
    /// - Throws: as the other
    public func perform(_ steps: [(call: CallUUID, kind: ProviderAction.Kind)]) async throws -> [ActionOutcome] {
        let transaction = ScreenTransaction(steps: steps.map { ScreenTransaction.Step(call: $0.call, kind: $0.kind) })
        // Each action has its own limit, 10 s at most.
        return try await client.request(transaction, timeout: .seconds(10 * max(steps.count, 1) + 2)).outcomes
    }

    /// Says that the sound is the phone's, or somebody else's.
    ///
    /// - Throws: `MessagingError`
    public func setAudioActive(_ isActive: Bool) async throws {
        _ = try await client.request(ScreenCommand.setAudio(isActive: isActive), timeout: .seconds(5))
    }

    /// Ends all calls at once.
    ///
    /// - Throws: `MessagingError`
    public func resetCalls() async throws { _ = try await client.request(ScreenCommand.reset, timeout: .seconds(5)) }

    /// Gives the phone a push of a call.
    ///
    /// - Returns: What screens know the call by; nil where it is not shown.
    /// - Throws: `MessagingError`
    public func receive(_ push: PushPayload) async throws -> CallUUID? {
        let command = ScreenCommand.push(callID: push.callID, from: push.from, displayName: push.displayName)
        return try await client.request(command, timeout: .seconds(5)).call
    }

    /// What is on.
    ///
    /// - Throws: `MessagingError`
    public func calls() async throws -> (calls: [ShownCall], isAudioActive: Bool) {
        let snapshot = try await client.request(ScreenSnapshot(), timeout: .seconds(5))
        return (snapshot.calls, snapshot.isAudioActive)
    }

    /// Leaves; the calls go on.
    public func close() async {
        await client.close()
        shown.close()
        continuation.finish()
    }
}

extension ScreenClient.Event {
    init(_ report: ScreenReport) {
        switch report {
        case .snapshot(let snapshot): self = .snapshot(snapshot.calls, isAudioActive: snapshot.isAudioActive)
        case .outgoing(let call, let update, let stage): self = .outgoing(call, update, stage)
        case .updated(let call, let update): self = .updated(call, update)
        case .ended(let call, let reason): self = .ended(call, reason)
        case .performed(let action, let outcome): self = .performed(action, outcome)
        case .audio(let isActive): self = .audio(isActive: isActive)
        }
    }
}
