/// A notification of a message, or of an invitation to a chat room.
public struct MessageNotification: Sendable, Hashable, Identifiable {
    /// What a person can do with a notification.
    public enum Action: Sendable, Hashable, CaseIterable {
        /// Answer with a text.
        case reply
        /// Tell the sender that it was seen.
        case markAsSeen
    }

    /// Tells one from another: the call-id of the message, or the address of the room.
    ///
    /// A later notification replaces an earlier one with the same identifier.
    public var identifier: String
    /// Who wrote or invites; nil in the fallback, when nothing is known.
    public var sender: String?
    /// What is shown below the sender.
    public var text: String
    /// The chat room it belongs to.
    public var room: String?
    /// Whether it may have been shown before, by a process that ended before it could say so.
    public var isRepeated: Bool
    /// What can be done with it.
    public var actions: [Action]

    /// What tells one from another.
    public var id: String { identifier }

    /// A notification of these parts.
    public init(
        identifier: String,
        sender: String?,
        text: String,
        room: String? = nil,
        isRepeated: Bool = false,
        actions: [Action] = []
    ) {
        self.identifier = identifier
        self.sender = sender
        self.text = text
        self.room = room
        self.isRepeated = isRepeated
        self.actions = actions
    }

    /// The notification of a message, with all actions.
    public init(_ message: IncomingMessage, isRepeated: Bool = false) {
        self.init(
            identifier: message.callID,
            sender: message.sender,
            text: message.text,
            room: message.room,
            isRepeated: isRepeated,
            actions: Action.allCases
        )
    }

    /// The notification of an invitation; its text is the subject, or that there is one.
    public init(_ invitation: RoomInvitation, isRepeated: Bool = false, texts: NotificationTexts) {
        self.init(
            identifier: invitation.address,
            sender: invitation.invitedBy,
            text: invitation.subject ?? texts.invitation,
            room: invitation.address,
            isRepeated: isRepeated
        )
    }

    /// What is shown when the message did not come in time.
    public static func fallback(identifier: String, texts: NotificationTexts) -> MessageNotification {
        MessageNotification(identifier: identifier, sender: nil, text: texts.fallback)
    }
}
