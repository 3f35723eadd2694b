public import CallBasics
public import SIP

/// What a phone is.
public struct PhoneConfiguration: Sendable {
    /// What carries SIP.
    public enum Transport: Hashable, Sendable { case udp, tcp, tls }

    /// The own address, of one interface; port 0 takes any.
    ///
    /// Nil takes the address that leads out of this machine, 127.0.0.1 where none does, and any port; when another one leads
    /// out, the phone moves there.
    public var local: SocketAddress?
    /// What is listened to and called by; UDP comes first unless a message is too long for it (RFC 3261, section 18.1.1).
    ///
    /// `sips:` and `;transport=tls` go by TLS alone.
    public var transports: [Transport] = [.udp, .tcp, .tls]
    /// Whom TLS trusts; with a certificate, the phone is called by TLS, too: on the port behind that of `local`.
    public var security = SIPSecurity()
    /// What is offered and taken, the preferred one first.
    public var codecs = ["opus", "G722", "PCMU", "PCMA"]
    /// The audio per packet that is asked for, in ms; nil leaves it to the other side.
    public var packetTime: Int?
    /// What secures the sound of calls.
    public var mediaEncryption = MediaEncryption.none
    /// How calls find the way to the other side (ICE), where their sound is secured by DTLS; nil sends to where it says.
    public var ice: ICEConfiguration?
    /// The UUID that servers know this phone by over all its addresses and starts (RFC 5626, section 4.1); nil for another at
    /// each start.
    ///
    /// Processes that take turns as one phone have the same.
    public var instance: String?
    /// The name that others see of calls without an account.
    public var displayName: String?
    /// What User-Agent and Server say; nil says nothing.
    public var product: String?
    /// Whether calls go on to where the other side leads them (302); off, that is a refusal.
    ///
    /// Whoever is called then chooses who is called next, on this account.
    public var followsRedirections = true
    /// Whether the other side of a call may ask this one to call somebody else in its place (REFER, RFC 3515); off, that is
    /// refused (603).
    ///
    /// `PhoneCallEvent.transferRequested` tells of it, and nobody is called unless `PhoneCall.acceptTransfer` says so.
    public var takesTransfers = false
    /// How long an own call rings before it is taken back.
    public var callPatience = Duration.seconds(60)
    /// How long a received call rings before it is answered 486.
    public var ringPatience = Duration.seconds(45)

    /// Whether the network has to be woken, as mobile data that comes up on request: at each `Phone.enterForeground`, and behind a
    /// sleep of the machine, a TCP connection to the server of each account is made, given a few bytes, and closed.
    public var wakesNetwork = false

    /// A phone at the address that leads out of this machine.
    public init() {}

    var flowTransports: [Flow.Transport] {
        transports.map { transport in
            switch transport {
            case .udp: .udp
            case .tcp: .tcp
            case .tls: .tls
            }
        }
    }
}

/// Who one is at a server.
///
/// It shows no password: neither its description nor a dump of it.
public struct PhoneAccount: Sendable {
    /// The address of record, such as `sip:alice@example.org`, or `sips:` for TLS.
    public let address: String
    /// The name that others see.
    public var displayName: String?
    /// Proxies that requests go through, such as `sip:192.0.2.1;lr`.
    public var proxies: [String] = []
    /// The server to register at; nil for the domain of the address.
    public var registrar: String?
    /// How long to be registered, in seconds; it is refreshed in time, and the server may shorten it.
    public var expires: UInt32 = 3600
    /// How a push service wakes the phone for this account; nil when none does.
    public var push: PhonePush?
    private let credentials: Credentials?

    /// An account.
    ///
    /// - Parameters:
    ///   - address: The address of record.
    ///   - userName: The name for authentication; nil for the user part of the address.
    ///   - password: What proves it (digest, RFC 8760: MD5, SHA-256, SHA-512-256).
    /// - Throws: `invalid`
    public init(_ address: String, userName: String? = nil, password: String? = nil) throws(PhoneError) {
        try self.init(address, userName: userName, secret: password.map { PhoneSecret(password: $0) })
    }

    /// An account with a password or its hashes.
    ///
    /// - Throws: `invalid`
    public init(_ address: String, userName: String? = nil, secret: PhoneSecret?) throws(PhoneError) {
        let uri = try PhoneError.uri(address)
        self.address = address
        credentials = secret?.credentials(userName: userName ?? uri.user ?? "")
    }

    /// What the agent makes an account from.
    ///
    /// Throws: `invalid`
    package func configuration(instance: String) throws(PhoneError) -> AccountConfiguration {
        let identity = NameAddress(try PhoneError.uri(address), displayName: displayName)
        var made = AccountConfiguration(identity: identity)
        made.credentials = [credentials].compactMap(\.self)
        for proxy in proxies { made.routes.append(NameAddress(try PhoneError.uri(proxy))) }
        if let registrar { made.registrar = try PhoneError.uri(registrar) }
        (made.expires, made.instance) = (expires, instance)
        (made.push, made.wakesItself) = (push?.parameters, push?.wakesItself ?? false)
        return made
    }
}
