package import CallBasics

/// Decides whose packets are heard: a stream belongs to its source, and nobody else can take it.
///
///     learning ──► locked ──► relearning ──► locked …
///
/// - **Learning**, before anybody is locked. The address that signalling named is locked with its first packet. Another
///   port of its host (a NAT) is heard at once and locked after two packets in sequence. Any other host waits until the
///   named one has been silent for `startPatience`; where signalling named nobody, it need not wait.
/// - **Locked.** Only the locked address is heard. A new SSRC from it (a transfer, music on hold, a conference) is taken
///   at once. Another address is refused, whatever its SSRC and however long the locked one is silent, unless
///   `relocatesAfter` allows that.
/// - **Relearning**, since signalling named another address: it is taken with its first packet; until then the locked one
///   goes on being heard.
///
/// Pure: packets and times in, verdicts out.
/// Thread: media.
public struct RemoteSourcePolicy: Sendable, BitwiseCopyable {
    /// How freely an address is learnt.
    public struct Rules: Hashable, Sendable, BitwiseCopyable {
        /// How long, from the beginning, hosts that signalling did not name are refused while the named one is silent.
        public var startPatience = Duration.seconds(5)
        /// How long the locked address must be silent before another may take its place; nil never lets it.
        ///
        /// Give a duration only in a network without hostile hosts: during a pause (mute, hold, DTX) anybody who sends two
        /// packets gets the stream, and with symmetric RTP hears what is said.
        public var relocatesAfter: Duration?

        /// Patience of 5 s, and no relocation.
        public init() {}
    }

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
    }

    private enum Phase: BitwiseCopyable {
        case learning
        case locked
        case relearning
    }

    private var rules: Rules
    private var named: SocketAddress?
    private var phase = Phase.learning
    private var began: MediaTime?
    /// The source that is heard: on trial while learning.
    private var current: Source?
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

    /// A policy that has heard nobody.
    ///
    /// - Parameters:
    ///   - named: The address that signalling gave for the other side's RTP; nil when it gave none.
    ///   - rules: How freely an address is learnt.
    package init(named: SocketAddress?, rules: Rules = Rules()) {
        self.named = named
        self.rules = rules
    }

    /// The address that has been locked; nil while learning.
    package var lockedAddress: SocketAddress? { phase == .learning ? nil : current?.address }

    /// Whether packets of any other address than the locked one can only be refused.
    package var isFixed: Bool {
        phase == .locked && rules.relocatesAfter == nil && (named == nil || named == current?.address)
    }

    /// Where the other side's RTP is expected: the locked address, or the one that signalling named.
    package var answerAddress: SocketAddress? { phase == .locked ? current?.address : named }

    /// Follows signalling, which names `address` from now on; the same one again changes nothing.
    package mutating func name(_ address: SocketAddress?, rules: Rules, at now: MediaTime) {
        self.rules = rules
        guard address != named else { return }
        named = address
        began = now
        candidate = nil
        control = nil
        guard let current else { return }
        if current.address == address {
            phase = .locked
        } else if phase == .locked {
            phase = .relearning
        }
    }

    /// Begins to wait for the named address at `now`; without this, with the first packet of anybody.
    package mutating func begin(at now: MediaTime) { began = began ?? now }

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
        guard address == heard.address else { return admitOther(packet, heard) }
        guard ssrc == heard.ssrc else { return admitNewSSRC(packet, heard) }
        if phase == .learning, sequenceNumber == heard.sequenceNumber &+ 1 { phase = .locked }
        current?.arrival = now
        if Int16(bitPattern: sequenceNumber &- heard.sequenceNumber) > 0 { current?.sequenceNumber = sequenceNumber }
        return .accepted
    }

    private mutating func admitFirst(_ packet: Source) -> Verdict {
        guard mayBeLearnt(packet) else { return .refused(.unnamedHost) }
        return take(packet, phase: packet.address == named ? .locked : .learning)
    }

    /// From another address than the one that is heard.
    private mutating func admitOther(_ packet: Source, _ heard: Source) -> Verdict {
        if packet.address == named { return take(packet, phase: .locked) }
        let refusal: Refusal
        switch phase {
        case .learning, .relearning:
            refusal = .unnamedHost
            guard mayBeLearnt(packet) else { return .refused(refusal) }
        case .locked:
            refusal = .otherAddress
            guard let silence = rules.relocatesAfter,
                packet.arrival.nanoseconds(since: heard.arrival) >= silence.nanoseconds
            else { return .refused(refusal) }
        }
        return continuesCandidate(packet) ? take(packet, phase: .locked) : .refused(refusal)
    }

    /// Another SSRC from the address that is heard.
    private mutating func admitNewSSRC(_ packet: Source, _ heard: Source) -> Verdict {
        let isUnderWay =
            former.map {
                $0.ssrc == packet.ssrc && packet.arrival.nanoseconds(since: $0.arrival) < Self.reordering
                    && packet.arrival.nanoseconds(since: heard.arrival) < Self.shortestReign
            } ?? false
        guard !isUnderWay else {
            former?.arrival = packet.arrival
            return .refused(.formerSource)
        }
        let isHasty = lastChange.map { packet.arrival.nanoseconds(since: $0) < Self.shortestReign } ?? false
        guard !isHasty || continuesCandidate(packet) else { return .refused(.formerSource) }
        return take(packet, phase: phase)
    }

    /// Whether an address that is not the named one may be learnt now: its host is the named one's, or that had its time.
    private func mayBeLearnt(_ packet: Source) -> Bool {
        guard let named, packet.address.with(port: named.port) != named else { return true }
        guard let began else { return false }
        return packet.arrival.nanoseconds(since: began) >= rules.startPatience.nanoseconds
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
            former = heard.ssrc != packet.ssrc ? heard : nil
            lastChange = packet.arrival
        }
        current = packet
        candidate = nil
        self.phase = phase
        return .begins
    }

    // MARK: RTCP

    /// Whether RTCP that came from `address` counts: it comes from the source that is heard, or from the host that
    /// signalling named while nobody is.
    ///
    /// - Parameters:
    ///   - address: Where it came from.
    ///   - sharesPort: Whether RTP and RTCP share one port (RFC 5761).
    /// - Returns: Whether it counts.
    package mutating func admitControl(from address: SocketAddress, sharesPort: Bool) -> Bool {
        let expected = phase == .learning ? current?.address ?? named : current?.address
        let isRelearnt = phase == .relearning && (named.map { Self.isSameHost($0, address) } ?? false)
        guard let expected, Self.isSameHost(expected, address) || isRelearnt else { return false }
        if sharesPort { return phase != .locked || address == expected }
        guard let control else {
            control = address
            return true
        }
        return control == address || phase != .locked
    }

    private static func isSameHost(_ one: SocketAddress, _ other: SocketAddress) -> Bool {
        one.with(port: other.port) == other
    }
}
