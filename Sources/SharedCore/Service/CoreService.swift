/// What a core runs: the side of it that talks to a server.
///
/// A core calls `start`, then `fetchPending`, `run` and `perform` in any order and also at the same time, and `stop` at
/// the end. Everything that arrives goes to the context, and only when the context has it (the transaction is
/// committed) is it acknowledged to the server: a process that dies in between gets it again, and the context tells
/// the repeat by its key. A service never starts by itself and keeps nothing of its own between two processes.
public protocol CoreService: Sendable {
    /// Takes the context and connects.
    ///
    /// A server that is not to be reached now is no error: `fetchPending`, `run` and `perform` connect again, with
    /// back-off.
    ///
    /// - Throws: what cannot mend by itself, such as a configuration that makes no sense.
    func start(_ context: CoreContext) async throws

    /// Pulls all that is pending now, and returns when each was delivered to the context and acknowledged to the server.
    ///
    /// Connections that end are made again until the task is cancelled, which is how a caller sets a limit.
    ///
    /// - Throws: what the context threw, `CancellationError`, or what cannot mend by itself.
    func fetchPending() async throws

    /// Stays connected and delivers what is pending and what arrives, until the task is cancelled.
    ///
    /// - Throws: as `fetchPending`; it never returns without an error.
    func run() async throws

    /// Performs an action at the server; returns when the server has it.
    ///
    /// An action may be performed again when it is not known whether it was; the server tells it by its identifier. Several are
    /// performed at the same time, but of replies to one receiver one after the other.
    ///
    /// - Throws: `ActionRefusal` when it will never be performed; it is dropped then, and whoever asks is told. Anything else has
    ///   it tried again, for three days.
    func perform(_ action: MessageAction) async throws

    /// Somebody waits for what is not in the store: pulls what is pending, soon, while it runs.
    ///
    /// It does nothing unless a service says otherwise: one whose server sends by itself needs none.
    func fetchSoon() async

    /// An account was added, changed or removed, as the store has it now.
    ///
    /// It does nothing unless a service says otherwise.
    func accountChanged(_ address: String) async

    /// Sends the receipts that are still to be sent and closes the connection.
    ///
    /// Nothing is delivered after it has returned. What is still running ends with `CancellationError`.
    func stop() async
}

extension CoreService {
    /// Nothing.
    public func fetchSoon() async {}

    /// Nothing.
    public func accountChanged(_ address: String) async {}
}

/// What a core gives to its service: its epoch, and the doors to the store.
public struct CoreContext: Sendable {
    /// The ownership under which the service writes.
    public let epoch: Epoch
    /// The group's store, with its accounts and settings; nil in a test without one.
    public let store: SharedStore?

    private let deliverMessage: @Sendable (IncomingMessage) async throws -> Bool
    private let deliverInvitation: @Sendable (RoomInvitation) async throws -> Bool
    private let recordCallRecord: @Sendable (CallRecord) async throws -> Void
    private let retry: @Sendable () -> Void
    private let noteCalls: @Sendable (Bool) -> Void

    /// A context whose doors are closures: the store's in a core, anything in a test.
    public init(
        epoch: Epoch,
        store: SharedStore? = nil,
        deliver: @escaping @Sendable (IncomingMessage) async throws -> Bool,
        deliverInvitation: @escaping @Sendable (RoomInvitation) async throws -> Bool,
        recordCall: @escaping @Sendable (CallRecord) async throws -> Void,
        retryActions: @escaping @Sendable () -> Void = {},
        setInCall: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        (self.epoch, self.store, retry, noteCalls) = (epoch, store, retryActions, setInCall)
        deliverMessage = deliver
        self.deliverInvitation = deliverInvitation
        recordCallRecord = recordCall
    }

    /// Commits the message; true when it is new, false when it had come before.
    ///
    /// - Throws: when it is not committed; it must not be acknowledged then.
    @discardableResult
    public func deliver(_ message: IncomingMessage) async throws -> Bool {
        try await deliverMessage(message)
    }

    /// Commits the invitation; true when the room is new, false when it had come before.
    ///
    /// - Throws: when it is not committed; it must not be acknowledged then.
    @discardableResult
    public func deliver(_ invitation: RoomInvitation) async throws -> Bool {
        try await deliverInvitation(invitation)
    }

    /// Adds a call that has ended to the log.
    ///
    /// - Throws: when it is not committed.
    public func recordCall(_ call: CallRecord) async throws {
        try await recordCallRecord(call)
    }

    /// Has actions that failed tried again now, as when the server is back.
    public func retryActions() { retry() }

    /// Says that a call is on, or a push has told of one; or none any more.
    ///
    /// A core for calls keeps its place for so long, and ends then. Others pass it over.
    public func setInCall(_ isInCall: Bool) { noteCalls(isInCall) }
}
