package import CallBasics

/// Decides whose packets are heard: a stream belongs to its source, and nobody else can take it.
///
///     learning ──► locked ──► relearning ──► locked …
///
/// - **Learning**, before anybody is locked. The address that signalling named is locked with its first packet. Another
///   port of its host (a NAT) is heard at once and locked after two packets in sequence. Any other host waits until the
///   named one was to send, and silent, for `startPatience`. Where signalling named nobody, it need not wait; it is forgotten
///   when signalling then names another host.
/// - **Locked.** Only the locked address is heard. A new SSRC from it (a transfer, music on hold, a conference) is
///   taken at once; when it was a single stray packet, the former one comes back with its second packet in sequence.
///   Another address is refused, whatever its SSRC and however long the locked one is silent, unless `relocatesAfter`
///   allows that. Where the locked one was learnt, the named one itself may still begin: with two packets in sequence while
///   the locked one goes on, for a stray would end that for good.
/// - **Relearning**, since signalling named another address: it is taken with its first packet, another port of its host
///   after two in sequence. Until then the locked one goes on being heard, but what is said goes to the named one: whom
///   signalling has put aside hears nothing more, however long the new side is silent. Only where a NAT explains that it
///   goes on from where it was, it is locked again after `startPatience`. Where signalling returns to one of the last
///   addresses that were learnt behind NATs, that NAT's host counts as the named one's.
///   Another host waits until the named one was to send, and both that and the locked one were silent, for `startPatience`:
///   as at the beginning, for it may be what a NAT makes of the new side. With `relocatesAfter` the locked one's silence may
///   be shorter.
///
/// Pure: packets and times in, verdicts out.
/// Thread: media.
package struct RemoteSourcePolicy: Sendable, BitwiseCopyable {
    /// Why a packet is not heard.
    package enum Refusal: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
        /// It came from another address than the locked one.
        case otherAddress
        /// It came from a host that signalling did not name, before the named one's time to begin was over.
        case unnamedHost
        /// It is of an SSRC that has given way to another one, or of one more in quick succession.
        case formerSource
        /// RTCP from another address, or about another source.
        case otherControl
    }

    package enum Verdict: Equatable, BitwiseCopyable {
        /// It is of the source that is heard.
        case accepted
        /// It is the first of a source that is heard from now on.
        case begins
        case refused(Refusal)
    }

    private struct Source: BitwiseCopyable {
        let ssrc: UInt32
        let address: SocketAddress
        var sequenceNumber: UInt16
        var arrival: MediaTime
        /// Whether a second packet has come: since it is heard, or since it gave way.
        var goesOn = false
    }

    /// What a NAT has made of an address that signalling named.
    private struct Translation: BitwiseCopyable {
        let named: SocketAddress
        let address: SocketAddress
    }

    private enum Phase: BitwiseCopyable {
        case learning
        case locked
        case relearning
    }

    /// What the silence of the named address says.
    private enum Wait: BitwiseCopyable {
        /// Nothing: it is not to send.
        case suspended
        /// Nothing yet: nobody waits for it.
        case notBegun
        /// It has had time to send since then.
        case since(MediaTime)
    }

    private var rules: RemoteSourceRules
    private var named: SocketAddress?
    private var phase = Phase.learning
    private var wait: Wait
    /// The source that is heard: on trial while learning.
    private var current: Source?
    /// The address that was named when that one's was learnt; nil when nobody was, so that it may be anybody's.
    private var learntFor: SocketAddress?
    /// The last ones that were locked behind NATs and gave way by signalling, the newest first: it may return to them, as from
    /// music on hold or another party.
    private var translations = InlineArray<4, Translation?>(repeating: nil)
    /// What a NAT has made of the address that is named, when it was named before.
    private var translated: SocketAddress?
    /// The source before it, of which packets may still be under way.
    private var former: Source?
    /// One packet of a source that would be heard after a second in sequence.
    private var candidate: Source?
    private var lastChange: MediaTime?
    /// Where RTCP comes from when it has a port of its own.
    private var control: SocketAddress?

    /// Packets of an SSRC that gave way may come so much later than its successor's.
    private static var reordering: Int64 { 200_000_000 }
    /// Sooner after a change, a further one takes two packets in sequence; silent for longer, a source gives way.
    private static var shortestReign: Int64 { 100_000_000 }
    /// A source of one packet, and silent for so long, was a stray when the former one goes on.
    private static var strayAge: Int64 { 20_000_000 }

    /// A policy that has heard nobody.
    ///
    /// - Parameters:
    ///   - named: The address that signalling gave for the other side's RTP; nil when it gave none.
    ///   - rules: How freely an address is learnt.
    ///   - expectsPackets: Whether the other side is to send, by the direction that was agreed.
    package init(
        named: SocketAddress?,
        rules: RemoteSourceRules = RemoteSourceRules(),
        expectsPackets: Bool = true
    ) {
        self.named = named
        self.rules = rules
        wait = expectsPackets ? .notBegun : .suspended
    }

    /// The address that has been locked; nil while learning.
    package var lockedAddress: SocketAddress? { phase == .learning ? nil : current?.address }

    /// Whether somebody is heard, be it on trial.
    var hasSource: Bool { current != nil }

    /// The addresses whose packets can be heard where all others can only be refused: the locked one, and the one that
    /// signalling named, if that is another; nil while others could be heard.
    package var onlyAddresses: (locked: SocketAddress, named: SocketAddress?)? {
        guard phase == .locked, rules.relocatesAfter == nil, let address = current?.address else { return nil }
        return (address, named == address ? nil : named)
    }

    /// Where the other side's RTP is expected: the locked address, or the one that signalling named.
    package var answerAddress: SocketAddress? { phase == .locked ? current?.address : named }

    /// Follows signalling, which names `address` from now on, and says whether the other side is to send; the same address
    /// again changes nothing.
    package mutating func name(
        _ address: SocketAddress?,
        rules: RemoteSourceRules,
        expectsPackets: Bool = true,
        at now: MediaTime
    ) {
        self.rules = rules
        if !expectsPackets {
            wait = .suspended
        } else if case .suspended = wait {
            wait = .since(now)
        }
        guard address != named else { return }
        noteTranslation()
        named = address
        translated = translation(of: address)
        guard address != nil else {
            // A lock stays a lock when signalling names nobody.
            if phase == .relearning { phase = .locked }
            return
        }
        if expectsPackets { wait = .since(now) }
        candidate = nil
        control = nil
        guard let current else { return }
        if current.address == address || phase != .learning && learntFor == address {
            phase = .locked
        } else if phase != .learning, learntFor != nil {
            phase = .relearning
            return
        } else if isOfNamedHost(current.address) {
            phase = .learning
        } else {
            forget()
            return
        }
        learntFor = address
    }

    /// Keeps what a NAT has made of the address that was named until now.
    private mutating func noteTranslation() {
        guard phase == .locked, let named, let current, learntFor == named, !Self.isSameHost(named, current.address)
        else { return }
        // The place of what was known of it, else a free one, else that of the oldest.
        var place = 0
        while place < translations.count - 1, let known = translations[place], known.named != named { place += 1 }
        while place > 0 {
            translations[place] = translations[place - 1]
            place -= 1
        }
        translations[0] = Translation(named: named, address: current.address)
    }

    private func translation(of address: SocketAddress?) -> SocketAddress? {
        for index in translations.indices {
            if let known = translations[index], known.named == address { return known.address }
        }
        return nil
    }

    /// Forgets who was heard, and was nobody whom signalling named.
    private mutating func forget() {
        current = nil
        former = nil
        lastChange = nil
        phase = .learning
    }

    /// Begins to wait for the named address at `now`; without this, with the first packet of anybody.
    package mutating func begin(at now: MediaTime) {
        if case .notBegun = wait { wait = .since(now) }
    }

    // MARK: RTP

    /// Judges an RTP packet of `ssrc` that came from `address`.
    package mutating func admit(
        _ ssrc: UInt32,
        _ sequenceNumber: UInt16,
        from address: SocketAddress,
        at now: MediaTime
    ) -> Verdict {
        begin(at: now)
        let packet = Source(ssrc: ssrc, address: address, sequenceNumber: sequenceNumber, arrival: now)
        guard let heard = current else { return admitFirst(packet) }
        if phase == .relearning, address == heard.address, isTranslated(heard), hasWaited(until: now) {
            phase = .locked
            learntFor = named
        }
        guard address == heard.address else { return admitOther(packet, heard) }
        guard ssrc == heard.ssrc else { return admitNewSSRC(packet, heard) }
        if phase == .learning, sequenceNumber == heard.sequenceNumber &+ 1 { phase = .locked }
        current?.arrival = now
        current?.goesOn = true
        // Whatever it is: numbers may begin anew, and the next two in sequence count.
        current?.sequenceNumber = sequenceNumber
        return .accepted
    }

    private mutating func admitFirst(_ packet: Source) -> Verdict {
        guard mayBeLearnt(packet.address, at: packet.arrival) else { return .refused(.unnamedHost) }
        return take(packet, phase: packet.address == named ? .locked : .learning)
    }

    /// Why a packet of this side's own SSRC that came from `address` says nothing; nil when it is of whom is heard, or may be.
    func refusal(ofOwnFrom address: SocketAddress, at now: MediaTime) -> Refusal? {
        if address == current?.address || address == named { return nil }
        guard phase == .learning else { return .otherAddress }
        return mayBeLearnt(address, at: now) ? nil : .unnamedHost
    }

    /// From another address than the one that is heard.
    private mutating func admitOther(_ packet: Source, _ heard: Source) -> Verdict {
        let silence = packet.arrival.nanoseconds(since: heard.arrival)
        if packet.address == named, phase != .locked || silence >= Self.shortestReign {
            return take(packet, phase: .locked)
        }
        let refusal: Refusal
        switch phase {
        case .learning:
            refusal = .unnamedHost
            guard mayBeLearnt(packet.address, at: packet.arrival) else { return .refused(refusal) }
        case .relearning:
            refusal = .unnamedHost
            let mayBeAnother = isSilent(heard, at: packet.arrival) || mayRelocate(packet, heard)
            guard isOfNamedHost(packet.address) || mayBeAnother && hasWaited(until: packet.arrival) else {
                return .refused(refusal)
            }
        case .locked:
            refusal = .otherAddress
            guard packet.address == named || mayRelocate(packet, heard) else { return .refused(refusal) }
        }
        return continuesCandidate(packet) ? take(packet, phase: .locked) : .refused(refusal)
    }

    /// Another SSRC from the address that is heard.
    private mutating func admitNewSSRC(_ packet: Source, _ heard: Source) -> Verdict {
        let silence = packet.arrival.nanoseconds(since: heard.arrival)
        if let former, former.ssrc == packet.ssrc, silence < Self.shortestReign,
            packet.arrival.nanoseconds(since: former.arrival) < Self.reordering
        {
            let isNext = packet.sequenceNumber == former.sequenceNumber &+ 1
            if isNext, former.goesOn, !heard.goesOn, silence >= Self.strayAge { return take(packet, phase: phase) }
            // It may only have been under way.
            self.former?.goesOn = isNext
            self.former?.arrival = packet.arrival
            self.former?.sequenceNumber = packet.sequenceNumber
            return .refused(.formerSource)
        }
        let isHasty = lastChange.map { packet.arrival.nanoseconds(since: $0) < Self.shortestReign } ?? false
        guard !isHasty || continuesCandidate(packet) else { return .refused(.formerSource) }
        return take(packet, phase: phase)
    }

    /// Whether an address that is not the named one may be learnt now: its host is the named one's, or that had its time.
    private func mayBeLearnt(_ address: SocketAddress, at now: MediaTime) -> Bool {
        named == nil || isOfNamedHost(address) || hasWaited(until: now)
    }

    /// Whether it is of the host that signalling named, or of the one that a NAT has made of it before.
    private func isOfNamedHost(_ address: SocketAddress) -> Bool {
        if let named, Self.isSameHost(named, address) { return true }
        return translated.map { Self.isSameHost($0, address) } ?? false
    }

    /// Whether a NAT explains that the source that is heard goes on from where it was: it has changed an address that was named
    /// before, and the one that is named now is of the source's host, or as private as that one.
    private func isTranslated(_ heard: Source) -> Bool {
        guard let named, let learntFor, learntFor != heard.address else { return false }
        return Self.isSameHost(named, heard.address)
            || named.isPrivate && learntFor.isPrivate && !heard.address.isPrivate
    }

    /// Whether the named address has had its time.
    private func hasWaited(until now: MediaTime) -> Bool {
        guard case .since(let began) = wait else { return false }
        return now.nanoseconds(since: began) >= rules.startPatience.nanoseconds
    }

    /// Whether the one that is heard, and that signalling has put aside, has fallen silent.
    private func isSilent(_ heard: Source, at now: MediaTime) -> Bool {
        now.nanoseconds(since: heard.arrival) >= rules.startPatience.nanoseconds
    }

    /// Whether the one that is heard has been silent for so long that the rules let any other take its place.
    private func mayRelocate(_ packet: Source, _ heard: Source) -> Bool {
        rules.relocatesAfter.map { packet.arrival.nanoseconds(since: heard.arrival) >= $0.nanoseconds } ?? false
    }

    /// Whether the packet follows one of the same source; if not, it is kept to be followed itself.
    private mutating func continuesCandidate(_ packet: Source) -> Bool {
        let isNext =
            candidate.map {
                $0.ssrc == packet.ssrc && $0.address == packet.address
                    && packet.sequenceNumber == $0.sequenceNumber &+ 1
            } ?? false
        candidate = packet
        return isNext
    }

    private mutating func take(_ packet: Source, phase: Phase) -> Verdict {
        if let heard = current {
            if heard.address != packet.address { control = nil }
            former = heard.ssrc != packet.ssrc ? heard : nil
            former?.goesOn = false
            lastChange = packet.arrival
        }
        if current?.address != packet.address { learntFor = named }
        current = packet
        candidate = nil
        self.phase = phase
        return .begins
    }

    // MARK: RTCP

    /// Whether RTCP that came from `address` counts.
    ///
    /// It comes from the source that is heard, or from the host that signalling named while nobody is; on a port of its own,
    /// from where `lockControl` told.
    ///
    /// - Parameters:
    ///   - address: Where it came from.
    ///   - sharesPort: Whether RTP and RTCP share one port (RFC 5761).
    /// - Returns: Whether it counts.
    package func admitControl(from address: SocketAddress, sharesPort: Bool) -> Bool {
        let expected = phase == .learning ? current?.address ?? named : current?.address
        let isRelearnt = phase == .relearning && (named.map { Self.isSameHost($0, address) } ?? false)
        guard let expected, Self.isSameHost(expected, address) || isRelearnt else { return false }
        if sharesPort { return phase != .locked || address == expected }
        return control == nil || control == address || phase != .locked
    }

    /// Whether RTCP that came from `address` tells where this side's goes: it is of the host that is answered.
    func answersControl(to address: SocketAddress) -> Bool {
        answerAddress.map { Self.isSameHost($0, address) } ?? true
    }

    /// RTCP of the source that is heard came from `address`, on a port of its own.
    package mutating func lockControl(_ address: SocketAddress) { control = address }

    private static func isSameHost(_ one: SocketAddress, _ other: SocketAddress) -> Bool {
        one.with(port: other.port) == other
    }
}
