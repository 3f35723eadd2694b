internal import CallBasics

/// An m= line of the session: it stays where it is, whether media uses it or not.
struct MediaSlot: Hashable, Sendable {
    /// What stands on the m= line while it is off.
    private(set) var kind: String
    private var transport: String
    private var format: String
    /// The medium of the configuration that the line is for; nil for one that nobody wants.
    var entry: Int?
    /// Whether both sides took it in the last exchange.
    private(set) var isActive = false
    var payloadTypes = PayloadTypeMap()
    /// Our key that was agreed on last.
    private var key: CryptoAttribute?
    /// Our role in DTLS that was agreed on last.
    private(set) var role: SetupRole?
    /// Our side of ICE where our last description tells it.
    private(set) var ice: OwnICE?
    /// Where we were when ICE began, or was restarted last.
    private var restartPlace: AgreedMedia.Address?
    /// What the group of one transport (BUNDLE) calls the line; nil while it was in none.
    private var name: String?
    /// The formats of our last description.
    private var described: [PayloadFormat] = []

    /// Gives new ICE credentials in the place of those of before.
    typealias Renewal = (ICECredentials) -> ICECredentials

    /// A new line of ours.
    init(_ medium: MediaConfiguration, _ entry: Int) {
        kind = medium.kind
        transport = ""
        format = ""
        reuse(for: medium, entry)
    }

    /// A new line of the other side's.
    init(_ medium: MediaDescription) {
        kind = medium.kind
        transport = medium.transportName
        format = medium.formatNames.first ?? "0"
    }

    /// A line that was off becomes one for `medium`.
    mutating func reuse(for medium: MediaConfiguration, _ entry: Int) {
        kind = medium.kind
        transport = (medium.protocols.first ?? .rtpAVP).name
        format = medium.formats.first.map { String($0.payloadType) } ?? "0"
        self.entry = entry
        isActive = false
        payloadTypes = PayloadTypeMap()
        described = []
        (key, role, ice, restartPlace, name) = (nil, nil, nil, nil, nil)
    }

    /// Whether media travels over the line, and not in the clear.
    var isSecured: Bool { isActive && MediaProtocol(transport).isSecured }

    /// Whether media that was agreed on for the line goes on as `other` has it, as far as keys are concerned.
    func isKeyed(as other: MediaProtocol) -> Bool { !isActive || MediaProtocol(transport).isKeyed(as: other) }

    func isWanted(_ configuration: SessionConfiguration) -> Bool {
        guard let entry, configuration.media.indices.contains(entry) else { return false }
        let medium = configuration.media[entry]
        return medium.port != 0 && medium.isOfKind(kind)
    }

    /// What a group (BUNDLE) calls the line at `index`, if an offer has it in one: browsers want media with ICE to be.
    mutating func bundledName(
        _ configuration: SessionConfiguration,
        _ scope: OfferAnswer.Scope,
        at index: Int
    ) -> String? {
        guard let entry, isWanted(configuration), scope == .everything || isActive,
            configuration.media[entry].mayBeBundled(by: MediaProtocol(transport(of: configuration.media[entry], scope)))
        else { return nil }
        let name = name ?? String(index)
        self.name = name
        return name
    }

    /// How the medium travels by our next offer: what is agreed goes on as it is, while it is wished at all.
    private func transport(of medium: MediaConfiguration, _ scope: OfferAnswer.Scope) -> String {
        let goesOn = isActive && medium.protocols.contains(MediaProtocol(transport))
        return scope == .everything && !goesOn ? (medium.protocols.first ?? .rtpAVP).name : transport
    }

