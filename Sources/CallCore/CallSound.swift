internal import CallBasics
package import MediaEngine
internal import MediaTransport
package import SDP
internal import Synchronization

/// The seam between signalling and sound: the ports of one SIP call, what it offers, and the engine's call once both sides
/// have agreed.
package actor CallSound {
    /// What carries its packets.
    package enum Way: Sendable {
        case ports(MediaReservation)
        case link(MemoryLink)

        var addresses: (local: SocketAddress, control: SocketAddress?) {
            switch self {
            case .ports(let ports): (ports.localAddress, ports.localControlAddress)
            case .link(let link): (link.localAddress, nil)
            }
        }

        var network: CallNetwork {
            switch self {
            case .ports(let ports): .reserved(ports)
            case .link(let link): .link(link, local: link.localAddress)
            }
        }

        func release() { if case .ports(let ports) = self { ports.release() } }
    }

    /// What is offered, or answered with.
    package nonisolated let session: SessionConfiguration
    private let engine: CallEngine
    private var way: Way
    private let ice: ICEConfiguration?
    /// What a relay has given for it, until a call has the ports.
    private var side: ICESide?
    private let ends: @Sendable (inout CallConfiguration) -> Void
    private let stream: AudioStreamConfiguration
    /// What is offered instead, one after the other, where that is not acceptable.
    package nonisolated let spareSessions: [SessionConfiguration]
    /// What may secure it, and what does from the first agreement on.
    private nonisolated let keyings: [MediaKeying]
    private nonisolated let chosen: Mutex<MediaKeying?>
    /// The suite that secures it now, and the certificate that was proved.
    private var proof: (suite: SRTPSuite, fingerprint: Fingerprint?)?
    /// How often it was secured anew: behind new keys it is another source, whose cycles nobody has to know (RFC 4568, section 7.1.4).
    private var sourceNumber = 0
    package private(set) var call: Call?
    package private(set) var agreed: AgreedMedia?
    private var change: Task<Void, any Error>?
    /// How often it was to move, and whether it is to end: then nobody waits for what servers say.
    private var moveCount = 0
    private var isEnding = false
    /// Where ICE has found the other side's ports, and who waits for them to be found elsewhere.
    private var found: [ICEComponent: Route] = [:]
    private var finder: Task<Void, Never>?
    /// Tells each time that nothing gets through any more, and `findWay` may help; it ends with the sound.
    package nonisolated let losses: AsyncStream<Void>
    private let lossTeller: AsyncStream<Void>.Continuation

    /// Opens the ports of a call on an own address.
    ///
    /// - Parameters:
    ///   - engine: Makes the call.
    ///   - host: The own address.
    ///   - codecs: The preferred one first.
    ///   - packetTime: Audio per packet that is asked for, in ms.
    ///   - encryption: What secures it.
    ///   - ice: How the way is found (ICE), where it is secured by DTLS; nil sends to where the other side says.
    ///   - isPrivate: Whether nobody on the way reads the descriptions: then keys are offered in them where others are preferred.
    ///   - ends: Says where the call's sound comes from and goes to.
    /// - Throws: `EngineError` when there is no port or no such codec, `PhoneError` when there can be no certificate
    package init(
        _ engine: CallEngine,
        at host: String,
        codecs: [String],
        packetTime: Int?,
        encryption: MediaEncryption = .none,
        ice: ICEConfiguration? = nil,
        isPrivate: Bool = false,
        _ ends: @escaping @Sendable (inout CallConfiguration) -> Void
    ) async throws {
        let address = SocketAddress(host: host, port: 0) ?? .loopback(port: 0)
        let reservation = try await engine.reserve(address, hasControlPort: true)
        var side: ICESide?
        if let ice {
            let asked = await ICESide(ice, of: reservation)
            asked.warn(engine, ice)
            side = asked
        }
        try self.init(
            engine,
            .ports(reservation),
            codecs: codecs,
            packetTime: packetTime,
            encryption: encryption,
            ice: ice,
            side: side,
            isPrivate: isPrivate,
            ends
        )
    }

    /// The sound of a call whose ports, or whose network in memory, are there.
    ///
    /// - Parameters: As above; `side` is this side of ICE, by what `ice` says.
    /// - Throws: `EngineError` when there is no such codec, `PhoneError` when there can be no certificate
    package init(
        _ engine: CallEngine,
        _ way: Way,
        codecs: [String],
        packetTime: Int?,
        encryption: MediaEncryption = .none,
        ice: ICEConfiguration? = nil,
        side: ICESide? = nil,
        isPrivate: Bool = false,
        _ ends: @escaping @Sendable (inout CallConfiguration) -> Void
    ) throws {
        var stream = AudioStreamConfiguration()
        stream.encoder.ptime = packetTime.map { .milliseconds($0) }
        var formats = try engine.registry.payloadFormats(for: codecs, encoder: stream.encoder)
        if let events = Self.commonEvents(beside: formats) { formats.append(events) }
        let (local, control) = way.addresses
        var medium = MediaConfiguration(port: local.port, formats: formats)
        medium.controlPort = control?.port
        medium.packetTime = packetTime
        let keyings = try MediaKeying.all(encryption, side)
        self.keyings = keyings
        chosen = Mutex(keyings.count == 1 ? keyings[0] : nil)
        let sessions = keyings.indices.compactMap { first -> SessionConfiguration? in
            if first > 0, case .sdes = keyings[first], !isPrivate { return nil }
            var offered = medium
            keyings.secure(&offered, offering: first)
            return SessionConfiguration(address: local.host, media: [offered])
        }
        (session, spareSessions) = (sessions[0], Array(sessions.dropFirst()))
        (self.engine, self.way, self.ice, self.side, self.stream, self.ends) = (engine, way, ice, side, stream, ends)
        (losses, lossTeller) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// What is offered, or answered with, to somebody who takes the place of the other side: by keys and ICE credentials that the one
    /// before has not.
    ///
    /// - Parameter session: What is described to the other side now; nil for what was at first.
    /// - Returns: The same but for what secures it.
    package nonisolated func sessionForAnother(like session: SessionConfiguration? = nil) -> SessionConfiguration {
        var session = session ?? self.session
        (keying.map { [$0] } ?? keyings).secure(&session.media[0])
        if let told = session.media[0].ice?.credentials {
            var generator = SystemRandomNumberGenerator()
            session.media[0].ice?.credentials = told.renewed(using: &generator)
        }
        return session
    }

    /// Has the next description of `session` hold it with music, or resume it, and tell no address that has gone since the last one.
    package nonisolated func describe(_ session: inout SessionConfiguration, isHeld: Bool) {
        session.hold = isHeld ? .withMusic : nil
        for keying in keyings { keying.forgetLostRelays(&session.media[0]) }
    }

    /// What secures it, or that nothing does; nil before the first agreement where there is a choice.
    private nonisolated var keying: MediaKeying? { chosen.withLock { $0 } }

    /// What secures it as far as is known: nothing before the first agreement where there is a choice.
    package nonisolated var encryption: MediaEncryption { keying?.encryption ?? .none }

    /// Telephone events of 8000 Hz, which some phones have with any codec, where the codecs' own are of other rates.
    private static func commonEvents(beside formats: [PayloadFormat]) -> PayloadFormat? {
        let name = "telephone-event"
        let rates = formats.filter { $0.encodingName == name }.map(\.clockRate)
        guard !rates.isEmpty, !rates.contains(8000) else { return nil }
        let taken = Set(formats.map(\.payloadType))
        guard let number = (UInt8(96)..<128).first(where: { !taken.contains($0) }) else { return nil }
        return PayloadFormat(payloadType: number, encodingName: name, clockRate: 8000, parameters: "0-15")
    }

    /// Makes the engine's call, or changes it, to what was agreed, one after the other.
    ///
    /// - Throws: `EngineError` when no sound was agreed that can flow
    package func apply(_ session: AgreedSession) async throws {
        let former = change
        let change = Task {
            _ = await former?.result
            try await takeOn(session)
        }
        self.change = change
        try await change.value
    }

    private func takeOn(_ session: AgreedSession) async throws {
        guard let media = session.audio else {
            throw PhoneError(.noSound, "No sound was agreed: the other side refused it. Offer another codec.")
        }
        let keying = chosen.withLock { chosen in
            chosen = chosen ?? keyings.keying(of: media.transport)
            return chosen ?? MediaKeying.none
        }
        let isOfOtherKey = media.keys?.local.keys != agreed?.keys?.local.keys
        let isAnother = call != nil && (isOfOtherKey || media.association != agreed?.association)
        var agreement = try agreement(on: media, keying)
        if isAnother { agreement.sourceNumber += 1 }
        // Keys that are those of before go on as they are.
        if let suite = try keying.take(media, agreement, after: agreed) { proof = (suite, nil) }
        if media.association != agreed?.association { proof = nil }
        (agreed, sourceNumber) = (media, agreement.sourceNumber)
        if media.ice != nil, finder == nil, let news = keying.news {
            finder = Task { [weak self] in for await news in news { await self?.take(news) } }
        }
        if let call { return try await call.update(agreement) }
        // What the way cannot go by is given back while this has the ports.
        if media.ice == nil || media.isMultiplexed { releaseRelay(controlOnly: media.ice != nil) }
        var configuration = CallConfiguration(network: way.network)
        (configuration.agreement, configuration.stream, configuration.security) = (agreement, stream, keying.security)
        configuration.name = "sip"
        ends(&configuration)
        let made = try await engine.makeCall(configuration)
        call = made
    }

    private func agreement(on media: AgreedMedia, _ keying: MediaKeying) throws -> MediaAgreement {
        var agreement = try MediaAgreement(media, in: engine.registry, isSecured: keying.security != nil)
        agreement.sourceNumber = sourceNumber
        guard media.ice != nil else { return agreement }
        // Keys prove who sends, and the other side's checks say where it is: nothing else does, nor its description.
        (agreement.remote, agreement.remoteControl) = (found[.media]?.peer, found[.control]?.peer)
        agreement.isSymmetric = false
        (agreement.sourceRules.startPatience, agreement.sourceRules.relocatesAfter) = (.zero, .zero)
        return agreement
    }

    private func take(_ news: DTLSPath.News) {
        switch news {
        case .found(let component, let route): follow(component, by: route)
        case .lost: lossTeller.yield()
        }
    }

    /// Sends to where ICE has found a port of the other side, once what is under way is done.
    private func follow(_ component: ICEComponent, by route: Route) {
        found[component] = route
        let former = change
        change = Task {
            _ = await former?.result
            guard let agreed, let call, let keying else { return }
            try await call.update(agreement(on: agreed, keying))
        }
    }

    /// Waits until sound can flow: DTLS makes its keys once both sides have agreed.
    ///
    /// - Throws: `PhoneError` when the other side did not prove itself
    package func secured() async throws(PhoneError) {
        if let proof = try await keying?.connected() { self.proof = (proof.suite, proof.fingerprint) }
    }

    /// Waits until the other side has ended DTLS, or is gone; at once where there is none.
    package nonisolated func ended() async { await keying?.ended() }

    /// Why no sound can flow, though it was agreed on; nil when it can, or may come to.
    package nonisolated var securityFailure: PhoneError? { keying?.failure }

    /// How the sound is secured; nil when it is not, or not yet.
    package var security: CallSecurity? {
        guard let proof, let keying else { return nil }
        let path = agreed?.ice.flatMap { ice in
            found[.media].map { (($0.isRelayed ? .relay : ice.kind(of: $0.peer)).rawValue, $0.peer) }
        }
        return CallSecurity(keying.encryption, suite: proof.suite, keying.statistics, proof.fingerprint, path: path)
    }

    /// Where the packets of one own end come to, as the other side is to be told.
    package struct Place: Sendable {
        fileprivate let address: SocketAddress
        fileprivate let controlPort: UInt16?
        fileprivate let ice: OwnICE?

        /// Has `session` tell it.
        package func tell(in session: inout SessionConfiguration) {
            session.address = address.host
            for index in session.media.indices {
                (session.media[index].port, session.media[index].controlPort) = (address.port, controlPort)
                session.media[index].ice?.takeServers(of: ice)
            }
        }
    }

    /// Goes to another own address, by the same ports where they are free; nothing but the own end changes.
    ///
    /// By ICE, servers are asked again first: what they have told, and given, was for the ports of before.
    /// - Returns: What the other side is to be told; nil where there is nothing to tell, or another move comes behind it
    /// - Throws: `EngineError` when that cannot be
    package func move(to host: SocketAddress) async throws -> Place? {
        guard case .ports = way, !isEnding else { return nil }
        moveCount += 1
        let number = moveCount
        let reservation = try await reserve(at: host)
        var side: ICESide?
        if let ice, agreed == nil || agreed?.ice != nil {
            side = await ICESide(ice, of: reservation, hasControl: !(agreed?.isMultiplexed ?? false))
        }
        guard number == moveCount, !isEnding else {
            side?.release(reservation)
            return nil
        }
        let (former, asked) = (change, side)
        let change = Task {
            _ = await former?.result
            try await goOn(by: reservation, asked)
        }
        self.change = change
        try await change.value
        if let ice { side?.warn(engine, ice) }
        return number == moveCount
            ? Place(
                address: reservation.localAddress,
                controlPort: reservation.localControlAddress?.port,
                ice: side?.own
            )
            : nil
    }

    /// Looks for another way from the own address, by other ports, when nothing gets through any more.
    ///
    /// - Returns: As `move`
    /// - Throws: As `move`
    package func findWay() async throws -> Place? { try await move(to: way.addresses.local) }

    private func reserve(at host: SocketAddress) async throws(EngineError) -> MediaReservation {
        let place = host.with(port: way.addresses.local.port)
        if let same = try? await engine.reserve(place, hasControlPort: true) { return same }
        return try await engine.reserve(host.with(port: 0), hasControlPort: true)
    }

    /// Goes on by other ports, and by what servers have said of them.
    private func goOn(by reservation: MediaReservation, _ side: ICESide?) async throws {
        var side = side
        if let call {
            do { try await call.move(to: reservation) } catch {
                side?.release(reservation)
                throw error
            }
        } else {
            releaseRelay()
            way.release()
            self.side = side
        }
        way = .ports(reservation)
        for keying in keyings { keying.renewRelay(side) }
    }

    /// Ends the engine's call after so long a talk, and gives its report; nil when no sound ever flowed.
    package func end(after talk: Duration) async throws -> CallReport? {
        isEnding = true
        lossTeller.finish()
        _ = await change?.result
        await keying?.close()
        guard let call else {
            releaseRelay()
            way.release()
            return nil
        }
        try await call.end()
        let codec = agreed?.sending.codecs.first?.encodingName ?? ""
        var report = CallReport(
            codec: codec,
            mode: .udp,
            seconds: talk.milliseconds.rounded() / 1000,
            legs: [call.report()],
            ticks: engine.tickReport
        )
        report.cards = engine.cardReports
        report.routeChanges = engine.routeChanges
        return report
    }

    private func releaseRelay(controlOnly: Bool = false) {
        guard case .ports(let reservation) = way else { return }
        side?.release(reservation, controlOnly: controlOnly)
        for keying in keyings { keying.forgetRelay(controlOnly: controlOnly) }
    }

    /// Gives back what is heard.
    package static func echo(_ configuration: inout CallConfiguration) {
        let format = AudioFormat(sampleRate: 48_000)
        let (mouth, ears) = (StreamSource(format: format), StreamSink(format: format))
        (configuration.source, configuration.sink) = (.stream(mouth), .stream(ears))
        // It ends with the call, which closes both.
        Task { for await block in ears { try? await mouth.write(block.samples) } }
    }
}
