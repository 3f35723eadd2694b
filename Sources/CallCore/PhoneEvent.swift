public import CallBasics

/// What happens to a phone by itself.
public enum PhoneEvent: Sendable {
    /// Somebody calls: `ring`, and `answer` or `reject`; with a provider, that decides.
    case incoming(PhoneCall)
    /// The call screen has made a call, or a transfer that was accepted.
    case outgoing(PhoneCall)
    /// A call was handed over by its other side: another one has come and taken its place, and the former ends. It was not asked
    /// for: the sound of the former one goes on in it, held and muted as that was, and its report covers both.
    case replaced(PhoneCall, by: PhoneCall)
    /// The account of this address is registered, for the first time or again.
    case registered(String)
    /// It is not, and why.
    case unregistered(String, PhoneError)
    /// Another address leads out of the machine: the phone listens there, registers its accounts anew, and has the sound of its calls
    /// sent there (re-INVITE).
    case moved(SocketAddress)
    /// A call is over, as a list of calls shows it.
    case logged(CallLogEntry)
    /// A text has come; not told to a phone whose texts somebody keeps.
    case text(PhoneText)
    /// This side was invited to a chat room, which it is in from now on: `Phone.leaveRoom` if that is not wanted. Not told to a phone
    /// whose invitations somebody keeps.
    case invitation(PhoneInvitation)
    /// A chat room was made or taken up, or its members, its subject or its state have changed.
    case room(PhoneRoom)
    /// What becomes of a text that `Phone.queueText` has named so.
    case textChanged(id: String, TextState)
    /// Somebody is writing a text to this side, or not any more.
    case composing(from: String, isActive: Bool)
    /// Who got a text of this side tells what became of it.
    case receipt(TextReceipt)
}
