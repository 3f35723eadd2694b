/// What a push says: who is waiting, and for what.
///
/// Shape: a JSON object, as push services deliver it; each member may stand in it or in its member `aps`. Members are
/// `call-id`, `from-uri`, `display-name` and `chat-room-addr`, also with `_` in their names; others are passed over.
public struct PushPayload: Hashable, Sendable {
    /// The Call-ID of the INVITE; nil where the push does not say it.
    public var callID: String?
    /// The address of who calls.
    public var from: String?
    /// The name that it shows of itself.
    public var displayName: String?
    /// The address of a chat room, in the push of an invitation; nil in others.
    public var room: String?

    /// A push of a call, of which nothing has to be known.
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
        func text(_ name: String) -> String? {
            for container in [outer, inner].compactMap(\.self) {
                for name in [name, String(name.map { $0 == "-" ? "_" : $0 })] {
                    let value = try? container.decode(String.self, forKey: Key(stringValue: name))
                    if let value, !value.isEmpty, value.utf8.count <= Self.longest { return value }
                }
            }
            return nil
        }
        (callID, from, displayName) = (text("call-id"), text("from-uri"), text("display-name"))
        room = text("chat-room-addr")
    }
}
