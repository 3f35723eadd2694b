/// A message as a service received it.
public struct IncomingMessage: Codable, Hashable, Sendable {
    /// The identifier that the push for it holds; that of a SIP message may be shared by several.
    public let callID: String
    /// The sender's own identifier of the message, when it has one: two of one sender with the same are one message sent twice.
    public let messageID: String?
    /// The address of the chat room it was sent to; nil outside rooms.
    public let room: String?
    /// Who sent it.
    public let sender: String
    /// What it says.
    public let text: String
    /// What tells it from others of the same call-id, where it has no `messageID`; nil when the call-id alone does.
    public var distinction: String?
    /// The address of the account that it came for; nil where there is but one.
    public var account: String?
    /// The receipts that its sender asked for.
    public var wantedReceipts: Set<MessageReceipt.Kind> = []

    /// A message.
    public init(callID: String, messageID: String? = nil, room: String? = nil, sender: String, text: String) {
        self.callID = callID
        self.messageID = messageID
        self.room = room
        self.sender = sender
        self.text = text
    }

    /// What no other message has.
    var key: String {
        if let messageID { return "id \(messageID) \(sender)" }
        return "call \(callID) \(distinction ?? "")"
    }
}
