internal import CallBasics

/// Offer and answer: one side of a session that describes what it wants, hears what the other wants, and agrees.
///
///                 makeOffer              receiveAnswer
///               ┌──────────► our offer ──────────────┐
///     stable ───┤               │ rollBack           ├──► stable, `agreed` is new
///               └──────────► their offer ────────────┘
///                 receiveOffer  │ rollBack  makeAnswer
///                               ▼
///                            stable, all as before
///
/// Who offers does not matter to it: an INVITE with an offer, a re-INVITE, UPDATE, or an offer in a 200 that is answered in
/// the ACK. It is a value: a copy for each answer of a forked INVITE, or for an answer that is only a preview, is a snapshot
/// that goes its own way. A call that throws changes nothing.
/// Thread: control; it allocates.
/// Source: RFC 3264; RFC 6337.
public struct OfferAnswer: Sendable {
    /// How far an exchange has come.
    public enum State: Sendable {
        /// No offer waits.
        case stable
        /// Our offer waits for its answer.
        case ourOffer
        /// The other side's offer waits for ours.
        case theirOffer
    }

    /// What an offer is made of.
    public enum Scope: Sendable {
        /// All that the configuration wishes: a first offer, a change of codecs or media, and the offer that an INVITE
        /// without one asks for, which may be meant for somebody else (RFC 6337, section 5.1).
        case everything
        /// The media that were agreed, with the formats that were described last; direction, hold, address, ports and the
        /// rest are as the configuration wishes: hold, resume, session refresh, a new address.
        case agreedFormats
    }

    /// What we want; a change takes effect with the next offer or answer that we make.
    public var configuration: SessionConfiguration
    /// What was agreed last; nil until an exchange has completed.
    public private(set) var agreed: AgreedSession?

    /// How far an exchange has come.
    public var state: State {
        switch exchange {
        case nil: .stable
        case .ours: .ourOffer
        case .theirs: .theirOffer
        }
    }

    /// The other side's offer that waits for our answer.
    package var pendingOffer: SessionDescription? {
        if case .theirs(let offer) = exchange { return offer }
        return nil
    }

    let rule: FormatFit.Rule
    /// One for each m= line, agreed or not; none is ever taken out.
    private(set) var slots: [MediaSlot] = []
    /// What the numbers of each m= line stood for in offers that were refused.
    private var refusedTypes: [PayloadTypeMap] = []
    private var exchange: Exchange?
    private var agreedConfiguration: SessionConfiguration?
    private let sessionID: UInt64
    /// Our last description, whatever became of it.
    private var lastWritten: Written?

    /// A session that is described as `configuration` wishes.
    ///
    /// `sessionID` tells this session from all others of the same user and address: take it from a good random source.
    /// `rule` decides how formats of one codec go together; `FormatFit.standard` knows those of telephony.
    public init(
        configuration: SessionConfiguration,
        sessionID: UInt64,
        rule: @escaping FormatFit.Rule = FormatFit.standard
    ) {
        self.configuration = configuration
        self.rule = rule
        // It has to fit 64 bits with a sign (RFC 3264, section 5).
        self.sessionID = sessionID & UInt64(Int64.max)
    }

    /// An offer that waits for its answer, and what it will change.
    private enum Exchange: Sendable {
        case ours(OurOffer)
        case theirs(SessionDescription)
    }

    private struct OurOffer {
        let description: SessionDescription
        let slots: [MediaSlot]
        let configuration: SessionConfiguration
    }

    /// A description that was written, and what has to stay the same in the next.
    private struct Written {
        let description: SessionDescription
        let version: UInt64
        let userName: String
        let address: String
    }
}

extension OfferAnswer {
    /// Our offer.
    ///
    /// Its o= line is that of our last description, with the version one higher when anything else differs.
    /// Throws: `wrongState` when an offer waits, `invalidConfiguration` or `invalidCharacter` when the configuration cannot
    /// be written.
    public mutating func makeOffer(_ scope: Scope = .everything) throws(SDPError) -> SessionDescription {
        try makeOffer(scope) { $0 }
    }

