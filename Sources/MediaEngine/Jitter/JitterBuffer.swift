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

    /// What is beyond the target by more is thrown away rather than shortened.
    private static var largestSurplus: Int64 { 600_000_000 }
    /// Nothing for so long, and the stream begins anew with the next packet.
    private static var longestSilence: Int64 { 1_000_000_000 }

    enum State: BitwiseCopyable {
        case waiting
        case starting
        case playing
    }

    /// The shortest delay, in nanoseconds.
    private let shortest: Int64
    let clock: StreamClock
    /// What keeps the delay where the bounds are equal.
    private(set) var fixed: FixedDelay?
    // One thread owns these, so checking each access would be a waste of the tick.
    @exclusivity(unchecked) private(set) var store = PacketStore(capacity: JitterBuffer.capacity)
    @exclusivity(unchecked) private(set) var target: DelayTarget
    @exclusivity(unchecked) private(set) var timeline = PacketTimeline()
    @exclusivity(unchecked) var counters = JitterBufferStatistics()
    private(set) var state = State.waiting
    /// The numbers of packets that were thrown away, for whoever takes and empties the list.
    @exclusivity(unchecked) var discarded = PlayoutReport.Numbers()

    /// The timestamp that is decoded next.
    private var playhead: Int64 = 0
    private(set) var packetDuration: Int64 = 0
    @exclusivity(unchecked) var pauses = PauseMeter()
    @exclusivity(unchecked) var demand = StretchDemand()
    /// Units invented since the playhead moved last: they stand for what is missing, or the delay grows by them.
    var invented: Int64 = 0
    /// Whether the last decision invented something.
    private(set) var isConcealing = false
    /// Whether something that was invented since the last packet was played has been counted as an interruption.
    var isInterrupted = false
    /// How much later than the fastest packet the one played last came.
    private(set) var playedLateness: Int64 = 0

    /// A buffer whose delay stays within `bounds`, for a time line of `rate` units per second.
    init(bounds: ClosedRange<Duration>, rate: Int) {
        shortest = bounds.lowerBound.nanoseconds
        clock = StreamClock(rate: rate)
        target = DelayTarget(bounds, clock)
        fixed = bounds.lowerBound == bounds.upperBound ? FixedDelay() : nil
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
        target.noteNumberOnly()
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

    private func learn(_ header: PacketHeader, _ timestamp: Int64, _ duration: Int) {
        guard fixed == nil, let delay = target.learn(header, timestamp, duration) else { return }
        counters.arrivalDelayNanoseconds = delay
        counters.targetDelayNanoseconds = target.delay
    }

    /// The transit from which delays count: of the fastest packet, or of the first where the delay is fixed.
    private var base: Int64 { fixed?.base ?? target.base }

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
        let wait = target.delay
        while let first = store.first {
            let due = clock.nanoseconds(first.timestamp) &+ base &+ wait
            guard now.nanoseconds >= due else { return false }
            let isStale = now.nanoseconds &- due > clock.nanoseconds(Int64(first.duration)) &+ StretchDemand.slack
            guard store.count > 1, isStale else {
                state = .playing
                notePause(before: first)
                noteStall(before: first)
                playhead = first.timestamp
                timeline.skip(to: first.sequence)
                invented = 0
                return true
            }
            notePause(before: first)
            noteStall(before: first)
            discard(first)
        }
        return false
    }

    private func play(_ first: PacketStore.Entry, at now: MediaTime) -> PlayoutDecision {
        if invented > 0 {
            let isPause = notePause(before: first) > 0
            settleInvented(isLoss: isConcealing && !isPause)
        }
        demand.played(surplus: delay(at: now) &- target.delay)
        return play(first)
    }

    private func play(_ first: PacketStore.Entry) -> PlayoutDecision {
        counters.playedCount &+= 1
        target.notePlayed()
        isConcealing = false
        isInterrupted = false
        playedLateness = first.header.arrival.nanoseconds &- clock.nanoseconds(first.timestamp) &- base
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
        let missing = missing(before: first)
        guard missing > 0 else { return decideInSilence(before: first, at: now) }
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
        guard invented == 0, gap >= 2 &* packetDuration else {
            isConcealing = true
            let duration = min(rest, clock.rate / 100)
            invented &+= duration
            return .conceal(duration: Int(duration))
        }
        let silence = gap &- missing
        guard silence <= packetDuration / 2 else {
            // The sender left that out; what is lost lies at its edge.
            let duration = min(silence, clock.rate / 100)
            playhead &+= duration
            counters.comfortDuration &+= Int(duration)
            return .comfort(duration: Int(duration))
        }
        isConcealing = true
        playhead &+= packetDuration
        noteConcealed(packetDuration)
        return .conceal(duration: Int(packetDuration))
    }

    /// Goes on with the packet behind a gap, of which it may hold the last part; in a pause, the rest was silence.
    private func leaveGap(before first: PacketStore.Entry, recovering last: Int64 = 0) {
        let isPause = notePause(before: first) > 0 || timeline.isSoundPaused
        countLoss(first)
        let lost = missing(before: first) &- last
        settleInvented(isLoss: true, atMost: isPause ? max(lost, 0) : .max)
        playhead = first.timestamp
        timeline.skip(to: first.sequence)
        isConcealing = true
    }

    /// The sender left out silence: the next packet is played at its time, whatever was invented before.
    private func decideInSilence(before first: PacketStore.Entry, at now: MediaTime) -> PlayoutDecision {
        let due = clock.nanoseconds(first.timestamp) &+ base &+ target.delay
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
            delay(at: now) &- target.delay > Self.largestSurplus
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

    // MARK: Carrying out

    /// Hands the first packet to `body`; there must be one.
    func withFirst<Result>(_ body: (PacketHeader, Span<UInt8>) -> Result) -> Result { store.withFirst(body) }

    /// Drops the first packet, which has been played.
    func removeFirst() { store.removeFirst() }

    /// Forgets where the source was; packets that wait are thrown away, and counted.
    ///
    /// Their numbers are not told: they say nothing of the source that comes.
    func reset() {
        reset(tellsNumbers: false)
        counters.beginSource()
    }

    /// The source begins new numbers with `number`: its packet follows the newest.
    func beginNumbers(at number: UInt16) { timeline.beginNumbers(at: number) }

    private func reset(tellsNumbers: Bool) {
        store.removeAll { header in
            guard !header.isNumberOnly else { return }
            counters.discardedCount &+= 1
            if tellsNumbers { discarded.append(header.sequenceNumber) }
        }
        state = .waiting
        timeline.reset()
        target.forgetSource()
        invented = 0
        isConcealing = false
        isInterrupted = false
        pauses = PauseMeter()
        demand = StretchDemand()
        if fixed != nil { fixed = FixedDelay() }
    }

    // MARK: Time

    /// The time stamp that is played at `now`, or would be if the sender had gone on.
    private func position(at now: MediaTime) -> Int64 {
        state == .playing ? playhead &+ invented : clock.units(now.nanoseconds &- base &- target.delay)
    }

    /// How long the fastest packet waits if the playhead is decoded at `now`.
    func delay(at now: MediaTime) -> Int64 {
        now.nanoseconds &- clock.nanoseconds(playhead) &- base
    }

    private func dropNumbersOnly() {
        while let first = store.first, first.header.isNumberOnly {
            let isUndecodable = first.header.isUndecodable
            timeline.passNumber(first.sequence, isUndecodable: isUndecodable)
            store.removeFirst()
            if isUndecodable {
                counters.undecodableCount &+= 1
            } else if timeline.isSoundPaused {
                settleInvented(isLoss: false)
            }
        }
    }

    /// Marks `packet` as played or thrown away.
    private func advance(over packet: PacketStore.Entry) {
        playhead = packet.timestamp &+ Int64(packet.duration)
        pauses.passed(until: playhead, packet.header.arrival)
        timeline.pass(packet.sequence, isComfortNoise: packet.header.isComfortNoise)
    }

    /// Takes note of the packets missing before `next`.
    private func countLoss(_ next: PacketStore.Entry) {
        let count = timeline.missingCount(before: next.sequence)
        counters.missingCount &+= Int(count)
        target.noteMissing(count)
    }

    /// Draws the line anew; what waited on the old one is thrown away.
    private func restart() {
        settleInvented(isLoss: isConcealing && pauses.isExpecting)
        reset(tellsNumbers: true)
        counters.restartCount &+= 1
    }
}
