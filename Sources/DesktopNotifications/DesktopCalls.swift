internal import CallBasics
internal import DesktopBus
internal import SharedCore
internal import Synchronization

/// Calls on the desktop: a notification with buttons, which stays as long as its call.
///
/// A call is known by a name of the caller's. One that is shown again replaces what was shown.
/// Source: Desktop Notifications Specification 1.2
public final class DesktopCalls: Sendable {
    /// What a person does with a call.
    public enum Action: String, Hashable, Sendable, CaseIterable {
        case answer, decline
        case hangUp = "hang-up"
    }

    /// What was done, and with which call.
    public struct Press: Hashable, Sendable {
        /// The name of the call.
        public let call: String
        /// What was done.
        public let action: Action
    }

    /// The buttons that were pressed, in order; for one listener.
    public let presses: AsyncStream<Press>

    /// How long the desktop may take to say the number of what it shows; what comes later cannot be closed.
    private static let patience = Duration.seconds(120)

    private let table = CallTable()
    private let continuation: AsyncStream<Press>.Continuation
    private let applicationName: String
    private let texts: NotificationTexts
    private let limit: Duration
    private let sessions: DesktopSessions

    /// Connects to the session bus that `environment` names.
    ///
    /// - Parameters:
    ///   - applicationName: Who shows them, in the desktop's settings.
    ///   - environment: The variables of the process; also the language of the buttons.
    /// - Returns: The calls, ready for use.
    /// - Throws: `NotificationError`, also when nothing shows notifications
    public static func connect(applicationName: String, environment: [String: String]) async throws -> DesktopCalls {
        let calls = DesktopCalls(applicationName: applicationName, environment: environment, limit: .seconds(5))
        _ = try await calls.sessions.current()
        return calls
    }

    private init(applicationName: String, environment: [String: String], limit: Duration) {
        (presses, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
        (self.applicationName, self.limit) = (applicationName, limit)
        texts = .localized(environment: environment)
        sessions = DesktopSessions(environment: environment, limit: limit) { [table, continuation] signal, owner in
            guard signal.interface == DesktopPresenter.service, signal.member == "ActionInvoked",
                let number = signal.body.first?.uint32,
                let action = signal.body.dropFirst().first?.string.flatMap({ Action(rawValue: $0) }),
                let call = table.call(of: CallTable.Place(number: number, owner: owner))
            else { return }
            continuation.yield(Press(call: call, action: action))
        }
    }

    deinit { continuation.finish() }

    /// Shows a call that rings, or one that is on.
    ///
    /// - Parameters:
    ///   - call: The name of the call.
    ///   - caller: Who it is with, for people.
    ///   - isOn: Whether it was answered, or this side calls: then it can be hung up.
    /// - Throws: `NotificationError` when it is not shown, or the desktop does not say so in 5 s; what it shows later is closed by
    ///   `withdraw` all the same. `CancellationError`
    public func show(_ call: String, caller: String, isOn: Bool) async throws {
        let turn = table.begin(call)
        let shown = BusResult<Void>()
        Task {
            do {
                try await notify(call, turn, caller: caller, isOn: isOn)
                shown.end(with: .success(()))
            } catch {
                table.forget(call, turn)
                shown.end(with: .failure(error))
            }
        }
        let alarm = Task { [limit] in
            try await Task.sleep(for: limit)
            shown.end(
                with: .failure(
                    NotificationError(.timedOut, "What shows notifications did not answer in time. Check that it runs.")
                )
            )
        }
        defer { alarm.cancel() }
        try await shown.value
    }

    private func notify(_ call: String, _ turn: CallTable.Turn, caller: String, isOn: Bool) async throws {
        try await sessions.use { session in
            let number = try await session.notify(
                [
                    .string(applicationName),
                    .uint32(table.place(of: call).flatMap { $0.owner == session.owner ? $0.number : nil } ?? 0),
                    .string(""),
                    .string(caller),
                    .string(session.body(isOn ? texts.call : texts.incomingCall)),
                    .strings(
                        isOn
                            ? [Action.hangUp.rawValue, texts.hangUp]
                            : [Action.answer.rawValue, texts.answer, Action.decline.rawValue, texts.decline]
                    ),
                    // One that rings stays until it is taken.
                    .dictionary(["category": .string("call.incoming"), "urgency": .byte(isOn ? 1 : 2)]),
                    .int32(0),
                ],
                until: .now + Self.patience
            )
            guard table.note(CallTable.Place(number: number, owner: session.owner), of: call, turn) else {
                return try await session.close(number, until: .now + limit)
            }
        }
    }

    /// Closes what is shown of a call, also where the desktop shows it later.
    ///
    /// - Throws: `NotificationError`
    public func withdraw(_ call: String) async throws {
        guard let place = table.remove(call) else { return }
        try await sessions.use { session in
            if session.owner == place.owner { try await session.close(place.number, until: .now + limit) }
        }
    }
}