    /// The lines of an offer, which has the line in a group as `name`, and is made after `former` was agreed on.
    mutating func offer(
        _ configuration: SessionConfiguration,
        _ scope: OfferAnswer.Scope,
        bundledAs name: String?,
        by rule: FormatFit.Rule,
        after former: AgreedMedia?,
        renewing renew: Renewal
    ) throws(SDPError) -> [DescriptionLine] {
        guard let entry, isWanted(configuration), scope == .everything || isActive else {
            return try DescriptionWriter.refusal(kind: kind, transport: transport, format: format)
        }
        let medium = configuration.media[entry]
        if scope == .everything {
            try Self.check(medium)
            described = try payloadTypes.numbered(medium.formats, by: rule)
        }
        transport = transport(of: medium, scope)
        payloadTypes.record(described)
        format = described.first.map { String($0.payloadType) } ?? format
        ice = medium.ice(by: MediaProtocol(transport)).flatMap { $0.isFull || medium.isMultiplexed ? $0 : nil }
        let place = AgreedMedia.Address(host: configuration.address, port: medium.port)
        goOnWithICE(at: place, restarts: place != restartPlace, after: former?.ice, renewing: renew)
        return try DescriptionWriter.section(
            medium,
            transport: transport,
            formats: described,
            direction: medium.direction(hold: configuration.hold),
            isMultiplexed: medium.isMultiplexed,
            controlPort: medium.toldControlPort,
            security: Self.group(name) + offeredSecurity(medium, scope)
                + way(of: medium, configuration, sharesPort: false)
        )
    }

    /// Goes on with ICE as in `former`, or restarts it: then both sides have new ufrags and passwords.
    ///
    /// Source: RFC 8839, section 4.4.1.
    private mutating func goOnWithICE(
        at place: AgreedMedia.Address,
        restarts: Bool,
        after former: AgreedICE?,
        renewing renew: Renewal
    ) {
        let told = former?.session.local
        if let told { ice?.credentials = restarts ? renew(told) : told }
        if told == nil || restarts { restartPlace = place }
    }

    /// How the other side may find the way to us, where that is told; to RTCP, too, unless that shares RTP's port for sure.
    private func way(
        of medium: MediaConfiguration,
        _ configuration: SessionConfiguration,
        sharesPort: Bool
    ) -> [SDPAttribute] {
        ice?.lines(configuration.address, medium.port, sharesPort ? nil : medium.controlPort ?? medium.port &+ 1) ?? []
    }

    /// What secures the line: our certificate; or our keys, and while nothing but direction and address changes only that which was
    /// agreed on.
    ///
    /// The other side may choose the role of DTLS again, and keeps it while the association goes on (RFC 8842, section 5).
    private func offeredSecurity(_ medium: MediaConfiguration, _ scope: OfferAnswer.Scope) -> [SDPAttribute] {
        if MediaProtocol(transport).usesDTLS { return medium.certificate?.lines(.activeOrPassive) ?? [] }
        guard MediaProtocol(transport).hasKeysInDescription else { return [] }
        if isActive, scope == .agreedFormats, let key { return [key.line] }
        return medium.keys.map(\.line)
    }

    /// The lines of an answer to `offered`: it is taken when `taken` says how, and refused otherwise.
    ///
    /// `name` is what a group (BUNDLE) calls the line that the answer has in it; it is made after `former` was agreed on.
    mutating func answer(
        _ offered: MediaDescription,
        _ taken: AnswerPlan.Taken?,
        _ configuration: SessionConfiguration,
        bundledAs name: String?,
        after former: AgreedMedia?,
        renewing renew: Renewal
    ) throws(SDPError) -> [DescriptionLine] {
        ice = nil
        if !kind.isNamed(offered.kind) { payloadTypes = PayloadTypeMap() }
        kind = offered.kind
        transport = offered.transportName
        format = offered.formatNames.first ?? format
        guard let taken else {
            isActive = false
            if offered.port != 0 { entry = nil }
            return try DescriptionWriter.refusal(kind: kind, transport: transport, format: format)
        }
        entry = taken.entry
        isActive = true
        (key, role) = (taken.key, taken.role)
        described = taken.pairs.map(\.ours)
        payloadTypes.record(described)
        let medium = configuration.media[taken.entry]
        let own = medium.ice(by: MediaProtocol(transport))
        if let own, own.meets(offered, isMultiplexed: taken.isMultiplexed) { ice = own }
        // Whoever has other ones restarts it.
        let restarts = former?.ice.map { $0.session.remote != ICECredentials(offered.keyingAttributes) } ?? false
        let place = AgreedMedia.Address(host: configuration.address, port: medium.port)
        goOnWithICE(at: place, restarts: restarts, after: former?.ice, renewing: renew)
        self.name = name
        return try DescriptionWriter.section(
            medium,
            transport: transport,
            formats: described,
            direction: taken.direction,
            isMultiplexed: taken.isMultiplexed,
            controlPort: taken.isMultiplexed ? nil : medium.toldControlPort,
            security: Self.group(name) + answeredSecurity(medium, taken, offered)
                + way(of: medium, configuration, sharesPort: taken.isMultiplexed)
                + (own != nil && offered.hasICEMismatch ? [SDPAttribute("ice-mismatch")] : [])
        )
    }

