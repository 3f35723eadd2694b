internal import CallBasics
internal import SIP

/// A chat room at a conference server that this side is a member of, as far as its server has told.
///
/// Source: RFC 4579; RFC 4575
public struct PhoneRoom: Hashable, Sendable {
    /// How it stands with this side.
    public enum State: String, Hashable, Sendable {
        /// This side is a member.
        case created
        /// It is being left.
        case terminationPending
        /// It is over for this side: left, or removed from it, or it is no more.
        case terminated
        /// Its server did not take the leave; this side is still a member.
        case terminationFailed
    }

    /// Somebody in it.
    public struct Member: Hashable, Sendable {
        /// The address of the person, as the server writes it.
        public let address: String
        /// The name that is shown of them; nil where there is none.
        public let name: String?
        /// Whether they may add and remove others.
        public let isAdmin: Bool
        /// The addresses of the devices that they are in it with.
        public let devices: [String]
    }

    /// Where texts for it go.
    public let address: String
    /// The address of the account that is a member; nil for none.
    public let account: String?
    /// What it is about; nil where that is not told.
    public internal(set) var subject: String?
    /// Who is in it: who was invited, until its server has told more.
    public internal(set) var members: [Member]
    /// How it stands with this side.
    public internal(set) var state: State
    /// Whether its server tells changes of it; it may refuse that.
    public internal(set) var isFollowed = true
}

/// An invitation to a chat room.
///
/// Source: RFC 4579, section 5.5
public struct PhoneInvitation: Hashable, Sendable {
    /// The address of the room.
    public let room: String
    /// What it is about; nil where that is not told.
    public let subject: String?
    /// Who has invited, as far as the servers on the way let only the true one pass: a member, or the room itself.
    public let inviter: String
    /// The name that the inviter shows; it proves nothing.
    public let inviterName: String?
    /// Who else is invited; empty where that is not told.
    public let members: [String]
    /// The address of the account that is invited; nil for none.
    public let account: String?
}

extension PhoneInvitation {
    init(_ invite: RoomInvite, account: String?) {
        (room, subject, self.account) = (invite.address.description, invite.subject, account)
        (inviter, inviterName) = (invite.inviter.description, invite.inviterName)
        members = invite.members.map(\.description)
    }
}

extension PhoneRoom.Member {
    /// Somebody of whom nothing but the address is known.
    init(address: String) { (self.address, name, isAdmin, devices) = (address, nil, false, []) }

    init(_ member: ConferenceState.Member) {
        (address, name, isAdmin) = (member.address, member.name, member.roles.contains("admin"))
        devices = member.devices.map(\.address)
    }
}
