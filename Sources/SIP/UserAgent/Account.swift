package import CallBasics

/// What an account of a user agent is made from.
package struct AccountConfiguration: Sendable {
    /// The address of record, with the name that others see.
    package var identity: NameAddress
    package var credentials: [Credentials] = []
    /// Outbound proxies, or a way that requests have to go.
    package var routes: [NameAddress] = []
    /// The domain that is registered at; nil for that of the address.
    package var registrar: SIPURI?
    /// As `RegistrationConfiguration` has it.
    package var instance: String?
    package var expires: UInt32 = 3600
    /// How a push service wakes this side; nil when none does.
    @Boxed package var push: PushParameters?
    /// Whether this side refreshes in time by itself, also while it sleeps (RFC 8599, section 4.1.4).
    package var wakesItself = false
    /// Headers of its REGISTERs beside those that they have.
    package var headers: [RegistrationConfiguration.Header] = []

    package init(identity: NameAddress) { self.identity = identity }
}

extension AccountConfiguration {
    /// Says how this side is woken.
    func write(to wishes: inout RegistrationConfiguration) {
        wishes.push = push?.written ?? []
        wishes.featureTags = push != nil && wakesItself ? ["+sip.pnsreg"] : []
    }
}

/// An account with what is known of its server.
struct Account: Sendable {
    var configuration: AccountConfiguration
    var digest: DigestClient
    var registration: Registration?
    /// The server that knows the binding; requests go there first.
    var target: Target?
    /// The flow that the binding was made by.
    var flow: Flow?
    /// Since when.
    var flowTime = MediaTime.zero
    /// A flow that has lasted so long works, answers to pings or not.
    static let provingTime = Duration.seconds(120)
    /// The own address as the server sees it.
    var publicAddress: SocketAddress?
    /// How often that was another one, each time it was told.
    var addressChanges = 0
    static let addressChangeLimit = 3
    /// What Service-Route told.
    var serviceRoutes: [NameAddress] = []

    var identity: NameAddress { configuration.identity }
    var routes: [NameAddress] { serviceRoutes.isEmpty ? configuration.routes : serviceRoutes }

    /// The address that Contact says on a flow, when the server sees another one than the own.
    func publicAddress(on other: Flow) -> SocketAddress? {
        guard let flow, flow.transport == other.transport, flow.local == other.local else { return nil }
        return publicAddress
    }
}

extension UserAgent {
    /// Adds an account: who its calls come from, and what proves that.
    package mutating func addAccount(_ configuration: AccountConfiguration) -> AccountHandle {
        accounts.insert { _ in
            Account(configuration: configuration, digest: DigestClient(credentials: configuration.credentials))
        }
    }

    /// Registers an account, and keeps it registered.
    ///
    /// Throws: `badRequest` when there is no own address, or the address of record cannot be registered
    package mutating func register(_ handle: AccountHandle, at now: MediaTime) throws(SIPError) {
        try withRegistration(of: handle) { $0.register(at: now) }
        settle(handle, at: now)
        settle(at: now)
    }

    private mutating func withRegistration(of handle: AccountHandle, _ body: (inout Registration) -> Void)
        throws(SIPError)
    {
        guard var account = accounts[handle] else { throw Self.noAccount }
        var registration: Registration
        if let known = account.registration {
            registration = known
        } else {
            registration = Registration(try wishes(of: account), generator: SeededGenerator(seed: generator.next()))
        }
        body(&registration)
        account.registration = registration
        accounts[handle] = account
    }

    /// Where the server of an account is: its address once it was reached, else its name; nil for no account.
    package func server(of handle: AccountHandle) -> (host: String, port: UInt16)? {
        guard let account = accounts[handle] else { return nil }
        if let address = account.target?.address { return (address.host, address.port) }
        let known = account.configuration
        let uri = known.routes.first?.uri ?? known.registrar ?? known.identity.uri
        let transport: Flow.Transport = uri.goesByTLS ? .tls : .tcp
        return (uri.hostBytes.text.filter { $0 != "[" && $0 != "]" }, uri.port ?? transport.defaultPort)
    }

    /// Takes the own binding away, no other.
    package mutating func unregister(_ handle: AccountHandle, at now: MediaTime) {
        guard var account = accounts[handle] else { return }
        account.registration?.unregister(at: now)
        accounts[handle] = account
        settle(handle, at: now)
        settle(at: now)
    }