    /// The same, which restarts ICE where the own address has changed, by a ufrag and password from `generator`.
    package mutating func makeOffer(
        _ scope: Scope = .everything,
        using generator: inout some RandomNumberGenerator
    ) throws(SDPError) -> SessionDescription {
        try makeOffer(scope) { $0.renewed(using: &generator) }
    }

    private mutating func makeOffer(
        _ scope: Scope,
        renewing renew: MediaSlot.Renewal
    ) throws(SDPError) -> SessionDescription {
        try expect(.stable, "An offer cannot be made")
        let scope = agreed == nil ? .everything : scope
        var slots = slots
        if scope == .everything {
            try Self.place(configuration, into: &slots)
            for index in self.slots.count..<slots.count where index < refusedTypes.count {
                slots[index].payloadTypes = refusedTypes[index]
            }
        }
        var sections: [[DescriptionLine]] = []
        var bundled: String?
        for index in slots.indices {
            let name = bundled == nil ? slots[index].bundledName(configuration, scope, at: index) : nil
            bundled = bundled ?? name
            let former = previous(index, slots[index].kind)
            try sections.append(
                slots[index].offer(configuration, scope, bundledAs: name, by: rule, after: former, renewing: renew)
            )
        }
        let written = try write(sections, times: "0 0", Self.attributes(of: slots, bundled))
        lastWritten = written
        exchange = .ours(OurOffer(description: written.description, slots: slots, configuration: configuration))
        return written.description
    }

    /// Takes the other side's answer to our offer: what it says is agreed from now on.
    ///
    /// Throws: `wrongState` when no offer of ours waits; `answerDoesNotFit` when it is not an answer to that offer: another
    /// number or kind of media, another protocol, none of the formats offered, no address.
    @discardableResult
    public mutating func receiveAnswer(_ answer: SessionDescription) throws(SDPError) -> AgreedSession {
        guard case .ours(let offer) = exchange else {
            throw SDPError(.wrongState, "An answer came, and no offer of ours waits for one. Make an offer first.")
        }
        let media = answer.media
        guard media.count == offer.slots.count else {
            throw SDPError(
                .answerDoesNotFit,
                "The answer has \(media.count) m= lines, the offer \(offer.slots.count). End the session, or offer again."
            )
        }
        try Self.checkVersion(answer)
        var slots = offer.slots
        var result: [AgreedMedia] = []
        let local = offer.description.media
        for index in slots.indices {
            let view = MediaView(
                index: index,
                local: local[index],
                remote: media[index],
                configuration: offer.configuration,
                previous: previous(index, media[index].kind)
            )
            if let medium = try slots[index].accept(view, by: rule) { result.append(medium) }
        }
        let session = AgreedSession(media: result, local: offer.description, remote: answer)
        complete(session, slots, offer.configuration)
        return session
    }

    /// Takes the other side's offer, to be answered or refused.
    ///
    /// Throws: `wrongState` when an offer waits, which SIP answers with 491 or 500; `invalidOffer` or `invalidLine` when it
    /// cannot be an offer for this session.
    public mutating func receiveOffer(_ offer: SessionDescription) throws(SDPError) {
        try expect(.stable, "An offer cannot be taken")
        try Self.checkVersion(offer)
        let media = offer.media
        guard media.count >= slots.count else {
            throw SDPError(
                .invalidOffer,
                "The offer has \(media.count) m= lines, the session \(slots.count). A line stays, with port 0 when it is off."
            )
        }
        for (index, medium) in media.enumerated() where !medium.isWellFormed {
            let line = medium.lines.first?.value.text ?? ""
            throw SDPError(
                .invalidLine,
                "m= line \(index + 1), \"\(line.excerpt)\", is not understood. It reads \"m=KIND PORT PROTOCOL FORMATS\"."
            )
        }
        exchange = .theirs(offer)
    }

