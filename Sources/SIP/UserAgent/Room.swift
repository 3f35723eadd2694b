internal import CallBasics

/// Names a room of a user agent; after its end the name stays unused.
package struct RoomHandle: SlotName {
    package let slot: Int
    package let serial: UInt64

    package init(slot: Int, serial: UInt64) { (self.slot, self.serial) = (slot, serial) }
}

/// How a room stands.
///
///     createRoom ──► creationPending ──► created ──leaveRoom──► terminationPending ──► terminated
///                          └─► creationFailed                          └─► terminationFailed, which may be left again
///     INVITE of its server ──► invited ──acceptRoom──► created ──BYE of its server──► terminated
package enum RoomStage: Hashable, Sendable {
    /// Its server has invited this side: accept or refuse it.
    case invited
    case creationPending
    case created
    /// Its server refused to make it, or did not answer; it is gone.
    case creationFailed(CallEnd)
    case terminationPending
    /// This side has left it, or was removed, or it is over; it is gone.
    case terminated
    /// Its server did not take the end, by this status, or did not answer; this side is still a member.
    case terminationFailed(status: Int?)
    /// It was forgotten here, and its server was not told.
    case forgotten
}

/// An INVITE to a room; nothing rings.
///
/// Source: RFC 4579, section 5.5
package struct RoomInvite: Hashable, Sendable {
    /// The address of the room, without what names its server's own device.
    package let address: SIPURI
    /// What it is about; nil where that is not told.
    package let subject: String?
    /// Who sent the INVITE: a member, or the room itself.
    package let inviter: SIPURI
    package let inviterName: String?
    /// Who else is invited; empty where that is not told.
    package let members: [SIPURI]

    /// Reads an INVITE; nil when it is one to a call.
    ///
    /// Throws: `badRequest` when a header, or the list, breaks its grammar
    init?(_ request: SIPMessage) throws(SIPError) {
        guard let contact = try request.firstContact(), contact.isTextFocus, let from = try request.from(),
            try request.sessionDescription() == nil
        else { return nil }
        address = contact.uri.roomAddress.detached
        subject = request.first(.subject).flatMap { $0.isEmpty ? nil : $0.text }
        (inviter, inviterName) = (from.uri.without("gr").detached, from.displayName?.text)
        let parts = request.bodyBytes.isEmpty ? [] : try request.bodyParts()
        let list = parts.first { $0.isPlain && $0.type?.isNamed(Bytes(ResourceList.type)) == true }
        members = try list.map { part throws(SIPError) in try ResourceList(parsing: part.bytes).addresses } ?? []
    }
}

/// What happens to a room.
package enum RoomEvent: Sendable {
    /// Its server has invited this side: accept or refuse it.
    case invited(RoomInvite)
    case stage(RoomStage)
    /// What is known of it has changed.
    case changed(ConferenceState)
    /// Its server tells no more of it, until this side is invited anew.
    case unfollowed(SubscriptionEnd)
}

/// A chat room at a conference server, with its call and its subscription.
///
/// The call has no session. It may be lost, as with a process or the network, and this side stays a member.
/// Source: RFC 4579; RFC 4575
struct Room: Sendable {
    /// How long its server may take to tell all before it is asked once more.
    static let patience = Duration.seconds(32)

    let account: AccountHandle?
    /// Nil until its server has named it.
    var address: SIPURI?
    var stage: RoomStage
    /// The call that joins it; nil where that is lost.
    var call: CallHandle?
    var subscription: SubscriptionHandle?
    @Boxed var conference: ConferenceState? = ConferenceState()
    /// When all was asked for.
    var askedAt: MediaTime?
    /// Whether the BYE that is on its way is of a call that its server may have lost.
    var hasSaidFarewell = false

    /// What it is found by: its user and host, and the parameter by which a server tells rooms of one user apart.
    static func key(_ uri: SIPURI) -> ByteKey {
        var text = Array(uri.userBytes ?? []) + [.at]
        text += uri.hostBytes.map(\.lowercase)
        if let port = uri.port { text += ":\(port)".utf8 }
        if let id = uri.parameters.value("conf-id") { text += [.semicolon] + id }
        return ByteKey(bytes: text)
    }
}

extension NameAddress {
    /// Whether it is the Contact of a chat room.
    var isTextFocus: Bool { parameters.contains("isfocus") && parameters.contains("text") }

    /// The same with the feature tag of those who chat (RFC 3840).
    var withText: NameAddress {
        var contact = self
        contact.parameters.set("text", to: nil)
        return contact
    }
}

extension SIPURI {
    /// The address of a room, or of a person, by that of a device of it.
    var roomAddress: SIPURI { without("gr") }
}
