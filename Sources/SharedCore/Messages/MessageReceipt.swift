/// What the sender of a message is to be told: that it is in the store, or that a person has seen it.
///
/// It is queued in the transaction of the message, or of the action, so that it is not lost with a process.
/// Source: RFC 5438
public struct MessageReceipt: Hashable, Sendable, Identifiable {
    /// What has become of the message.
    public enum Kind: String, Codable, Hashable, Sendable, CaseIterable {
        /// It is in the store.
        case delivered
        /// A person has seen it.
        case displayed
    }

    /// Tells one from another in its store.
    public let id: Int64
    /// What is told.
    public let kind: Kind
    /// The sender's identifier of the message.
    public let messageID: String
    /// Who is told: the sender, or the room.
    public let recipient: String
    /// The address of the account that tells it; nil where there is but one.
    public let account: String?
}
