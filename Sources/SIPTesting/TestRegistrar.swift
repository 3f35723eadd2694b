internal import CallBasics
public import SIP
internal import SIPTransport

/// A registrar and proxy of one domain in the process of a test: phones register at it, and reach each other through it.
///
///     let registrar = try await TestRegistrar(passwords: ["alice": "wonderland", "bob": "builder"])
///     var account = try PhoneAccount(registrar.address(of: "alice"), password: "wonderland")
///     account.proxies = [registrar.proxy]
///
/// It listens at a port of 127.0.0.1, by UDP and TCP, and challenges by SHA-256 and MD5. It stays on the way of calls.
/// Thread: any.
/// Source: RFC 3261, sections 10 and 16
public final class TestRegistrar: Sendable {
    /// What happens at a registrar.
    public enum Event: Hashable, Sendable {
        /// A user is at a contact for so many seconds from now; 0 when not any more.
        case binding(user: String, contact: String, seconds: Int)
        /// The phone of a user is to be woken, for a call or, else, a text: hand its push to the phone.
        case push(user: String, callID: String, from: String, isCall: Bool)
        /// A call waits for a phone that was woken.
        case parked(user: String, callID: String)
        /// The phone came, or did not in time, and the call goes on, or is over.
        case unparked(user: String, callID: String, cameInTime: Bool)
        /// A text is kept for a user who is away, or was fetched by one who is back.
        case kept(user: String, callID: String)
        case fetched(user: String, callID: String)
    }

    /// What it does wrong on purpose, and to which messages; the first that fits is followed.
    public typealias Fault = ServerRule

    /// The host of its users' addresses.
    public let domain: String
    /// What an account names as its proxy, for nobody else knows where the domain is: `sip:127.0.0.1:PORT;lr`.
    public let proxy: String
    /// What happens, for one reader.
    public let events: AsyncStream<Event>
    private let endpoint: SIPEndpoint<SIPServer>

    /// Opens a registrar.
    ///
    /// - Parameters:
    ///   - domain: The host of its users' addresses.
    ///   - passwords: Its users with their passwords; nil when everybody is one, and nobody is asked.
    ///   - wakesPhones: Whether phones that register with push parameters are woken: a call waits 30 s for one, a text is kept.
    ///   - faults: What it does wrong.
    /// - Throws: `network`; `invalid` when the domain is no host
    public init(
        domain: String = "example.test",
        passwords: [String: String]? = nil,
        wakesPhones: Bool = false,
        faults: [Fault] = []
    ) async throws(TestingError) {
        guard try TestingError.uri("sip:\(domain)").host == domain else {
            throw TestingError(.invalid, "\(domain) is no host. Give one such as example.test.")
        }
        var configuration = ServerConfiguration(domain: domain)
        configuration.users = passwords.map { users in
            users.reduce(into: [:]) { made, user in
                made[user.key] = ServerUser(Credentials(userName: user.key, password: user.value))
            }
        }
        configuration.push = wakesPhones ? PushSettings() : nil
        configuration.script = faults
        var limits = TransactionTable.Limits()
        // All phones of a test have one address.
        limits.perSource = limits.received
        let server = SIPServer(configuration, seed: .random(in: .min ... .max), transactionLimits: limits)
        endpoint = SIPEndpoint(server) { _ in .failure }
        self.domain = domain
        let address = try await endpoint.openOnLoopback()
        proxy = "sip:\(address);lr"
        let told = endpoint.events
        let (events, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(4096))
        self.events = events
        Task {
            for await event in told { continuation.yield(Event(event)) }
            continuation.finish()
        }
    }

    /// The address of record of a user.
    public func address(of user: String) -> String { "sip:\(user)@\(domain)" }

    /// How many contacts are registered.
    public var bindingCount: Int {
        get async { await endpoint.perform { server, _ in server.counts.bindings } }
    }

    /// Closes its sockets; `events` ends.
    public func close() async { await endpoint.close() }
}

extension TestRegistrar.Event {
    init(_ event: ServerEvent) {
        switch event {
        case .binding(let user, let contact, let seconds, _):
            self = .binding(user: user, contact: contact, seconds: Int(seconds))
        case .push(let push):
            self = .push(user: push.user, callID: push.callID, from: push.from, isCall: push.kind == .voip)
        case .parked(let user, let id): self = .parked(user: user, callID: id)
        case .released(let user, let id): self = .unparked(user: user, callID: id, cameInTime: true)
        case .gaveUp(let user, let id): self = .unparked(user: user, callID: id, cameInTime: false)
        case .kept(let user, let id): self = .kept(user: user, callID: id)
        case .fetched(let user, let id): self = .fetched(user: user, callID: id)
        }
    }
}
