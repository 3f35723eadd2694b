import CallBasics
import SIP
import SIPTransport

/// From flags to an agent with its sockets.
extension SIPOptions {
    /// Who knows names.
    func names() throws -> NameLookup.Names {
        if let hosts {
            let bytes = try TextFile.read(InputPath.path(of: hosts), limit: 1 << 22)
            do {
                return .file(try ZoneFile(parsing: String(decoding: bytes, as: UTF8.self)))
            } catch {
                throw ToolFailure("\(InputPath.name(of: hosts)): \(error.message)")
            }
        }
        return .servers(try DNSClient(servers: try dns.map { [try $0.resolve()] } ?? []))
    }

    /// Has a call that rings for longer taken back, if so long was asked for; else after what `--timeout` says, or a minute.
    func limitRinging(of agent: inout AgentConfiguration, _ asked: Double?) {
        if let asked { agent.callPatience = .seconds(fraction: asked) }
    }

    /// An agent with its sockets, on the way to `target` or to its registrar.
    ///
    /// - Throws: `ToolFailure` when the target has no address, or the port is another's
    func open(
        towards target: SIPURI?,
        product: String = "media-tool",
        story: StoryRecorder? = nil,
        registers: Bool = true,
        headersOnRegister: Bool = false,
        takesTexts: Bool = false,
        _ change: (inout AgentConfiguration) -> Void = { _ in }
    ) async throws -> SIPParty {
        let names = try names()
        let user = try await SIPUser.named(by: self, registers: registers && !noRegister)
        do {
            return try await open(towards: target, product: product, story: story, user, names) { agent, account in
                change(&agent)
                if headersOnRegister { account?.headers = try registerHeaders() }
                // What nobody would read stays at the server; and for a group's core what is to be kept in its store.
                if !takesTexts || user?.isOfGroup == true { agent.textRefusal = 480 }
            }
        } catch {
            await user?.leave()
            throw error
        }
    }

    private func open(
        towards target: SIPURI?,
        product: String,
        story: StoryRecorder?,
        _ user: SIPUser?,
        _ names: NameLookup.Names,
        _ change: (inout AgentConfiguration, inout AccountConfiguration?) throws -> Void
    ) async throws -> SIPParty {
        let (local, peer, mediaHost) = try await way(towards: target, user?.account, names)
        let host = local.isIPv4 ? local.host : "[\(local.host)]"
        let anonymous = NameAddress(try SIPURI("sip:\(host)"))
        var account = user?.account
        var configuration = AgentConfiguration(identity: account?.identity ?? anonymous)
        configuration.transports = transports
        configuration.families = local.isIPv4 ? [.ipv4] : [.ipv6]
        configuration.product = product
        configuration.isReachableByTLS = tls.certificate != nil
        if let timeout {
            (configuration.requestPatience, configuration.callPatience) =
                (.seconds(fraction: timeout), .seconds(fraction: timeout))
        }
        try change(&configuration, &account)
        configuration.advertised = try advertise?.resolve()
        configuration.routes = try account?.routes ?? routes()
        let timers = TransactionTimers(t1: .milliseconds(t1), t2: .milliseconds(max(t1, 4000)))
        let agent = UserAgent(configuration, seed: .random(in: .min ... .max), timers: timers)
        let endpoint = SIPEndpoint(agent, security: tls.security()) { question in await names.answer(to: question) }
        let trace = try sipTrace.map { try SIPTrace(path: $0, hasSecrets: unredacted) }
        if trace != nil || story != nil {
            await endpoint.tap(showingSecrets: unredacted) { message in
                trace?.write(message)
                story?.note(message)
            }
        }
        if let story {
            await endpoint.watch {
                story.note($0, at: $1)
            } events: {
                story.note($0, at: $1)
            }
        }
        let bound: SocketAddress
        do {
            bound = try await endpoint.open(at: local, transports)
        } catch {
            await endpoint.close()
            trace?.close()
            throw ToolFailure("\(error)")
        }
        var handle: AccountHandle?
        if let made = account { handle = await endpoint.perform { agent, _ in agent.addAccount(made) } }
        let listening = await endpoint.listening
        return SIPParty(
            endpoint: endpoint,
            local: bound,
            account: handle,
            user: user,
            peer: peer,
            mediaHost: mediaHost,
            addresses: listening.map(SIPParty.text),
            trace: trace
        )
    }

    /// The own address, the server or peer that it leads to where it was not given, and where calls have their sound.
    private func way(
        towards target: SIPURI?,
        _ account: AccountConfiguration?,
        _ names: NameLookup.Names
    ) async throws -> (local: SocketAddress, peer: SocketAddress?, mediaHost: String) {
        if let local, !local.address.isUnspecified { return (local.address, nil, local.address.host) }
        var next = account?.registrar ?? account?.identity.uri ?? target
        if let first = try account?.routes.first ?? routes().first { next = first.uri }
        if let local {
            let way = try? await way(towards: next, from: local.address, names)
            return (local.address, nil, way?.local.host ?? Self.loopback(like: local.address))
        }
        guard let next else { return (.loopback(port: 0), nil, Self.loopback(like: .loopback(port: 0))) }
        let way = try await way(towards: next, from: nil, names)
        return (way.local, way.peer, way.local.host)
    }

    private static func loopback(like address: SocketAddress) -> String { address.isIPv4 ? "127.0.0.1" : "::1" }

    /// The own address towards whom a name stands for, of the family of `wildcard` where there is one.
    private func way(
        towards next: SIPURI?,
        from wildcard: SocketAddress?,
        _ names: NameLookup.Names
    ) async throws -> (local: SocketAddress, peer: SocketAddress) {
        var targets: [Target] = []
        if let next {
            var lookup = NameLookup(seed: 1)
            targets = try await lookup.resolve(next, by: names).targets
            if let wildcard { targets.removeAll { $0.address.isIPv4 != wildcard.isIPv4 } }
        }
        for target in targets {
            if let address = await SourceAddress.towards(target.address) { return (address, target.address) }
        }
        throw ToolFailure(
            "There is no way to \(targets.first.map { "\($0.address)" } ?? "the target"). Check the network."
        )
    }
}
