/// Shows notifications to a person, and hears what the person does with them.
public protocol NotificationPresenter: Sendable {
    /// Shows the notification in place of an earlier one with the same identifier.
    ///
    /// - Throws: when it is not shown.
    func present(_ notification: MessageNotification) async throws

    /// Takes the notification away; nothing when it is not there.
    ///
    /// - Throws: when it is not known whether it went.
    func withdraw(identifier: String) async throws

    /// What was done with notifications, those of other processes of the group included where they are known.
    ///
    /// One action may come to several processes; its identifier is the same in each. The stream has one reader.
    var actions: AsyncStream<MessageAction> { get }
}

/// Shows each notification as a line of text.
public struct StandardOutputPresenter: NotificationPresenter {
    /// Nothing can be done with a line: it ends at once.
    public let actions = AsyncStream<MessageAction> { $0.finish() }

    private let write: @Sendable (String) -> Void

    /// A presenter that hands its lines to `write`, which prints them unless told otherwise.
    public init(write: @escaping @Sendable (String) -> Void = { print($0, terminator: "") }) {
        self.write = write
    }

    /// Writes a line.
    public func present(_ notification: MessageNotification) {
        let sender = notification.sender.map { "\($0): " } ?? ""
        let room = notification.room.map { " (\($0))" } ?? ""
        let mark = notification.isRepeated ? " [repeated]" : ""
        write(Self.printable(sender + notification.text + room + mark) + "\n")
    }

    /// Nothing: what was written stays.
    public func withdraw(identifier: String) {}

    /// The text without what would move a terminal's cursor or change its state.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 })
        )
    }
}
