/// A jitter buffer with a fixed delay: each packet is played `delay` after the first packet's arrival plus the
/// distance of their timestamps.
///
/// The timeline holds as long as packets come in time. It is drawn anew when the stream jumps, when every packet of a
/// while comes too late (the network's delay grew), and after a second without packets (hold, outage), so that what
/// comes then is neither lost nor played in a burst. A sender that is faster than our clock fills the buffer; when it
/// holds two packets too many for a while, those are thrown away, one at a time.
public final class FixedJitterBuffer: JitterBuffer, @unchecked Sendable {
    /// Packets that can wait: 1.28 s of 10 ms packets.
    public static let capacity = 128
    private static let lateRunLimit = 5
    private static let surplusWindow = 250
    private static let discardSpacing = 8

    private enum State {
        /// Nothing waits; if the sender went on, the playhead would have been played at the time given.
        case waiting(since: MediaTime)
        case starting(at: MediaTime)
        case playing
    }

    /// How long the first packet is held back.
    public let delay: Duration
    private let clock: StreamClock
    // One thread owns these, so checking each access would be a waste of the tick.
    @exclusivity(unchecked) private var store = PacketStore(capacity: FixedJitterBuffer.capacity)
    @exclusivity(unchecked) private var timeline = PacketTimeline()
    private var state = State.waiting(since: .zero)
    private var counters = JitterBufferStatistics()

    /// The timestamp that is played next.
    private var playhead: Int64 = 0
    private var packetDuration = 0
    private var lateRun = 0
    /// Units invented since the last packet.
    ///
    /// Whether the sender paused or packets are lost is settled when the next one is played: until then what is missing
    /// may still come.
    private var provisional = 0
    private var surplusCount = 0
    private var smallestSurplus = Int64.max
    /// Packets that are too many, and those played since one of them was thrown away.
    private var excessCount = 0
    private var playedSinceDiscard = 0

    /// A buffer that holds packets for `delay`, with timestamps at `clockRate`.
    public init(delay: Duration, clockRate: Int) {
        self.delay = delay
        clock = StreamClock(rate: clockRate)
    }

    /// Packets that wait.
    public var count: Int { store.count }
    /// What became of packets so far.
    public var statistics: JitterBufferStatistics { counters }

    /// Takes a packet, unless it is late, there already, or too far ahead.
    public func insert(_ header: PacketHeader, payload: Span<UInt8>, duration: Int) -> InsertionResult {
        guard !header.isNumberOnly else { return insertNumberOnly(header, payload) }
        var (sequence, timestamp, isMoved) = timeline.place(of: header, position: position(at: header.arrival))
        var result = InsertionResult.accepted
        if timeline.isJump(sequence: sequence, timestamp: timestamp, clockRate: clock.rate) {
            restart()
            (sequence, timestamp, isMoved) = timeline.place(of: header, position: 0)
            result = .restarted
        }
        if case .playing = state, timestamp &+ Int64(duration) <= playhead {
            guard !header.isRedundant else { return .late }
            lateRun &+= 1
            counters.lateCount &+= 1
            settleProvisional(missing: 1)
            guard lateRun >= Self.lateRunLimit else { return .late }
            restart()
            (sequence, timestamp, isMoved) = timeline.place(of: header, position: 0)
            counters.lateCount &-= 1
            result = .restarted
        }
        let stored = store.insert(
            header,
            payload: payload,
            sequence: sequence,
            timestamp: timestamp,
            duration: duration
        )
        guard stored == .accepted else {
            if stored == .refused { counters.discardedCount &+= 1 }
            return stored
        }
        timeline.note(sequence: sequence, timestamp: timestamp, duration: Int64(duration))
        lateRun = 0
        if !header.isComfortNoise || packetDuration == 0 { packetDuration = duration }
        switch state {
        // What was moved to where it would be played now is played now, so that what follows keeps its delay.
        case .waiting: state = .starting(at: isMoved ? header.arrival : header.arrival + delay)
        case .starting: break
        case .playing: if !isMoved { watchSurplus(timestamp) }
        }
        return result
    }

    /// Keeps the place of a packet of another kind, so that its number is not missed.
    private func insertNumberOnly(_ header: PacketHeader, _ payload: Span<UInt8>) -> InsertionResult {
        guard let place = timeline.placeOfNumber(header.sequenceNumber) else { return .accepted }
        if case .playing = state, place.sequence <= timeline.playedSequence { return .late }
        return store.insert(
            header,
            payload: payload,
            sequence: place.sequence,
            timestamp: place.timestamp,
            duration: 0
        )
    }