    /// Our answer to the other side's offer: what it says is agreed from now on.
    ///
    /// A medium that cannot be taken is refused by port 0. `configuration` may be changed between offer and answer.
    /// Throws: `wrongState` when no offer waits; `notAcceptable` when no medium of the offer can be taken, with the reason
    /// for each; `invalidConfiguration` or `invalidCharacter` when the configuration cannot be written. The offer goes on
    /// waiting.
    public mutating func makeAnswer() throws(SDPError) -> SessionDescription {
        try makeAnswer { $0 }
    }

    /// The same, which restarts ICE where the offer does, by a ufrag and password from `generator`.
    package mutating func makeAnswer(
        using generator: inout some RandomNumberGenerator
    ) throws(SDPError) -> SessionDescription {
        try makeAnswer { $0.renewed(using: &generator) }
    }

    private mutating func makeAnswer(renewing renew: MediaSlot.Renewal) throws(SDPError) -> SessionDescription {
        guard case .theirs(let offer) = exchange else {
            throw SDPError(.wrongState, "There is no offer to answer. Take the other side's offer first.")
        }
        let media = offer.media
        let plan = AnswerPlan(media, slots, configuration, by: rule)
        if let reason = plan.refusal {
            throw SDPError(
                .notAcceptable,
                "No medium of the offer can be taken: \(reason). Configure one, or refuse with 488."
            )
        }
        var slots = slots
        var sections: [[DescriptionLine]] = []
        let bundled = plan.bundled(media, offer.groups, configuration)
        for (index, medium) in media.enumerated() {
            if index == slots.count { slots.append(MediaSlot(medium)) }
            let name = bundled?.index == index ? bundled?.name : nil
            let former = previous(index, medium.kind)
            try sections.append(
                slots[index].answer(
                    medium,
                    plan.taken[index],
                    configuration,
                    bundledAs: name,
                    after: former,
                    renewing: renew
                )
            )
        }
        for index in slots.indices where plan.taken[index] == nil {
            if plan.taken.contains(where: { $0?.entry == slots[index].entry }) { slots[index].entry = nil }
        }
        let written = try write(sections, times: offer.times, Self.attributes(of: slots, bundled?.name))
        let local = written.description.media
        var result: [AgreedMedia] = []
        for (index, medium) in media.enumerated() {
            guard let taken = plan.taken[index] else { continue }
            let view = MediaView(
                index: index,
                local: local[index],
                remote: medium,
                configuration: configuration,
                previous: previous(index, medium.kind)
            )
            result.append(view.agreedMedia(taken.entry, taken.pairs, isOfferer: false))
        }
        lastWritten = written
        complete(AgreedSession(media: result, local: written.description, remote: offer), slots, configuration)
        return written.description
    }

    /// Forgets the offer that waits, because it was refused or never answered: all is as it was agreed before.
    ///
    /// When the offer was ours, `configuration` is the one of the last agreement again, so a hold that failed is no hold.
    /// Versions and payload types that the offer used are not used again for something else.
    public mutating func rollBack() {
        if case .ours(let offer) = exchange {
            if let agreedConfiguration { configuration = agreedConfiguration }
            for (index, slot) in offer.slots.enumerated() {
                if index == refusedTypes.count { refusedTypes.append(PayloadTypeMap()) }
                refusedTypes[index].record(slot.payloadTypes)
                if index < slots.count { slots[index].payloadTypes.record(slot.payloadTypes) }
            }
        }
        exchange = nil
    }

    /// What is wished of a session that takes the place of this one: media that keep their keying may have no other, and the way is
    /// looked for anew.
    package func wishes(
        ofSuccessor configuration: SessionConfiguration,
        using generator: inout some RandomNumberGenerator
    ) -> SessionConfiguration {
        var wishes = configuration
        for (index, slot) in slots.enumerated() where slot.isActive {
            guard let entry = slot.entry, wishes.media.indices.contains(entry) else { continue }
            if let told = previous(index, slot.kind)?.ice?.session.local {
                wishes.media[entry].ice?.credentials = told.renewed(using: &generator)
            }
            if wishes.media[entry].keepsKeying {
                wishes.media[entry].protocols.removeAll { !slot.isKeyed(as: $0) }
            }
        }
        return wishes
    }

