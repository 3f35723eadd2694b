internal import CallBasics
internal import DesktopBus
public import SharedCore

/// Shows notifications on the desktop.
///
/// Where the desktop offers a field for an answer (capability `inline-reply`), a notification has the action to reply;
/// everywhere it has the one to mark as seen. A message that is shown again, by this process or another one of the
/// group, replaces its earlier notification.
///
/// A bus that ended, or a service that was replaced, is looked for again with the next notification; `actions` goes on.
///
/// Source: Desktop Notifications Specification 1.2; `inline-reply` and `NotificationReplied` as in KDE Plasma.
public final class DesktopPresenter: NotificationPresenter {
    /// What was done with the notifications of this process, and with those in the records.
    public let actions: AsyncStream<MessageAction>

    private let action: AsyncStream<MessageAction>.Continuation
    private let applicationName: String
    private let records: NotificationRecords
    private let texts: NotificationTexts
    private let limit: Duration
    private let sessions: DesktopSessions

    /// Connects to the session bus that `environment` names and asks its service of notifications what it can do.
    ///
    /// - Parameters:
    ///   - applicationName: who shows them, in the desktop's settings.
    ///   - environment: the variables of the process; also the language of labels.
    ///   - records: a directory in which the processes of a group keep which notification is which message's.
    /// - Returns: the presenter, ready for use.
    /// - Throws: `NotificationError`, also when nothing shows notifications.
    public static func connect(
        applicationName: String,
        environment: [String: String],
        records: String?
    ) async throws -> DesktopPresenter {
        try await connect(
            applicationName: applicationName,
            environment: environment,
            records: records,
            limit: .seconds(5)
        )
    }

    /// As the public one; a bus has `limit` to let us in, its service as much to say what it can do, and again to show something.
    static func connect(
        applicationName: String,
        environment: [String: String],
        records: String?,
        limit: Duration
    ) async throws -> DesktopPresenter {
        let presenter = DesktopPresenter(
            applicationName: applicationName,
            environment: environment,
            records: NotificationRecords(directory: records),
            limit: limit
        )
        _ = try await presenter.sessions.current()
        return presenter
    }

    private init(
        applicationName: String,
        environment: [String: String],
        records: NotificationRecords,
        limit: Duration
    ) {
        let (actions, action) = AsyncStream.makeStream(of: MessageAction.self, bufferingPolicy: .bufferingNewest(1024))
        self.actions = actions
        self.action = action
        self.applicationName = applicationName
        self.records = records
        texts = .localized(environment: environment)
        self.limit = limit
        sessions = DesktopSessions(environment: environment, limit: limit) { signal, owner in
            if let performed = Self.action(of: signal, records, owner) { action.yield(performed) }
        }
    }

    deinit {
        action.finish()
    }

    /// Shows the notification, and keeps its number.
    ///
    /// - Throws: `NotificationError` when it is not shown, or will not be known by others.
    public func present(_ notification: MessageNotification) async throws {
        try await sessions.use { try await present(notification, in: $0) }
    }

    private func present(_ notification: MessageNotification, in session: DesktopSession) async throws {
        let earlier = try records.number(of: notification.identifier, owner: session.owner) ?? 0
        var labels: [String] = []
        for action in notification.actions {
            switch action {
            case .reply where session.capabilities.contains(Self.replyKey): labels += [Self.replyKey, texts.reply]
            case .reply: break
            case .markAsSeen: labels += [Self.seenKey, texts.markAsSeen]
            }
        }
        let room = notification.room.map { " (\($0))" } ?? ""
        let number = try await session.notify(
            [
                .string(applicationName),
                .uint32(earlier),
                .string(""),
                .string((notification.sender ?? texts.fallback) + room),
                .string(notification.sender == nil ? "" : session.body(notification.text)),
                .strings(labels),
                .dictionary(["category": .string("im.received"), "urgency": .byte(1)]),
                .int32(-1),
            ],
            until: .now + limit
        )
        try records.keep(number, of: notification.identifier, owner: session.owner)
    }

    /// Closes the notification.
    ///
    /// - Throws: `NotificationError`.
    public func withdraw(identifier: String) async throws {
        try await sessions.use { session in
            guard let number = try records.number(of: identifier, owner: session.owner) else { return }
            records.forget(number, owner: session.owner)
            try await session.close(number, until: .now + limit)
        }
    }

    /// What a signal says was done.
    private static func action(
        of signal: BusSignal,
        _ records: NotificationRecords,
        _ owner: String
    ) -> MessageAction? {
        guard signal.interface == service, let number = signal.body.first?.uint32 else { return nil }
        let value = signal.body.dropFirst().first
        let kind: MessageAction.Kind
        switch (signal.member, value?.string) {
        case ("ActionInvoked", seenKey): kind = .markAsSeen
        case ("NotificationReplied", let text?): kind = .reply(text)
        default: return nil
        }
        guard let identifier = records.identifier(of: number, owner: owner) else { return nil }
        let name = if case .reply = kind { "reply" } else { "seen" }
        return MessageAction(id: "desktop/\(owner)/\(number)/\(name)/\(identifier)", callID: identifier, kind: kind)
    }

    static func call(_ member: String, _ body: [BusValue] = []) -> BusCall {
        BusCall(destination: service, path: path, interface: service, member: member, body: body)
    }

    static var service: String { "org.freedesktop.Notifications" }
    static var path: String { "/org/freedesktop/Notifications" }
    private static var replyKey: String { "inline-reply" }
    private static var seenKey: String { "mark-as-seen" }
}
