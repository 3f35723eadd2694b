/// What a person did with a notification, to be performed by the core that runs.
///
/// Shape: `{"id", "callID", "kind": "reply", "text"}` or `{"id", "callID", "kind": "markAsSeen"}` as JSON.
public struct MessageAction: Sendable, Hashable, Identifiable {
    /// What is to be done.
    public enum Kind: Sendable, Hashable {
        /// Answer the message with this text.
        case reply(String)
        /// Tell the sender that the message was seen.
        case markAsSeen
    }

    /// Tells one action from another; the same when an action is performed again.
    public var id: String
    /// The message it answers.
    public var callID: String
    /// What is to be done.
    public var kind: Kind

    /// An action of these parts.
    public init(id: String, callID: String, kind: Kind) {
        self.id = id
        self.callID = callID
        self.kind = kind
    }
}

extension MessageAction: Codable {
    private enum CodingKeys: CodingKey {
        case id, callID, kind, text
    }

    private enum KindName: String, Codable {
        case reply, markAsSeen
    }

    /// Reads an action in the shape named above.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        id = try members.decode(String.self, forKey: .id)
        callID = try members.decode(String.self, forKey: .callID)
        kind =
            switch try members.decode(KindName.self, forKey: .kind) {
            case .reply: .reply(try members.decode(String.self, forKey: .text))
            case .markAsSeen: .markAsSeen
            }
    }

    /// Writes the action in the shape named above.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(callID, forKey: .callID)
        switch kind {
        case .reply(let text):
            try members.encode(KindName.reply, forKey: .kind)
            try members.encode(text, forKey: .text)
        case .markAsSeen:
            try members.encode(KindName.markAsSeen, forKey: .kind)
        }
    }
}
