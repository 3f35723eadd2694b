/// What a push says: who is waiting, for which phone.
///
/// Shape: a JSON object, as push services deliver it; each member may stand in it or in its member `aps`. Members are
/// `call-id` or `call_id`, `from-uri`, `display-name`, `uuid`, `loc-key`, and `chat-room-addr` or `chat_room_addr`;
/// others are passed over.
/// Source: liblinphone's payload (pn-msg-str and its like)
public struct PushPayload: Hashable, Sendable {
    /// The Call-ID of the INVITE or MESSAGE; nil where the push does not say it.
    public var callID: String?
    /// The address of who calls or writes.
    public var from: String?
    /// The name that it shows of itself.
    public var displayName: String?
    /// The key of the text that is shown when nothing else comes.
    public var textKey: String?
    /// The chat room that one is invited to.
    public var room: String?

    /// A push of a call, or of anything when nothing is known.
    public init(callID: String? = nil, from: String? = nil, displayName: String? = nil) {
        (self.callID, self.from, self.displayName) = (callID, from, displayName)
    }
}

extension PushPayload: Decodable {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Text beyond this is no address and no identifier.
    private static let longest = 1024

    /// Reads a payload; what is of another type than text, or too long, is passed over.
    public init(from decoder: any Decoder) throws {
        let outer = try decoder.container(keyedBy: Key.self)
        let inner = try? outer.nestedContainer(keyedBy: Key.self, forKey: Key(stringValue: "aps"))
        func text(_ names: String...) -> String? {
            for container in [outer, inner].compactMap(\.self) {
                for name in names {
                    let value = try? container.decode(String.self, forKey: Key(stringValue: name))
                    if let value, !value.isEmpty, value.utf8.count <= Self.longest { return value }
                }
            }
            return nil
        }
        callID = text("call-id", "call_id")
        from = text("from-uri", "from_uri")
        displayName = text("display-name", "display_name")
        textKey = text("loc-key", "loc_key")
        room = text("chat-room-addr", "chat_room_addr")
    }
}
