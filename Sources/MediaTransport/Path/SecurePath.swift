import CallBasics
package import MediaEngine
internal import RTP
internal import Synchronization

/// What secures the links of one leg: the keys of both directions, and what they refused.
///
///     control   offer(sending:receiving:) ──► HandOff ──► media thread   protect, unprotect
///
/// Until keys are there nothing is sent and nothing is taken: a leg that is to be secured is never in the clear.
/// Thread: `offer` and `stop` one at a time, `statistics` any; the rest media.
package final class SecurePath: LinkSecurity, @unchecked Sendable {
    /// Keys that pass to the media thread, and come back to be freed.
    private let nextSending = HandOff<SRTPKeys>()
    private let nextReceiving = HandOff<SRTPKeys>()
    private var sender = SRTPSender()
    private var receiver = SRTPReceiver()
    private var counts = SecurityStatistics()
    private let published = LatestValue(SecurityStatistics())
    private let isStopped = Atomic(false)
    /// Whether the reading that is under way takes nothing, and whether it has refused something.
    private var reading = (takesNothing: false, hasRefused: false)
    private let taken = Atomic(0)

    package init() {}

    /// How many packets of the other side have been taken.
    ///
    /// Thread: any.
    var takenCount: Int { taken.load(ordering: .relaxed) }

    /// A link over `base` that has the keys of this path, which are the same for RTCP.
    package func secured(_ base: any DatagramLink, isOfControl: Bool) -> any DatagramLink {
        SecureLink(self, over: base)
    }

    /// What was refused and kept back up to now.
    package var statistics: SecurityStatistics { published.value }

    /// Goes on with these keys from the next packet on; nil leaves those of a direction.
    package func offer(sending: SRTPKeys?, receiving: SRTPKeys?) {
        if let sending { nextSending.offer(sending) }
        if let receiving { nextReceiving.offer(receiving) }
        isStopped.store(false, ordering: .releasing)
    }

    /// Sends and takes nothing more, as without keys, until new ones are offered.
    package func stop() { isStopped.store(true, ordering: .releasing) }

    /// Copies a packet into `buffer` and protects it there; nil when it must not be sent.
    func protect(_ packet: Span<UInt8>, in buffer: inout MutableSpan<UInt8>) -> Int? {
        // Before the keys are taken: those that are there then are the new ones.
        let isStopped = isStopped.load(ordering: .acquiring)
        pass(nextSending) { sender.exchange($0) }
        var result = Result<Int, SRTPRefusal>.failure(isStopped ? .noKey : .noRoom)
        if !isStopped, packet.count <= buffer.count {
            buffer.store(packet, at: 0)
            let isControl = DatagramKind(of: packet) == .rtcp
            result =
                isControl
                ? sender.protectControl(&buffer, count: packet.count) : sender.protect(&buffer, count: packet.count)
        }
        switch result {
        case .success(let count): return count
        case .failure(.noKey): tally { $0.withheld += 1 }
        case .failure: tally { $0.unsent += 1 }
        }
        return nil
    }

    /// Notes that a protected packet has no way yet.
    func keepBack() { tally { $0.withheld += 1 } }

    /// Takes keys that were offered, for the packets that are read next.
    func beginReading() {
        // Stopped or not is asked first, as above.
        reading = (isStopped.load(ordering: .acquiring), false)
        pass(nextReceiving) { receiver.exchange($0) }
    }

    /// Whether there have been no keys yet, for the packets that are read.
    var awaitsKeys: Bool { !reading.takesNothing && !receiver.hasKeys }

    /// Notes that a packet waited for keys in vain.
    func refuseEarly() {
        counts.early += 1
        reading.hasRefused = true
    }

    /// Tells what was refused since `beginReading`, at once for all of a flood.
    func endReading() {
        if reading.hasRefused { published.publish(counts) }
    }

    /// Checks and decrypts a packet in place, while one reads; nil when it is nobody's.
    func unprotect(_ buffer: inout MutableSpan<UInt8>, count: Int) -> Int? {
        let result: Result<Int, SRTPRefusal>
        switch DatagramKind(of: buffer.span.extracting(..<min(count, buffer.count))) {
        case .rtp where reading.takesNothing, .rtcp where reading.takesNothing: result = .failure(.noKey)
        case .rtp: result = receiver.unprotect(&buffer, count: count)
        case .rtcp: result = receiver.unprotectControl(&buffer, count: count)
        case .stun, .dtls, .unknown: result = .failure(.malformed)
        }
        switch result {
        case .success(let count):
            taken.store(taken.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
            return count
        case .failure(let refusal):
            counts.add(refusal)
            reading.hasRefused = true
        }
        return nil
    }

    /// Takes keys that were offered, and gives those back that they replace.
    private func pass(_ keys: HandOff<SRTPKeys>, _ exchange: (SRTPKeys) -> SRTPKeys?) {
        guard let next = keys.take(), let former = exchange(next.takeRetainedValue()) else { return }
        keys.retire(.passRetained(former))
    }

    private func tally(_ change: (inout SecurityStatistics) -> Void) {
        change(&counts)
        published.publish(counts)
    }
}

/// Packets of a secured leg that were not sent, and that were not taken, by reason.
package struct SecurityStatistics: Sendable, Hashable, BitwiseCopyable {
    /// Not sent, for want of keys, or of a relay's channel.
    package var withheld = 0
    /// Not sent, since the key may protect no more, or not this one, or it is too long, or no RTP or RTCP.
    package var unsent = 0
    /// Came while there were no keys, or behind the end; of a handshake, those that waited for its keys in vain.
    package var early = 0
    /// Too short, or no RTP or RTCP.
    package var malformed = 0
    /// Not signed with the key, or changed on the way; a packet in the clear is one of them.
    package var unauthentic = 0
    /// Came before, or is so old that nobody knows.
    package var replayed = 0
    /// Named another key, or was RTCP in the clear.
    package var otherKey = 0
    /// Checks of ICE that proved no password.
    package var unprovenChecks = 0

    package init() {}

    /// What both have refused.
    static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.withheld += right.withheld
        sum.unsent += right.unsent
        sum.early += right.early
        sum.malformed += right.malformed
        sum.unauthentic += right.unauthentic
        sum.replayed += right.replayed
        sum.otherKey += right.otherKey
        sum.unprovenChecks += right.unprovenChecks
        return sum
    }

    fileprivate mutating func add(_ refusal: SRTPRefusal) {
        switch refusal {
        case .noKey: early += 1
        case .malformed, .exhausted, .noRoom, .numberUsed: malformed += 1
        case .unauthentic: unauthentic += 1
        case .replayed, .old: replayed += 1
        case .unencrypted, .otherKey: otherKey += 1
        }
    }
}
