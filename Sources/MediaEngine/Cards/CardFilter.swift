import CallBasics
import Synchronization

/// One direction of a card in the graph, with a card or without one.
///
///     playback   audio ──► card playback ──► [ratio] ──► (card)
///     capture    (card) ──► [ratio] ──► card capture ──► audio
///
/// Nothing waits here. Without a card, sound is discarded at the pace of the ticks, and silence is recorded. Where the
/// card has a clock of its own, a resampler follows it, unless the card makes the ticks. Xruns, stalls and late frames
/// are made good so that what follows is as late as before, to the sample. A card that goes away, or stands for 3 s,
/// is given back to its route, which opens one again. What happens is counted; the route tells of it.
/// Thread: `process` and `withCard` media; the rest control.
package final class CardFilter: Filter, @unchecked Sendable {
    /// Ticks that began at `start` or later, and before `end`, had no card; `end` is nil until there is one again.
    private struct Absence: BitwiseCopyable {
        var start = MediaTime.zero
        var end: MediaTime? = MediaTime.zero
    }

    /// Whether it plays or records.
    package let direction: CardDirection
    /// What has gone through.
    ///
    /// Thread: any.
    package let statistics = LatestValue(CardStatistics())

    /// Whether the card's period starts the ticks, so that there is no drift between the two.
    ///
    /// Thread: media.
    var setsPace = false

    let channelCount: Int
    let resampler: Resampler
    /// What goes into the resampler or comes out of it in one tick; silence; frames that are thrown away.
    let scratch: UnsafeMutableBufferPointer<Int16>
    /// Frames that the present card has moved.
    var movedCount: Int64 = 0
    var stalls = StallDetector()
    /// Whether the card has turned out to be of no further use in this tick.
    var isGone = false
    var hasNews = false
    var clock: CardClock
    var counters = CardStatistics()

    // Of capture alone.
    var isFlowing = false
    var lastAvailable = 0

    private let holder = CardHolder()
    /// The media thread's own copy of `lastAbsence`.
    private var absence = Absence()
    private let lastAbsence = LatestValue(Absence())
    private let isAwaited = Atomic(false)
    private let onNews: @Sendable () -> Void
    private var wasGone = false
    private var wasFollowing = false

    /// A filter without a card.
    ///
    /// - Parameters:
    ///   - direction: Whether it plays or records.
    ///   - configuration: What is asked of cards; its format is the port's.
    ///   - name: Which card that is, for people.
    ///   - onNews: Called by the media thread when `statistics` tell of an xrun, a loss or a card's first frames, or when
    ///     a card is to be reclaimed; it must not wait.
    init(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        name: String,
        onNews: @escaping @Sendable () -> Void
    ) {
        self.direction = direction
        self.onNews = onNews
        let format = configuration.format
        channelCount = format.channelCount
        resampler = Resampler(
            from: format.sampleRate,
            to: format.sampleRate,
            channelCount: format.channelCount,
            quality: .low,
            followsDrift: true,
            maximumFrameCount: format.frameCount(in: .milliseconds(20))
        )
        // The longest tick, and what its correction may add.
        scratch = .allocate(capacity: (format.frameCount(in: .milliseconds(100)) + 256) * format.channelCount)
        scratch.initialize(repeating: 0)
        clock = CardClock(direction, sampleRate: format.sampleRate)
        let isPlayback = direction == .playback
        super.init(
            FilterDescription(
                name: "card \(direction)",
                purpose: "\(isPlayback ? "plays on" : "records from") \(name)",
                inputs: isPlayback ? [.audio(format)] : [],
                outputs: isPlayback ? [] : [.audio(format)],
                latency: isPlayback ? configuration.prefill : configuration.period
            )
        )
    }

    deinit {
        scratch.deallocate()
    }

    // MARK: Control

    /// Uses `slot` from the next tick on; answers the card before, to be released, unless the media thread has it just now.
    func put(_ slot: CardSlot) -> Unmanaged<CardSlot>? { holder.put(slot) }

    /// Uses no card any more; answers it, to be released, unless the media thread has it just now.
    func take() -> Unmanaged<CardSlot>? { holder.take() }

    /// The cards that the media thread is done with, to be released.
    func reclaim() -> [Unmanaged<CardSlot>] { holder.reclaim() }

    /// Whether somebody wants a card: then frames without one count.
    func setAwaited(_ isAwaited: Bool) { self.isAwaited.store(isAwaited, ordering: .relaxed) }

    /// Whether the tick that began at `time`, the time of its events, had a card.
    ///
    /// Of ticks without one only the last that followed each other are known, so it is asked soon after.
    /// Thread: any.
    func hadCard(at time: MediaTime) -> Bool {
        let absence = lastAbsence.value
        guard time >= absence.start else { return true }
        guard let end = absence.end else { return false }
        return time >= end
    }

    // MARK: Media

    /// Hands the card to `body`, if there is one; for a pacer, between two ticks.
    func withCard<Result>(_ body: (any CardEndpoint) -> Result) -> Result? {
        guard let slot = holder.borrow() else { return nil }
        let result = use(slot, body)
        if !holder.giveBack(slot) { onNews() }
        return result
    }

    /// The reference to the card ends before the card is given back, so that it is never freed here.
    private func use<Result>(_ slot: Unmanaged<CardSlot>, _ body: (any CardEndpoint) -> Result) -> Result {
        body(slot._withUnsafeGuaranteedRef { $0.endpoint })
    }

    /// Moves a block to the card, or from there.
    package override func process(_ io: borrowing FilterIO) {
        guard let slot = holder.borrow() else {
            note(hasCard: false, io)
            return processWithoutCard(io)
        }
        let number = slot._withUnsafeGuaranteedRef { $0.number }
        if number != counters.cardNumber { adopt(number) }
        process(slot, io)
        note(hasCard: !isGone, io)
        if isGone {
            lose()
            holder.retire(slot)
        } else if !holder.giveBack(slot) {
            hasNews = true
        }
        if counters.latencyFrames > 0 { counters.lastLatencyFrames = counters.latencyFrames }
        statistics.publish(counters)
        guard hasNews else { return }
        hasNews = false
        onNews()
    }

    private func process(_ slot: Unmanaged<CardSlot>, _ io: borrowing FilterIO) {
        let card = slot._withUnsafeGuaranteedRef { $0.endpoint }
        let follows = card.drifts && !setsPace
        if follows != wasFollowing {
            wasFollowing = follows
            resampler.reset()
            resampler.ppm = 0
            clock.noteBreak()
        }
        switch direction {
        case .playback: play(io.input(), on: card, follows, io)
        case .capture:
            let block = io.output()
            if !record(block, from: card, follows, io) { block.fillWithSilence() }
        }
    }

    private func processWithoutCard(_ io: borrowing FilterIO) {
        let block = direction == .playback ? io.input() : io.output()
        if direction == .capture { block.fillWithSilence() }
        guard isAwaited.load(ordering: .relaxed) else { return }
        counters.framesWithoutCard &+= block.frameCount
        counters.latencyFrames = 0
        statistics.publish(counters)
    }

    private func note(hasCard: Bool, _ io: borrowing FilterIO) {
        guard hasCard != (absence.end != nil) else { return }
        let time = io.time + io.lateness
        if hasCard { absence.end = time } else { absence = Absence(start: time, end: nil) }
        lastAbsence.publish(absence)
    }

    private func adopt(_ number: Int) {
        counters.cardNumber = number
        counters.cardFrames = 0
        movedCount = 0
        isFlowing = false
        lastAvailable = 0
        stalls.reset()
        clock.reset()
        resampler.reset()
        resampler.ppm = 0
        guard wasGone else { return }
        wasGone = false
        counters.reopenings &+= 1
    }

    private func lose() {
        isGone = false
        wasGone = true
        hasNews = true
        counters.disappearances &+= 1
        counters.lostCardNumber = counters.cardNumber
        counters.latencyFrames = 0
    }

    // MARK: What goes wrong

    /// Counts frames that have gone through.
    func count(frames: Int) {
        if frames > 0, counters.cardFrames == 0 { hasNews = true }
        counters.frames &+= frames
        counters.cardFrames &+= frames
    }

    /// Counts what was wrong with `transfer`.
    func note(_ transfer: CardTransfer) {
        counters.framesLost &+= transfer.lostFrameCount
        switch transfer.condition {
        case .xrun:
            counters.xruns &+= 1
            counters.framesLostInXruns &+= transfer.lostFrameCount
            hasNews = true
        case .suspended: counters.suspends &+= 1
        case .running, .gone: break
        }
    }

    /// Counts a stall; a card that stands for too long is given up.
    func watchForStall(moved: Bool, at now: MediaTime) {
        switch stalls.look(moved: moved, at: now) {
        case .nothing: break
        case .stalled: counters.stalls &+= 1
        case .hopeless: isGone = true
        }
    }

    /// Measures the card's rate, and moves the ratio so that the level stays.
    ///
    /// - Parameters:
    ///   - frames: Frames that the card has moved in all.
    ///   - level: Frames in the card when the tick was due.
    ///   - look: When the card was seen.
    ///   - io: The tick.
    func follow(frames: Int64, level: Double, look: MediaTime, _ io: borrowing FilterIO) {
        clock.observe(frames: frames, at: look)
        resampler.ppm = clock.control(level: level, tickDuration: io.tickDuration)
        counters.correctionPPM = resampler.ppm
        counters.note(ppm: clock.ppm)
    }

    /// Frames that a card moves by its clock between the time a tick was due and when it looked.
    func lateFrames(at look: MediaTime, _ io: borrowing FilterIO) -> Double {
        Double((look - io.time).nanoseconds) * clock.sampleRate / 1e9
    }
}
