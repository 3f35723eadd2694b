import CallBasics
import RTP

/// Decides when each packet is played: holds packets back so that those that come late still come in time, as long as
/// nearly all packets need, and no longer.
///
/// Pure: packets and times go in, decisions come out. A `Playout` carries the decisions out with a decoder.
///
/// Time is what it counts in. The playhead is the time stamp to be decoded next; how much later than the fastest packet
/// it stands is the playout delay. That is compared with the target whenever a packet is played: too short, and sound
/// is to be lengthened; too long, and shortened. Where the sender leaves out silence, the delay is set right for free.
///
/// A packet that is not there when its time comes is concealed without moving the playhead, since it may only be late:
/// if it comes, it is played, and the delay has grown by what was concealed. If a later one comes first, what was
/// concealed counts for the missing one. While copies of lost packets (in-band FEC, RED) are there and needed, the
/// target leaves room for the packets that hold them to come in time.
///
/// With equal bounds the delay is fixed and nothing is stretched: see `FixedDelay`.
/// Units: durations and places in units of the time line's rate.
/// Thread: media; nothing allocates after `init`.
final class JitterBuffer {
    /// Packets that can wait: 2.56 s of 10 ms packets.
    static let capacity = 256

    /// The delay is right between the target and so much more.
    private static var slack: Int64 { 18_000_000 }
    /// Shortening stops so far above the target: a tick is 10 ms, and a packet must be there when the tick begins.
    private static var guardInterval: Int64 { 10_000_000 }
    /// What is beyond the target by more is thrown away rather than shortened.
    private static var largestSurplus: Int64 { 600_000_000 }
    /// Nothing for so long, and the stream begins anew with the next packet.
    private static var longestSilence: Int64 { 1_000_000_000 }
    /// The loss from which on copies of lost packets are waited for, and below which no longer.
    private static var notableLoss: Float { 0.01 }
    private static var negligibleLoss: Float { 0.004 }
    /// The share of packets with a copy from which on copies are waited for: silence has none.
    private static var notableCopies: Float { 0.2 }

    private enum State: BitwiseCopyable {
        case waiting
        case starting
        case playing
    }

    /// The bounds of the target, in nanoseconds.
    private let shortest: Int64
    private let longest: Int64
    private let clock: StreamClock
    /// What keeps the delay where the bounds are equal.
    private var fixed: FixedDelay?
    // One thread owns these, so checking each access would be a waste of the tick.
    @exclusivity(unchecked) private var store = PacketStore(capacity: JitterBuffer.capacity)
    @exclusivity(unchecked) private var estimator = DelayEstimator()
    @exclusivity(unchecked) private var timeline = PacketTimeline()
    @exclusivity(unchecked) private var counters = JitterBufferStatistics()
    private var state = State.waiting
    /// The numbers of packets that were thrown away, for whoever takes and empties the list.
    @exclusivity(unchecked) var discarded = PlayoutReport.Numbers()

    /// The timestamp that is decoded next.
    private var playhead: Int64 = 0
    private var packetDuration: Int64 = 0
    /// Units invented since the playhead moved last: they stand for what is missing, or the delay grows by them.
    private var invented: Int64 = 0
    /// Whether the last decision invented something.
    private var isConcealing = false
    /// How much earlier than needed the last packet would have had to come; below 0 when the delay is too short.
    private var margin: Int64 = 0
    /// The share of packets that are lost, smoothed over about 200 packets.
    private var loss: Float = 0
    /// The share of packets that come with copies of earlier ones (in-band FEC, RED), smoothed over about 50 packets.
    private var copies: Float = 0
    /// How far back copies reach, in units.
    private var copyReach: Int64 = 0
    /// The time stamp of the oldest copy since the last packet that was no copy.
    private var oldestCopy: Int64?
    /// Whether the target leaves room for copies.
    private var waitsForCopies = false

    /// A buffer whose delay stays within `bounds`, for a time line of `rate` units per second.
    init(bounds: ClosedRange<Duration>, rate: Int) {
        shortest = bounds.lowerBound.nanoseconds
        longest = bounds.upperBound.nanoseconds
        clock = StreamClock(rate: rate)
        fixed = shortest == longest ? FixedDelay() : nil
    }

    /// Packets that wait.
    var count: Int { store.count }

    /// What became of packets so far.
    var statistics: JitterBufferStatistics { counters }

    // MARK: Packets