    /// Takes the binding away that a process before this one, of the same instance, may have made.
    ///
    /// Throws: as `register`
    package mutating func unregisterFormer(_ handle: AccountHandle, at now: MediaTime) throws(SIPError) {
        try withRegistration(of: handle) { $0.unregister(isOfFormer: true, at: now) }
        settle(handle, at: now)
        settle(at: now)
    }

    /// Forgets an account, and its rooms; what it has bound stays at the server until it runs out, unless it was taken away before.
    package mutating func removeAccount(_ handle: AccountHandle, at now: MediaTime) {
        for room in rooms(of: handle) { forget(room, at: now) }
        if let flow = accounts[handle]?.flow { flows.release(flow, at: now) }
        accounts.remove(handle)
        settle(at: now)
    }

    /// Registers anew now, as at a change of the network.
    package mutating func refresh(_ handle: AccountHandle, at now: MediaTime) {
        guard var account = accounts[handle] else { return }
        account.registration?.refresh(at: now)
        accounts[handle] = account
        settle(handle, at: now)
        settle(at: now)
    }

    /// Tells the server another way to wake this side, or none; an account that is registered is registered anew.
    package mutating func setPush(_ push: PushParameters?, of handle: AccountHandle, at now: MediaTime) {
        guard var account = accounts[handle] else { return }
        account.configuration.push = push
        if var wishes = account.registration?.configuration {
            account.configuration.write(to: &wishes)
            account.registration?.update(wishes, at: now)
        }
        accounts[handle] = account
        settle(handle, at: now)
        settle(at: now)
    }

    /// What an account knows of the realms that have asked it, for the next process.
    package func digestMemories(of handle: AccountHandle) -> [DigestMemory] { accounts[handle]?.digest.memories ?? [] }

    /// Lets an account go on where that of another process has ended.
    package mutating func recall(_ memories: [DigestMemory], of handle: AccountHandle) {
        guard var account = accounts[handle] else { return }
        account.digest.recall(memories)
        accounts[handle] = account
    }

    /// How the registration of an account stands; nil before its first wish.
    package func registration(of handle: AccountHandle) -> Registration? { accounts[handle]?.registration }

    /// What is bound; nil when nothing is.
    package func binding(of handle: AccountHandle) -> RegistrationBinding? { accounts[handle]?.registration?.binding }

    /// The own address that is to be told to who comes by the server of an account, or by a connection of this side, when that
    /// sees another than the own.
    func publicAddress(on flow: Flow) -> SocketAddress? {
        let account = accounts.names.lazy.compactMap { accounts[$0] }.first { $0.flow == flow }
        return account?.publicAddress(on: flow) ?? flows.ownEnd(of: flow)
    }

    /// The address that the server sees; nil when it told none.
    package func publicAddress(of handle: AccountHandle) -> SocketAddress? { accounts[handle]?.publicAddress }

    private func wishes(of account: Account) throws(SIPError) -> RegistrationConfiguration {
        let identity = account.identity.uri
        let domain = "\(identity.scheme == .sips ? "sips" : "sip"):\(identity.hostBytes.text)"
        var registrar = try SIPURI(parsing: Bytes(domain))
        if let wished = account.configuration.registrar { registrar = wished }
        // The flow's Contact takes its place when the request leaves.
        var wishes = RegistrationConfiguration(
            addressOfRecord: identity,
            registrar: registrar,
            contact: try SIPURI(parsing: Bytes("sip:unbound.invalid"))
        )
        (wishes.instance, wishes.expires) = (account.configuration.instance, account.configuration.expires)
        (wishes.routes, wishes.headers) = (account.configuration.routes, account.configuration.headers)
        account.configuration.write(to: &wishes)
        return wishes
    }

    /// Does what the registration asks for.
    mutating func settle(_ handle: AccountHandle, at now: MediaTime) {
        while var account = accounts[handle], let output = account.registration?.poll() {
            accounts[handle] = account
            switch output {
            case .send(let request):
                _ = begin(request, .registration(handle), account: handle, at: now)
            case .state(_, let new, let reason):
                if new == .cleared, let flow = account.flow {
                    flows.release(flow, at: now)
                    account.flow = nil
                    accounts[handle] = account
                }
                tell(.registration(handle, new, reason))
            case .warning: break
            }
        }
        accounts.setDeadline(of: handle, to: accounts[handle]?.registration?.deadline)
    }

    // MARK: What comes back

