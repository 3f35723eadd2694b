/// A message as a service received it.
public struct IncomingMessage: Codable, Hashable, Sendable {
    /// The identifier that the push for it holds; no two messages share one.
    public let callID: String
    /// The sender's own identifier of the message, when it has one: two with the same are one message sent twice.
    public let messageID: String?
    /// The address of the chat room it was sent to; nil outside rooms.
    public let room: String?
    /// Who sent it.
    public let sender: String
    /// What it says.
    public let text: String

    /// A message.
    public init(callID: String, messageID: String? = nil, room: String? = nil, sender: String, text: String) {
        self.callID = callID
        self.messageID = messageID
        self.room = room
        self.sender = sender
        self.text = text
    }
}