    private static func group(_ name: String?) -> [SDPAttribute] { name.map { [SDPAttribute("mid", $0)] } ?? [] }

    private func answeredSecurity(
        _ medium: MediaConfiguration,
        _ taken: AnswerPlan.Taken,
        _ offered: MediaDescription
    ) -> [SDPAttribute] {
        if let key = taken.key { return [key.line] }
        guard let role = taken.role, let certificate = medium.certificate else { return [] }
        return certificate.lines(role, isNamed: offered.keyingAttributes.nameOfAssociation != nil)
    }

    /// What the answer to our line agrees on; nil when either side has it off.
    ///
    /// Throws: `answerDoesNotFit` when it takes the line in another way than it was offered.
    mutating func accept(_ view: MediaView, by rule: FormatFit.Rule) throws(SDPError) -> AgreedMedia? {
        func refuse(_ what: String) -> SDPError {
            SDPError(
                .answerDoesNotFit,
                "m= line \(view.index + 1) of the answer \(what). End the session, or offer again."
            )
        }
        guard view.remote.isWellFormed else { throw refuse("is not understood") }
        guard view.local.port != 0, view.remote.port != 0, let entry else {
            isActive = false
            return nil
        }
        guard view.remote.kind.isNamed(kind) else {
            throw refuse("is \(view.remote.kind.excerpt), the offer's is \(kind)")
        }
        guard view.remote.transportName.isNamed(transport) else {
            throw refuse("travels by \(view.remote.transportName.excerpt), the offer's by \(transport)")
        }
        let pairs = FormatPair.matching(view.remote.formats(known: described), described, by: rule).withSoundRedundancy
        guard described.contains(where: { $0.role == .codec }) ? pairs.hasCodec : !pairs.isEmpty else {
            throw refuse("has none of the formats offered")
        }
        guard let host = view.remote.host else { throw refuse("has no address") }
        // What goes to one place is answered from one (RFC 3264, section 6.1).
        guard !Destination.isMulticast(host) else { throw refuse("goes to a multicast address") }
        let media = view.agreedMedia(entry, pairs, isOfferer: true)
        guard media.keys != nil || !media.transport.hasKeysInDescription || view.configuration.media[entry].keys.isEmpty
        else { throw refuse("has no line of a key that was offered") }
        guard
            media.association != nil || !media.transport.usesDTLS || view.configuration.media[entry].certificate == nil
        else { throw refuse("has no fingerprint that can be used, or no role") }
        isActive = true
        (key, role) = (media.keys?.local, media.association?.role)
        return media
    }

    private static func check(_ medium: MediaConfiguration) throws(SDPError) {
        let limit = SessionDescription.Limits.formatCount
        guard 1...limit ~= medium.formats.count else {
            throw SDPError(
                .invalidConfiguration,
                "The medium at port \(medium.port) has \(medium.formats.count) formats. Give it between 1 and \(limit)."
            )
        }
    }
}