    mutating func receive(
        _ response: SIPMessage,
        ofRegistration handle: AccountHandle,
        _ errand: Errand,
        at now: MediaTime
    ) {
        guard var account = accounts[handle], let status = response.statusCode, status >= 200 else { return }
        account.registration?.receive(response, at: now)
        if status < 300, let flow = errand.flow, let binding = account.registration?.binding {
            account.target = errand.targets?.current ?? account.target
            account.serviceRoutes = binding.serviceRoutes
            keep(flow, binding, &account, at: now)
        }
        accounts[handle] = account
        settle(handle, at: now)
        if status < 300, isUsable(handle) { for room in rooms(of: handle) { followOn(room, at: now) } }
    }

    /// Whether an account is registered, or does not want to be.
    func isUsable(_ handle: AccountHandle) -> Bool { accounts[handle]?.registration.map { $0.binding != nil } ?? true }

    /// Keeps the flow of a binding alive; where the server sees another address, the binding is made anew with that.
    private mutating func keep(
        _ flow: Flow,
        _ binding: RegistrationBinding,
        _ account: inout Account,
        at now: MediaTime
    ) {
        if let former = account.flow, former != flow { flows.release(former, at: now) }
        if account.flow != flow { account.flowTime = now }
        account.flow = flow
        _ = flows.keep(
            flow,
            KeepAlive.Agreement(flowTimerSeconds: binding.flowTimer, hasOutbound: binding.isOutbound),
            at: now
        )
        let former = account.publicAddress
        let isListening = flow.transport != .tls || configuration.isReachableByTLS
        account.publicAddress = binding.seen(on: flow, isListening: isListening)
        guard configuration.advertised == nil, account.publicAddress != former else {
            return account.addressChanges = 0
        }
        // A server that sees another address each time hears the next one with the next refresh.
        account.addressChanges += 1
        if account.addressChanges <= Account.addressChangeLimit { account.registration?.refresh(at: now) }
    }

    mutating func handleFailedRegistration(
        of handle: AccountHandle,
        _ failure: RequestFailure,
        _ errand: Errand,
        at now: MediaTime
    ) {
        guard var account = accounts[handle], let number = try? errand.request.cSeq()?.number else { return }
        var cause = TransactionFailure.unreachable
        if case .unanswered(.timeout, _) = failure { cause = .timeout }
        account.target = nil
        account.registration?.fail(cause, number: number, at: now)
        accounts[handle] = account
        tell(.registrationFailed(handle, failure))
        settle(handle, at: now)
    }

    /// A flow carries nothing any more: who was registered by it registers anew.
    mutating func handleDeath(of flow: Flow, _ end: FlowEnd, isProven: Bool, at now: MediaTime) {
        for handle in accounts.names where accounts[handle]?.flow == flow {
            tell(.flowEnded(handle, flow, end))
            accounts[handle]?.flow = nil
            guard var account = accounts[handle] else { continue }
            // That the own address has gone tells nothing of the server.
            let isProven = isProven || end == .addressGone || now - account.flowTime >= Account.provingTime
            account.registration?.replaceFlow(isProven: isProven, at: now)
            accounts[handle] = account
            settle(handle, at: now)
        }
    }

    mutating func handleTimeout(of handle: AccountHandle, at now: MediaTime) {
        guard var account = accounts[handle] else { return }
        account.registration?.handleTimeout(at: now)
        accounts[handle] = account
        settle(handle, at: now)
    }

    static var noAccount: SIPError { SIPError(.badRequest, "There is no such account. Add it first.") }
}

extension RegistrationBinding {
    /// The own address as the server saw it; nil when it is the flow's own.
    ///
    /// Over a connection the port is another one than that of the listener; only another host means something.
    /// Where nobody listens, it is the own end of the connection, which is all that the server can send by.
    func seen(on flow: Flow, isListening: Bool) -> SocketAddress? {
        guard isListening else {
            return receivedPort.flatMap { SocketAddress(host: receivedHost ?? flow.local.host, port: $0) }
        }
        guard let host = receivedHost, let port = receivedPort,
            let seen = SocketAddress(host: host, port: port)
        else {
            guard flow.transport == .udp, let port = receivedPort, port != flow.local.port else { return nil }
            return flow.local.with(port: port)
        }
        let isSame = seen.with(port: 0) == flow.local.with(port: 0)
        if flow.transport == .udp { return isSame && port == flow.local.port ? nil : seen }
        return isSame ? nil : seen
    }
}