    /// Takes a packet that arrived at `header.arrival`, lies at `header.position` and lasts `duration`, or one of a number
    /// only, which lasts 0; unless it is late, there already, or too far ahead.
    func insert(_ header: PacketHeader, payload: Span<UInt8>, duration: Int) -> InsertionResult {
        guard !header.isNumberOnly else { return insertNumberOnly(header, payload) }
        var result = InsertionResult.accepted
        var (sequence, timestamp, isMoved) = timeline.place(of: header, position: position(at: header.arrival))
        learn(header, timestamp, duration)
        // With a fixed delay, what was invented has taken the place of what comes now.
        if state == .playing, timestamp &+ Int64(duration) <= playhead &+ (fixed == nil ? 0 : invented) {
            guard !header.isRedundant else { return .late }
            guard fixed?.noteLate() == true else {
                counters.lateCount &+= 1
                return .late
            }
            restart()
            (sequence, timestamp, isMoved) = timeline.place(of: header, position: 0)
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
        if !header.isComfortNoise || packetDuration == 0 { packetDuration = Int64(duration) }
        if state == .waiting {
            state = .starting
            // What was moved to where it would be played now is played now, so that what follows keeps its delay.
            fixed?.base = header.arrival.nanoseconds &- clock.nanoseconds(timestamp) &- (isMoved ? shortest : 0)
        } else if state == .playing, !isMoved {
            fixed?.note(
                ahead: timestamp &- playhead &- invented,
                target: clock.units(shortest),
                packetDuration: packetDuration
            )
        }
        return result
    }

    /// Keeps the place of a packet of another kind, so that its number is not missed.
    private func insertNumberOnly(_ header: PacketHeader, _ payload: Span<UInt8>) -> InsertionResult {
        oldestCopy = nil
        guard let place = timeline.placeOfNumber(header.sequenceNumber) else { return .accepted }
        if state == .playing, place.sequence <= timeline.playedSequence { return .late }
        return store.insert(
            header,
            payload: payload,
            sequence: place.sequence,
            timestamp: place.timestamp,
            duration: 0
        )
    }

    /// Learns from a packet's arrival, and from what it holds of others: a copy says nothing of the network, but how
    /// far back copies reach.
    private func learn(_ header: PacketHeader, _ timestamp: Int64, _ duration: Int) {
        guard fixed == nil else { return }
        guard !header.isRedundant else {
            oldestCopy = min(oldestCopy ?? timestamp, timestamp)
            return
        }
        let oldest = oldestCopy
        oldestCopy = nil
        // Noise has no haste: when it is sent, and with which time stamp, differs from sender to sender.
        guard !header.isComfortNoise || !estimator.hasBase else { return }
        counters.arrivalDelayNanoseconds = estimator.add(
            arrival: header.arrival.nanoseconds,
            mediaTime: clock.nanoseconds(timestamp),
            length: clock.nanoseconds(Int64(duration))
        )
        let reach = oldest.map { timestamp &- $0 } ?? (header.carriesCopy ? Int64(duration) : 0)
        if reach > 0 { copyReach = reach }
        copies += ((reach > 0 ? 1 : 0) - copies) / 50
        waitsForCopies =
            copies >= Self.notableCopies && loss >= (waitsForCopies ? Self.negligibleLoss : Self.notableLoss)
        counters.targetDelayNanoseconds = targetDelay
    }

    /// The transit from which delays count: of the fastest packet, or of the first where the delay is fixed.
    private var base: Int64 { fixed?.base ?? estimator.base }

    /// How long the packet of that transit is to wait.
    private var targetDelay: Int64 {
        let high = estimator.highDelay
        // Where there is jitter there will be more.
        var target = high &+ min(high / 4, Self.guardInterval)
        if waitsForCopies { target = max(target, estimator.commonDelay &+ clock.nanoseconds(copyReach)) }
        return min(max(target, shortest), longest)
    }

    // MARK: Decisions

    /// Tells what is to be played next at `now`.
    func decide(at now: MediaTime) -> PlayoutDecision {
        dropNumbersOnly()
        switch state {
        case .waiting: return .idle
        case .starting:
            guard begin(at: now) else { return .idle }
        case .playing: break
        }
        discardSurplus(at: now)
        guard let first = store.first else { return decideWithoutPackets() }
        guard first.timestamp <= playhead &+ clock.rate / 2000 else { return decideInGap(before: first, at: now) }
        if store.count > 1, fixed?.takesDiscard() == true {
            // The sender is ahead of the line: what comes after a pause, too.
            fixed?.base &-= clock.nanoseconds(Int64(first.duration))
            discard(first)
            return decide(at: now)
        }
        return play(first, at: now)
    }

    /// Plays the packet that follows what was decided last ahead of its time, if it is there.
    func playAhead() -> PlayoutDecision {
        guard state == .playing, let first = store.first, !first.header.isNumberOnly,
            first.timestamp <= playhead &+ clock.rate / 2000
        else { return .idle }
        return play(first)
    }

    /// Starts when the first packet's time has come; stale ones that a stall held up are thrown away.
    private func begin(at now: MediaTime) -> Bool {
        let target = targetDelay
        while let first = store.first {
            let due = clock.nanoseconds(first.timestamp) &+ base &+ target
            guard now.nanoseconds >= due else { return false }
            let isStale = now.nanoseconds &- due > clock.nanoseconds(Int64(first.duration)) &+ Self.slack
            guard store.count > 1, isStale else {
                state = .playing
                notePause(before: first)
                playhead = first.timestamp
                timeline.skip(to: first.sequence)
                invented = 0
                return true
            }
            discard(first)
        }
        return false
    }

    private func play(_ first: PacketStore.Entry, at now: MediaTime) -> PlayoutDecision {
        if invented > 0 { settleInvented(isLoss: isConcealing) }
        margin = delay(at: now) &- targetDelay
        return play(first)
    }

    private func play(_ first: PacketStore.Entry) -> PlayoutDecision {
        counters.playedCount &+= 1
        loss -= loss / 200
        isConcealing = false
        advance(over: first)
        return .play
    }

    /// Nothing waits: the packet may be late or lost, or the sender may be silent; its successor will tell, unless the
    /// sender has gone over to packets of another kind.
    private func decideWithoutPackets() -> PlayoutDecision {
        let step = clock.rate / 100
        guard clock.nanoseconds(invented) < Self.longestSilence else {
            settleInvented(isLoss: false)
            state = .waiting
            return .idle
        }
        invented &+= step
        isConcealing = !timeline.isSoundPaused
        return isConcealing ? .conceal(duration: Int(step)) : .comfort(duration: Int(step))
    }

    /// Packets wait, but not the one that is due.
    private func decideInGap(before first: PacketStore.Entry, at now: MediaTime) -> PlayoutDecision {
        guard timeline.missingCount(before: first.sequence) > 0 else { return decideInSilence(before: first, at: now) }
        let gap = first.timestamp &- playhead
        // What was invented so far stands for the beginning of the gap, of which the last packet may be recoverable.
        let rest = gap &- invented
        if rest <= packetDuration, rest >= packetDuration / 2 {
            let last = min(gap, packetDuration)
            leaveGap(before: first, recovering: last)
            return .recover(duration: Int(last))
        }
        if rest <= 0 {
            leaveGap(before: first)
            return play(first, at: now)
        }
        isConcealing = true
        guard invented == 0, gap >= 2 &* packetDuration else {
            let duration = min(rest, clock.rate / 100)
            invented &+= duration
            return .conceal(duration: Int(duration))
        }
        playhead &+= packetDuration
        counters.concealedDuration &+= Int(packetDuration)
        return .conceal(duration: Int(packetDuration))
    }

    /// Goes on with the packet behind a gap, of which it may hold the last part; in a pause, the rest was silence.
    private func leaveGap(before first: PacketStore.Entry, recovering last: Int64 = 0) {
        let lost = countLoss(first) &* packetDuration &- last
        settleInvented(isLoss: true, atMost: timeline.isSoundPaused ? max(lost, 0) : .max)
        playhead = first.timestamp
        timeline.skip(to: first.sequence)
        isConcealing = true
    }

    /// The sender left out silence: the next packet is played at its time, whatever was invented before.
    private func decideInSilence(before first: PacketStore.Entry, at now: MediaTime) -> PlayoutDecision {
        let due = clock.nanoseconds(first.timestamp) &+ base &+ targetDelay
        let rest = clock.units(due &- now.nanoseconds)
        guard rest > 0 else {
            settleInvented(isLoss: false)
            notePause(before: first)
            playhead = first.timestamp
            return play(first, at: now)
        }
        let duration = min(rest, clock.rate / 100)
        invented &+= duration
        return .comfort(duration: Int(duration))
    }

    /// Throws away what no stretching could make up for.
    private func discardSurplus(at now: MediaTime) {
        guard fixed == nil else { return }
        while store.count > 1, let first = store.first, first.timestamp <= playhead,
            delay(at: now) &- targetDelay > Self.largestSurplus
        {
            discard(first)
        }
    }

    private func discard(_ first: PacketStore.Entry) {
        counters.discardedCount &+= 1
        discarded.append(first.header.sequenceNumber)
        advance(over: first)
        store.removeFirst()
        dropNumbersOnly()
    }

    // MARK: Stretching

    /// By how many units the sound that waits is to grow (above 0) or shrink (below 0).
    func wishedStretch(at now: MediaTime, pending: Int) -> Int {
        guard state == .playing, fixed == nil else { return 0 }
        let current = delay(at: now) &+ clock.nanoseconds(Int64(pending))
        counters.playoutDelayNanoseconds = current
        guard !isConcealing else { return 0 }
        if margin < 0 { return Int(clock.units(-margin)) }
        let surplus = current &- targetDelay
        guard surplus > Self.slack else { return 0 }
        return -Int(clock.units(surplus &- Self.guardInterval))
    }

    /// Whether so much waits too long that sound may be shortened less carefully.
    func isUrgent(_ stretch: Int) -> Bool { abs(clock.nanoseconds(Int64(stretch))) > 60_000_000 }

    /// Hears that the sound that waits has grown by `units`, or shrunk when below 0.
    func stretched(by units: Int) {
        if units > 0 {
            counters.expandedDuration &+= units
            margin &+= clock.nanoseconds(Int64(units))
        } else {
            counters.acceleratedDuration &-= units
        }
    }

    // MARK: Carrying out

    /// Hands the first packet to `body`; there must be one.
    func withFirst<Result>(_ body: (PacketHeader, Span<UInt8>) -> Result) -> Result {
        guard let first = store.first else { preconditionFailure("the buffer is empty") }
        return store.withFirstPayload { body(first.header, $0) }
    }

    /// Drops the first packet, which has been played.
    func removeFirst() {
        store.removeFirst()
    }

    /// Takes note that a lost packet was not in its successor after all.
    func recoveryFailed(duration: Int) {
        counters.concealedDuration &+= duration
    }

    /// Forgets where the source was; packets that wait are thrown away, and counted.
    ///
    /// Their numbers are not told: they say nothing of the source that comes.
    func reset() { reset(tellsNumbers: false) }

    private func reset(tellsNumbers: Bool) {
        store.removeAll { header in
            guard !header.isNumberOnly else { return }
            counters.discardedCount &+= 1
            if tellsNumbers { discarded.append(header.sequenceNumber) }
        }
        state = .waiting
        timeline.reset()
        estimator.forgetBase()
        invented = 0
        isConcealing = false
        oldestCopy = nil
        margin = 0
        if fixed != nil { fixed = FixedDelay() }
    }

    // MARK: Time

    /// The time stamp that is played at `now`, or would be if the sender had gone on.
    private func position(at now: MediaTime) -> Int64 {
        state == .playing ? playhead &+ invented : clock.units(now.nanoseconds &- base &- targetDelay)
    }

    /// How long the fastest packet waits if the playhead is decoded at `now`.
    private func delay(at now: MediaTime) -> Int64 {
        now.nanoseconds &- clock.nanoseconds(playhead) &- base
    }

    private func dropNumbersOnly() {
        while let first = store.first, first.header.isNumberOnly {
            timeline.passNumber(first.sequence)
            store.removeFirst()
            if timeline.isSoundPaused { settleInvented(isLoss: false) }
        }
    }

    /// Marks `packet` as played or thrown away.
    private func advance(over packet: PacketStore.Entry) {
        playhead = packet.timestamp &+ Int64(packet.duration)
        timeline.pass(packet.sequence, isComfortNoise: packet.header.isComfortNoise)
    }

    /// Takes note of the packets missing before `next`, and answers how many.
    private func countLoss(_ next: PacketStore.Entry) -> Int64 {
        let count = timeline.missingCount(before: next.sequence)
        counters.missingCount &+= Int(count)
        let missing = Float(min(count, 10))
        loss += missing * (1 - loss) / 200
        return count
    }

    /// Counts what was invented as loss, or as silence that the sender left out; what is beyond a loss is silence, too.
    private func settleInvented(isLoss: Bool, atMost longest: Int64 = .max) {
        let lost = isLoss ? min(invented, longest) : 0
        counters.concealedDuration &+= Int(lost)
        counters.comfortDuration &+= Int(invented &- lost)
        invented = 0
    }

    /// Counts what lies between the playhead and `next` as a pause of the sender, unless a number is missing there.
    private func notePause(before next: PacketStore.Entry) {
        guard timeline.hasPlayed, timeline.missingCount(before: next.sequence) == 0 else { return }
        counters.pausedDuration &+= Int(max(next.timestamp &- playhead, 0))
    }

    /// Draws the line anew; what waited on the old one is thrown away.
    private func restart() {
        reset(tellsNumbers: true)
        counters.restartCount &+= 1
    }
}
