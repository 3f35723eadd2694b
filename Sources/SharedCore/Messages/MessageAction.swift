/// What a person did with a notification, to be carried out by the core that runs.
public struct MessageAction: Codable, Hashable, Sendable {
    /// What is to be done.
    public enum Kind: Codable, Hashable, Sendable {
        /// Answer the sender with this text.
        case reply(String)
        /// Tell the sender that the message was seen.
        case markAsSeen
    }

    /// The action's own identifier, by which the far end knows one that is repeated.
    public let id: String
    /// The message it is about.
    public let callID: String
    /// What is to be done.
    public let kind: Kind

    /// An action.
    public init(id: String, callID: String, kind: Kind) {
        self.id = id
        self.callID = callID
        self.kind = kind
    }
}