    /// Tells what is to be played next at `now`.
    public func decide(at now: MediaTime) -> PlayoutDecision {
        dropNumbersOnly()
        switch state {
        case .waiting: return .idle
        case .starting(let start):
            guard now >= start, let first = store.first else { return .idle }
            state = .playing
            playhead = first.timestamp
            timeline.skip(to: first.sequence)
        case .playing: break
        }
        guard let first = store.first else { return decideWithoutPackets(at: now) }
        guard first.timestamp > playhead else {
            if excessCount > 0, store.count > 1, playedSinceDiscard >= Self.discardSpacing {
                excessCount &-= 1
                playedSinceDiscard = 0
                counters.discardedCount &+= 1
                advance(over: first)
                store.removeFirst()
                return decide(at: now)
            }
            counters.playedCount &+= 1
            playedSinceDiscard &+= 1
            settleProvisional(missing: timeline.missingCount(before: first.sequence))
            advance(over: first)
            return .play
        }
        return decideInGap(before: first)
    }

    /// Hands the first packet to `body`; there must be one.
    public func withFirst<Result>(_ body: (PacketHeader, Span<UInt8>) -> Result) -> Result {
        guard let first = store.first else { preconditionFailure("the buffer is empty") }
        return store.withFirstPayload { body(first.header, $0) }
    }

    /// Drops the first packet, which has been played.
    public func removeFirst() {
        store.removeFirst()
    }

    /// Takes note that a lost packet was not in its successor after all.
    public func recoveryFailed(duration: Int) {
        counters.concealedDuration &+= duration
    }

    /// Forgets every packet and where the source was.
    public func reset() {
        store.removeAll()
        state = .waiting(since: .zero)
        timeline.reset()
        lateRun = 0
        provisional = 0
        surplusCount = 0
        smallestSurplus = .max
        excessCount = 0
    }

    /// Nothing waits: the packet may be late or lost, or the sender may be silent; its successor will tell, unless the
    /// sender has gone over to packets of another kind.
    private func decideWithoutPackets(at now: MediaTime) -> PlayoutDecision {
        let duration = max(packetDuration, Int(clock.rate / 100))
        guard provisional < clock.rate else {
            counters.comfortDuration &+= provisional
            provisional = 0
            state = .waiting(since: now)
            return .idle
        }
        provisional &+= duration
        playhead &+= Int64(duration)
        return timeline.isSoundPaused ? .comfort(duration: duration) : .conceal(duration: duration)
    }

    /// Packets wait, but not the one that is due.
    private func decideInGap(before first: PacketStore.Entry) -> PlayoutDecision {
        let gap = Int(first.timestamp &- playhead)
        let duration = min(gap, max(packetDuration, 1))
        playhead &+= Int64(duration)
        let missing = timeline.missingCount(before: first.sequence)
        let isLoss = missing > 0
        if isLoss, gap <= packetDuration {
            counters.missingCount &+= Int(missing)
            settleProvisional(missing: missing, recovering: 1)
            timeline.skip(to: first.sequence)
            return .recover(duration: duration)
        }
        provisional &+= duration
        return isLoss ? .conceal(duration: duration) : .comfort(duration: duration)
    }

    /// Drops packets of a number only that are first: no packet before them can be recovered from its successor any more.
    private func dropNumbersOnly() {
        while let first = store.first, first.header.isNumberOnly {
            timeline.passNumber(first.sequence)
            store.removeFirst()
            if timeline.isSoundPaused { settleProvisional(missing: 0) }
        }
    }

    /// Marks `packet` as played or thrown away.
    private func advance(over packet: PacketStore.Entry) {
        playhead = packet.timestamp &+ Int64(packet.duration)
        timeline.pass(packet.sequence, isComfortNoise: packet.header.isComfortNoise)
    }

    /// Counts what was invented as loss, if packets are missing, or as silence that the sender left out; beyond packets
    /// lost in a pause there is silence, too.
    private func settleProvisional(missing: Int64, recovering last: Int64 = 0) {
        guard provisional > 0 else { return }
        let longest = timeline.isSoundPaused ? Int(missing &- last) &* packetDuration : .max
        let lost = missing > 0 ? min(provisional, longest) : 0
        counters.concealedDuration &+= lost
        counters.comfortDuration &+= provisional &- lost
        provisional = 0
    }

    /// The time stamp that is played at `now`, or would be if the sender had gone on.
    private func position(at now: MediaTime) -> Int64 {
        switch state {
        case .waiting(let since): playhead &+ clock.units((now - since).nanoseconds)
        case .starting: 0
        case .playing: playhead
        }
    }

    private func restart() {
        reset()
        counters.restartCount &+= 1
    }

    /// Learns whether the buffer holds more than its delay all the time.
    private func watchSurplus(_ timestamp: Int64) {
        smallestSurplus = min(smallestSurplus, timestamp &- playhead)
        surplusCount &+= 1
        guard surplusCount >= Self.surplusWindow else { return }
        let target = clock.units(delay.nanoseconds)
        let excess = (smallestSurplus &- target) / Int64(max(packetDuration, 1)) &- 1
        excessCount = Int(max(excess, 0))
        surplusCount = 0
        smallestSurplus = .max
    }
}
