package import SharedCore

/// What a mailbox holds for its owner: a message, or an invitation to a chat room.
///
/// Shape: as JSON `{"callID", "messageID"?, "room"?, "from", "text"}`, or `{"room", "from", "subject"?}` for an invitation.
package enum MailboxContent: Sendable, Hashable {
    /// A message; its call-id is the key.
    case message(IncomingMessage)
    /// An invitation; the address of the room is the key.
    case invitation(RoomInvitation)

    /// What tells it from all else in a mailbox, and is acknowledged.
    package var key: String {
        switch self {
        case .message(let message): message.callID
        case .invitation(let invitation): invitation.address
        }
    }
}

extension MailboxContent: Codable {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case callID, messageID, room, from, text, subject
    }

    /// Reads a message where there is a call-id, and else an invitation.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let sender = try members.decode(String.self, forKey: .from)
        if let callID = try members.decodeIfPresent(String.self, forKey: .callID) {
            self = .message(
                IncomingMessage(
                    callID: callID,
                    messageID: try members.decodeIfPresent(String.self, forKey: .messageID),
                    room: try members.decodeIfPresent(String.self, forKey: .room),
                    sender: sender,
                    text: try members.decode(String.self, forKey: .text)
                )
            )
        } else {
            self = .invitation(
                RoomInvitation(
                    address: try members.decode(String.self, forKey: .room),
                    subject: try members.decodeIfPresent(String.self, forKey: .subject),
                    invitedBy: sender
                )
            )
        }
    }

    /// Writes the members that are there.
    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .message(let message):
            try members.encode(message.callID, forKey: .callID)
            try members.encodeIfPresent(message.messageID, forKey: .messageID)
            try members.encodeIfPresent(message.room, forKey: .room)
            try members.encode(message.sender, forKey: .from)
            try members.encode(message.text, forKey: .text)
        case .invitation(let invitation):
            try members.encode(invitation.address, forKey: .room)
            try members.encode(invitation.invitedBy, forKey: .from)
            try members.encodeIfPresent(invitation.subject, forKey: .subject)
        }
    }
}
