/// An invitation to a chat room, as a service received it.
public struct RoomInvitation: Codable, Hashable, Sendable {
    /// The address of the room.
    public let address: String
    /// What the room is about; nil when nobody said.
    public let subject: String?
    /// Who invited.
    public let invitedBy: String

    /// An invitation.
    public init(address: String, subject: String? = nil, invitedBy: String) {
        self.address = address
        self.subject = subject
        self.invitedBy = invitedBy
    }
}
