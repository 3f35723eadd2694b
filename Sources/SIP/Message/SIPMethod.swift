/// What a request asks for; names are told apart by case.
public struct SIPMethod: Hashable, Sendable, CustomStringConvertible {
    /// The name as it is written.
    public let name: String

    /// The method of a name; nil when it is not a token.
    public init?(_ name: String) {
        self.init(parsing: Bytes(name))
    }

    package init?(parsing bytes: Bytes) {
        guard bytes.isToken else { return nil }
        name = bytes.text
    }

    private init(known name: String) { self.name = name }

    /// The name.
    public var description: String { name }

    /// Begins or changes a call.
    public static let invite = SIPMethod(known: "INVITE")
    /// Acknowledges the final response to an INVITE.
    public static let ack = SIPMethod(known: "ACK")
    /// Ends a call.
    public static let bye = SIPMethod(known: "BYE")
    /// Takes an INVITE back that has no final response yet.
    public static let cancel = SIPMethod(known: "CANCEL")
    /// Tells a registrar where a user is.
    public static let register = SIPMethod(known: "REGISTER")
    /// Asks what the other side can do.
    public static let options = SIPMethod(known: "OPTIONS")
    /// Acknowledges a reliable provisional response (RFC 3262).
    public static let prack = SIPMethod(known: "PRACK")
    /// Changes a session without an INVITE (RFC 3311).
    public static let update = SIPMethod(known: "UPDATE")
    /// Carries information within a call (RFC 6086).
    public static let info = SIPMethod(known: "INFO")
    /// Asks the other side to contact a third one (RFC 3515).
    public static let refer = SIPMethod(known: "REFER")
    /// Asks to be told of events (RFC 6665).
    public static let subscribe = SIPMethod(known: "SUBSCRIBE")
    /// Tells of an event (RFC 6665).
    public static let notify = SIPMethod(known: "NOTIFY")
    /// Carries a text message (RFC 3428).
    public static let message = SIPMethod(known: "MESSAGE")
    /// Publishes the state of events (RFC 3903).
    public static let publish = SIPMethod(known: "PUBLISH")

    /// Those above; one that is none of them gets 501, whoever is asked.
    static let known: Set<SIPMethod> = [
        invite, ack, bye, cancel, register, options, prack, update, info, refer, subscribe, notify, message, publish,
    ]
}
