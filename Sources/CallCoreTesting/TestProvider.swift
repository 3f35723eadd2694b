public import CallCore
internal import Synchronization

/// A call screen for tests: it acts for a user, keeps what it is told, and notes what breaks the order of reports.
///
///     let screen = TestProvider()
///     let phone = try await Phone(engine, provider: screen)
///     screen.phone = phone
///     for await case .incoming(let call, _) in screen.reports {
///         #expect(await screen.act(.answer, on: call) == .fulfilled && screen.faults.isEmpty)
///     }
///
/// Thread: any.
public final class TestProvider: CallProvider {
    /// What it was told.
    public enum Report: Hashable, Sendable {
        case incoming(CallUUID, CallUpdate)
        case outgoing(CallUUID, OutgoingStage)
        case updated(CallUUID, CallUpdate)
        case ended(CallUUID, ReportedEnd)
    }

    private struct State {
        weak var phone: Phone?
        var refusal: CallRefusal?
        var faults: [String] = []
        var stages: [CallUUID: OutgoingStage?] = [:]
        var actionCount: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<ActionOutcome, Never>] = [:]
    }

    /// Everything that it is told but outcomes, in order; for one listener.
    public let reports: AsyncStream<Report>
    private let continuation: AsyncStream<Report>.Continuation
    private let state = Mutex(State())

    /// A screen that shows every call.
    public init() { (reports, continuation) = AsyncStream.makeStream() }

    /// The phone whose screen it is; to be set before it acts, and not kept alive by it.
    public var phone: Phone? {
        get { state.withLock { $0.phone } }
        set { state.withLock { $0.phone = newValue } }
    }

    /// What it says to calls that come; nil shows them.
    public var refusal: CallRefusal? {
        get { state.withLock { $0.refusal } }
        set { state.withLock { $0.refusal = newValue } }
    }

    /// What broke the order of reports, a sentence each; empty in a phone that works.
    public var faults: [String] { state.withLock { $0.faults } }

    // MARK: For tests

    /// Has the phone do something, and waits for the outcome; `notNow` when there is no phone.
    public func act(_ kind: ProviderAction.Kind, on call: CallUUID) async -> ActionOutcome {
        guard let phone else { return .failed(.notNow) }
        let id = state.withLock { state in
            state.actionCount += 1
            if case .start = kind { state.stages[call] = .some(nil) }
            return state.actionCount
        }
        return await withCheckedContinuation { waiter in
            state.withLock { $0.waiting[id] = waiter }
            Task { await phone.perform(ProviderAction(id: id, call, kind)) }
        }
    }

    // MARK: Reports

    /// Keeps the report; throws `refusal` when that is set.
    public func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async throws(CallRefusal) {
        let refusal = state.withLock { state in
            if state.stages[call] != nil { state.faults.append("A call was reported twice: \(call).") }
            if state.refusal == nil { state.stages[call] = .some(nil) }
            return state.refusal
        }
        continuation.yield(.incoming(call, update))
        if let refusal { throw refusal }
    }

    /// Keeps the report.
    public func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) async {
        state.withLock { state in
            let former = state.stages[call] ?? nil
            if stage == .connecting ? former != nil : former != .connecting {
                state.faults.append("A call is \(stage.rawValue) that was \(former?.rawValue ?? "not begun"): \(call).")
            }
            state.stages[call] = stage
        }
        continuation.yield(.outgoing(call, stage))
    }

    /// Keeps the report.
    public func reportUpdate(_ call: CallUUID, _ update: CallUpdate) async {
        check(call, "updated")
        continuation.yield(.updated(call, update))
    }

    /// Keeps the report.
    public func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) async {
        check(call, "ended")
        state.withLock { $0.stages[call] = nil }
        continuation.yield(.ended(call, reason))
    }

    /// Answers who waits in `act`.
    public func performed(_ action: ProviderAction, _ outcome: ActionOutcome) async {
        let waiter = state.withLock { state in
            if action.kind == .end, outcome == .fulfilled { state.stages[action.call] = nil }
            let waiter = state.waiting.removeValue(forKey: action.id)
            if waiter == nil {
                state.faults.append("An action had a second outcome, or was never asked for: \(action.id).")
            }
            return waiter
        }
        waiter?.resume(returning: outcome)
    }

    private func check(_ call: CallUUID, _ what: String) {
        state.withLock { state in
            if state.stages[call] == nil { state.faults.append("A call was \(what) that is not shown: \(call).") }
        }
    }
}