    private mutating func complete(
        _ session: AgreedSession,
        _ slots: [MediaSlot],
        _ configuration: SessionConfiguration
    ) {
        self.slots = slots
        agreed = session
        agreedConfiguration = configuration
        exchange = nil
    }

    private func expect(_ state: State, _ what: String) throws(SDPError) {
        guard self.state != state else { return }
        let side = self.state == .ourOffer ? "ours" : "the other side's"
        throw SDPError(
            .wrongState,
            "\(what) while \(side) waits for its answer. Complete that exchange, or roll it back."
        )
    }

    private static func checkVersion(_ description: SessionDescription) throws(SDPError) {
        guard let version = description.protocolVersion, Bytes(version).trimmed?.text != "0" else { return }
        throw SDPError(.invalidLine, "\"v=\(version.excerpt)\" is no version of SDP that is known. Send \"v=0\".")
    }

    /// What was agreed for the same m= line before, when it was of the same kind.
    private func previous(_ index: Int, _ kind: String) -> AgreedMedia? {
        agreed?.media.first { $0.lineIndex == index && $0.kind == kind }
    }

    /// Gives each medium that is wanted and has no m= line one: a line of its kind that is off, else a new one, and where no
    /// more lines may be, any that is off.
    ///
    /// Source: RFC 3264, section 8.1.
    private static func place(_ configuration: SessionConfiguration, into slots: inout [MediaSlot]) throws(SDPError) {
        for index in slots.indices where !slots[index].isWanted(configuration) { slots[index].entry = nil }
        for (entry, medium) in configuration.media.enumerated() where medium.port != 0 {
            guard !slots.contains(where: { $0.entry == entry }) else { continue }
            let free = slots.indices.filter { slots[$0].entry == nil }
            if let index = free.first(where: { medium.isOfKind(slots[$0].kind) }) {
                slots[index].reuse(for: medium, entry)
            } else if slots.count < SessionDescription.Limits.mediaCount {
                slots.append(MediaSlot(medium, entry))
            } else if let index = free.first {
                slots[index].reuse(for: medium, entry)
            } else {
                throw SDPError(
                    .limitExceeded,
                    "The session has \(slots.count) m= lines already, and none is off. Turn a medium off first."
                )
            }
        }
    }

    /// What the session says of its lines: which one is in a group of one transport, and that this side only answers checks.
    private static func attributes(of slots: [MediaSlot], _ bundled: String?) -> [SDPAttribute] {
        var attributes = bundled.map { [SDPAttribute("group", "BUNDLE \($0)")] } ?? []
        let told = slots.compactMap(\.ice)
        if !told.isEmpty, !told.contains(where: \.isFull) { attributes.append(SDPAttribute("ice-lite")) }
        if !told.isEmpty { attributes.append(SDPAttribute("ice-options", "ice2")) }
        return attributes
    }

    /// Puts the session's lines before `sections`, with the version that the whole has.
    private func write(
        _ sections: [[DescriptionLine]],
        times: String,
        _ attributes: [SDPAttribute]
    ) throws(SDPError) -> Written {
        let connection = try DescriptionWriter.connection(configuration.address)
        let wishedName = try DescriptionWriter.word(configuration.userName, "The user's name")
        // All of the o= line but the version stays (RFC 3264, section 8).
        let (userName, address) = (lastWritten?.userName ?? wishedName, lastWritten?.address ?? connection)
        func written(_ version: UInt64) throws(SDPError) -> Written {
            let origin = "\(userName) \(sessionID) \(version) \(address)"
            var lines = try DescriptionWriter.session(configuration, origin, connection: connection, times: times)
            for attribute in attributes { try lines.append(DescriptionLine("a", attribute.text)) }
            let description = SessionDescription(sessionLines: lines, sections: sections)
            return Written(description: description, version: version, userName: userName, address: address)
        }
        guard let lastWritten else { return try written(1) }
        let same = try written(lastWritten.version)
        return same.description == lastWritten.description ? same : try written(lastWritten.version + 1)
    }
}
