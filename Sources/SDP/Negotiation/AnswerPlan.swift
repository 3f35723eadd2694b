/// Which media of an offer are taken, for which media of the configuration, and how.
struct AnswerPlan {
    /// A medium that is taken.
    struct Taken {
        let entry: Int
        /// The formats in the order of the answer; ours have the numbers of theirs.
        let pairs: [FormatPair]
        let direction: MediaDirection
        let isMultiplexed: Bool
        /// Our key; nil for a medium that has none in its description.
        let key: CryptoAttribute?
        /// Our role in DTLS; nil for a medium without.
        let role: SetupRole?
    }

    /// One for each m= line; nil for those that are refused.
    private(set) var taken: [Taken?]
    /// Why nothing can be taken, though something was offered; nil when the offer can be answered.
    private(set) var refusal: String?

    /// The plan for the media `offered`.
    ///
    /// A line that is agreed keeps its medium; other media get the line whose protocol they prefer, else the first one.
    /// A medium that was secured never goes on in the clear.
    init(
        _ offered: [MediaDescription],
        _ slots: [MediaSlot],
        _ configuration: SessionConfiguration,
        by rule: FormatFit.Rule
    ) {
        taken = Array(repeating: nil, count: offered.count)
        var reasons: [Int: String] = [:]
        let secured = Set(slots.compactMap { $0.isSecured ? $0.entry : nil })
        func take(_ index: Int, _ entry: Int, _ reason: inout String?) -> Taken? {
            let medium = offered[index]
            guard !secured.contains(entry) || medium.transport.isSecured else {
                reason = "is secured, and offered in the clear"
                return nil
            }
            let isKept = slots.allSatisfy { $0.entry != entry || $0.isKeyed(as: medium.transport) }
            guard isKept || !configuration.media[entry].keepsKeying else {
                reason = "is not secured as it was"
                return nil
            }
            let role = index < slots.count && slots[index].isActive ? slots[index].role : nil
            return Self.take(medium, entry, configuration, role, by: rule, &reason)
        }
        for (index, medium) in offered.enumerated() where medium.port != 0 {
            guard index < slots.count, slots[index].isActive, let entry = slots[index].entry else { continue }
            taken[index] = take(index, entry, &reasons[index])
        }
        for (entry, wish) in configuration.media.enumerated() where wish.port != 0 {
            guard !taken.contains(where: { $0?.entry == entry }) else { continue }
            let free = offered.indices.filter { taken[$0] == nil && offered[$0].port != 0 }
            let preferred = free.sorted { Self.rank(offered[$0], wish, $0) < Self.rank(offered[$1], wish, $1) }
            for index in preferred {
                taken[index] = take(index, entry, &reasons[index])
                if taken[index] != nil { break }
            }
        }
        let isAnythingOffered = offered.contains { $0.port != 0 }
        guard isAnythingOffered, !taken.contains(where: { $0 != nil }) else { return }
        refusal = offered.indices.filter { offered[$0].port != 0 }
            .map { "\(offered[$0].kind.excerpt) \(reasons[$0] ?? "is not configured")" }.joined(separator: ", ")
    }

    /// The line that an answer has in a group of one transport, and its name there: the first that is taken; nil for none.
    ///
    /// Others are taken, too, on a transport of their own.
    /// Source: RFC 9143, section 7.3.
    func bundled(
        _ offered: [MediaDescription],
        _ groups: [MediaGroup],
        _ configuration: SessionConfiguration
    ) -> (index: Int, name: String)? {
        guard let group = groups.first(where: { $0.semantics.isNamed("BUNDLE") }) else { return nil }
        for (index, medium) in offered.enumerated() {
            guard let taken = taken[index], taken.isMultiplexed,
                configuration.media[taken.entry].mayBeBundled(by: medium.transport),
                let name = medium.keyingAttributes.mediaIdentifier, group.identifiers.contains(name)
            else { continue }
            return (index, name)
        }
        return nil
    }

    private static func rank(_ offered: MediaDescription, _ wish: MediaConfiguration, _ index: Int) -> (Int, Int) {
        (wish.protocols.firstIndex(of: offered.transport) ?? wish.protocols.count, index)
    }

    private static func take(
        _ offered: MediaDescription,
        _ entry: Int,
        _ configuration: SessionConfiguration,
        _ formerRole: SetupRole?,
        by rule: FormatFit.Rule,
        _ reason: inout String?
    ) -> Taken? {
        guard configuration.media.indices.contains(entry) else { return nil }
        let wish = configuration.media[entry]
        guard wish.isOfKind(offered.kind), wish.port != 0 else { return nil }
        guard wish.protocols.contains(offered.transport) else {
            reason = "travels by \(offered.transportName.excerpt), which is not configured"
            return nil
        }
        guard let host = offered.host, !Destination.isMulticast(host) else {
            reason = offered.host == nil ? "has no address" : "goes to a multicast address"
            return nil
        }
        let formats = offered.formats
        var pairs = FormatPair.matching(formats, wish.formats, by: rule)
        if configuration.formatOrder == .ours { pairs.sort { $0.place < $1.place } }
        for index in pairs.indices {
            pairs[index].ours.payloadType = pairs[index].theirs.payloadType
            if pairs[index].ours.role == .redundancy { pairs[index].ours.parameters = pairs[index].theirs.parameters }
        }
        pairs = pairs.answering.withSoundRedundancy
        // A line for telephone events alone has no codec on either side (RFC 4317, section 2.4).
        let wantsCodec = (formats + wish.formats).contains { $0.role == .codec }
        guard wantsCodec ? pairs.hasCodec : !pairs.isEmpty else {
            let names = formats.prefix(8).map(\.encodingName.excerpt).joined(separator: " ")
            reason = "has none of the formats configured, but: \(names.isEmpty ? "none that is described" : names)"
            return nil
        }
        // Where RTP and RTCP share a port these numbers are RTCP's (RFC 5761, section 4).
        let canShare = !pairs.contains { 64...95 ~= $0.theirs.payloadType }
        let isMultiplexed = offered.isMultiplexed && wish.isMultiplexed && canShare
        guard isMultiplexed || !offered.requiresMultiplexing else {
            reason = "wants RTP and RTCP on one port"
            return nil
        }
        var key: CryptoAttribute?
        if offered.transport.hasKeysInDescription, !wish.keys.isEmpty {
            key = .answer(to: offered.keyingAttributes.cryptoLines, with: wish.keys + wish.answeringKeys)
            guard key != nil else {
                reason = "has no line of a key that can be used"
                return nil
            }
        }
        var role: SetupRole?
        if offered.transport.usesDTLS, wish.certificate != nil {
            guard offered.keyingAttributes.fingerprints.contains(where: \.isUsable) else {
                reason = "has no fingerprint of a certificate that can be used"
                return nil
            }
            role = .answer(to: offered.keyingAttributes.setupRole, after: formerRole)
            guard role != nil else {
                reason = "does not say who begins DTLS"
                return nil
            }
        }
        let destination = Destination(offered)
        return Taken(
            entry: entry,
            pairs: pairs,
            direction: wish.direction(hold: configuration.hold).intersection(destination.direction.reversed),
            isMultiplexed: isMultiplexed,
            key: key,
            role: role
        )
    }
}
