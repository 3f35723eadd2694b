/// Plays what it hears on a card, and goes on without one while the card is away.
///
///     audio ──► card playback ──► [ratio] ──► (card)
///
/// Nothing waits here: what the card does not take is dropped and counted, a card that goes away is opened again by
/// the supervisor, and meanwhile sound is discarded at the pace of the ticks. So is one that stands for 3 s.
/// Where the card has a clock of its own, a resampler follows it, so that the card's buffer stays as full as it was in
/// the beginning. Time in which the card was silent, in an xrun, is left out of the sound, or put in where the card
/// begins with more silence than it had before: what follows is heard as late as ever, to the sample.
/// Events: "xrun", "suspend" (value: frames lost), "stall", "moving" (value: ms that it stood), "cardgone", "cardback",
/// "rate" (value: thousandths of a ppm by which the card's clock is fast), "sample" (see `sampleCommand`).
public final class CardPlaybackFilter: Filter, @unchecked Sendable {
    /// Opens and reopens the card; to be served in the background.
    public let supervisor: CardSupervisor<any CardPlayback>
    /// What has gone through.
    ///
    /// Thread: any.
    public let statistics = LatestValue(CardStatistics())

    private typealias Slot = CardSlot<any CardPlayback>

    /// Whether the card's period starts the ticks, so that there is no drift between the two.
    ///
    /// Thread: to be set before the first tick.
    var setsPace = false

    private let channelCount: Int
    private let resampler: PolyphaseResampler
    /// What the resampler gives in one tick, and silence.
    private let scratch: UnsafeMutableBufferPointer<Int16>
    private var slot: Unmanaged<Slot>?
    private var isActive: Bool
    private var wasGone = false
    private var isWatchingForSample = false
    private var writtenCount: Int64 = 0
    private var stalls = StallDetector()
    private var isHopeless = false
    @exclusivity(unchecked) private var clock: CardClock
    @exclusivity(unchecked) private var counters = CardStatistics()

    /// A filter that plays on `card`, which is not opened yet: see `open`.
    ///
    /// - Parameters:
    ///   - card: Where to play.
    ///   - configuration: What is asked of the card; its format is the input port's.
    ///   - isGated: Whether frames flow only from `activateCommand` on (an audio session).
    public init(_ card: any SoundCard, _ configuration: CardConfiguration, isGated: Bool = false) {
        isActive = !isGated
        let format = configuration.format
        channelCount = format.channelCount
        resampler = PolyphaseResampler(
            from: format.sampleRate,
            to: format.sampleRate,
            channelCount: format.channelCount,
            maximumFrameCount: format.frameCount(in: .milliseconds(20))
        )
        // The longest tick, and what its correction may add.
        scratch = .allocate(capacity: (format.frameCount(in: .milliseconds(100)) + 256) * format.channelCount)
        scratch.initialize(repeating: 0)
        clock = CardClock(.playback, sampleRate: format.sampleRate)
        supervisor = CardSupervisor(
            service: { $0.service },
            open: { now throws(CardError) in try card.openPlayback(configuration, at: now) }
        )
        super.init(
            FilterDescription(
                name: "card playback",
                purpose: "Plays on \(card.description.name).",
                inputs: [.audio(configuration.format)],
                latency: configuration.prefill
            )
        )
    }

    deinit {
        slot?.release()
        scratch.deallocate()
    }

    /// The open card, for a pacer.
    ///
    /// Thread: media.
    var endpoint: (any CardEndpoint)? { slot?._withUnsafeGuaranteedRef { $0.endpoint } }

    /// Opens the card on the caller's thread, to be used from the next tick on.
    ///
    /// Without this call the supervisor does it in the background, once a tick has found that there is no card.
    ///
    /// - Throws: `CardError` when it cannot be opened.
    public func open(at now: MediaTime) throws(CardError) { try supervisor.open(at: now) }

    /// Lets frames flow, and has the card opened if it is not.
    public var activateCommand: GraphCommand { GraphCommand(to: self, "activate") }

    /// Stops the flow and closes the card, which others may then use.
    public var deactivateCommand: GraphCommand { GraphCommand(to: self, "release") }

    /// Asks for one event "sample" when the next sample that is not silent is handed to the card: its value is the
    /// frames queued in the card before the block, its detail the index of the frame in the block.
    public var sampleCommand: GraphCommand { GraphCommand(to: self, "sample") }

    /// Obeys the commands above.
    ///
    /// Thread: media.
    public override func handle(_ command: GraphCommand) {
        switch command.name {
        case "activate":
            isActive = true
        case "release":
            isActive = false
            supervisor.withdraw()
            if let slot = slot.take() { supervisor.retire(slot) }
        case "sample":
            isWatchingForSample = true
        default:
            break
        }
    }

    /// Hands the block to the card.
    ///
    /// Thread: media.
    public override func process(_ io: borrowing FilterIO) {
        supervisor.noteTick(io.time)
        guard isActive else { return }
        adopt(io)
        let block = io.input()
        defer { statistics.publish(counters) }
        guard let slot else {
            supervisor.report()
            counters.framesWithoutCard &+= block.frameCount
            return
        }
        let card = slot._withUnsafeGuaranteedRef { $0.endpoint }
        if isWatchingForSample { watchForSample(io, card) }
        let isGone = play(block, on: card, io)
        if isGone || isHopeless {
            lose(slot, io)
            counters.latencyFrames = 0
        }
    }

    /// Plays `block` at the pace of the card; answers whether the card is gone.
    private func play(_ block: AudioBlock, on card: any CardPlayback, _ io: borrowing FilterIO) -> Bool {
        let follows = card.drifts && !setsPace
        let look = card.isClocked ? io.time + io.lateness : io.time
        let passed = clock.advance(to: io.time, look: look, tickDuration: io.tickDuration)
        clock.alignment.move(by: -passed.frames)
        clock.alignment.skip(passed.skipped &* block.frameCount)
        var condition = insertSilence(block.frameCount, card, io)
        let frameCount: Int
        if follows {
            var samples = scratch.mutableSpan
            frameCount = resampler.process(block.samples, into: &samples).produced
        } else {
            frameCount = block.frameCount
        }
        clock.alignment.move(by: Double(frameCount))
        let skipped = min(max(-clock.alignment.correction, 0), frameCount)
        if skipped > 0 {
            clock.alignment.correct(-skipped)
            counters.framesLost &+= skipped
        }
        var accepted = 0
        if skipped < frameCount, condition != .gone {
            let range = (skipped &* channelCount)..<(frameCount &* channelCount)
            let transfer =
                follows
                ? card.write(scratch.span.extracting(range), at: io.time)
                : card.write(block.samples.extracting(range), at: io.time)
            accepted = transfer.frameCount
            count(transfer, of: frameCount &- skipped, io)
            if transfer.condition != .running { condition = transfer.condition }
        }
        guard condition != .gone else { return true }
        let queued = card.queuedFrameCount(at: io.time)
        counters.latencyFrames = queued
        align(queued, condition, isWhole: accepted == frameCount &- skipped, io)
        if follows, condition == .running, clock.alignment.isCalm {
            follow(queued, frameCount, look: look, io)
        }
        return false
    }

    /// Brings what follows to its place, given the frames that the card has queued after this block.
    private func align(_ queued: Int, _ condition: CardTransfer.Condition, isWhole: Bool, _ io: borrowing FilterIO) {
        if condition == .xrun || condition == .suspended {
            clock.noteBreak()
            if !clock.alignment.repair(actual: queued, at: io.time) { clock.accept(level: queued) }
        } else if !clock.alignment.isKnown {
            clock.accept(level: queued)
        } else if isWhole {
            if !clock.alignment.confirm(actual: queued, at: io.time) { clock.accept(level: queued) }
        } else {
            counters.shortages &+= 1
            clock.noteBreak()
            clock.alignment.disturb()
        }
    }

    /// Measures the card's rate, and moves the ratio so that the level stays.
    private func follow(_ queued: Int, _ frameCount: Int, look: MediaTime, _ io: borrowing FilterIO) {
        clock.observe(frames: writtenCount &- Int64(queued), at: look)
        let late = Double((look - io.time).nanoseconds) * clock.sampleRate / 1e9
        resampler.ppm = clock.control(level: Double(queued &- frameCount) + late, tickDuration: io.tickDuration)
        counters.correctionPPM = resampler.ppm
        counters.note(ppm: clock.ppm)
        if let news = clock.takeNews() { io.emit("rate", value: news) }
    }

    /// Puts silence in front of the block where sound is missing, as far as the card has room for both.
    private func insertSilence(
        _ blockCount: Int,
        _ card: any CardPlayback,
        _ io: borrowing FilterIO
    ) -> CardTransfer.Condition {
        guard clock.alignment.correction > 0 else { return .running }
        let queued = card.queuedFrameCount(at: io.time)
        // A card that has run dry begins with silence of its own, and is seen to after that.
        guard queued > 0 else { return .running }
        let room = card.bufferFrameCount &- queued &- blockCount
        let count = min(clock.alignment.correction, room, scratch.count / channelCount)
        guard count > 0 else { return .running }
        let silence = UnsafeMutableBufferPointer(rebasing: scratch[..<(count &* channelCount)])
        silence.update(repeating: 0)
        let transfer = card.write(UnsafeBufferPointer(silence).span, at: io.time)
        writtenCount &+= Int64(transfer.frameCount)
        counters.framesInserted &+= transfer.frameCount
        clock.alignment.correct(transfer.frameCount)
        if transfer.condition != .running { counters.note(transfer, io) }
        return transfer.condition
    }

    private func adopt(_ io: borrowing FilterIO) {
        guard let fresh = supervisor.take() else { return }
        if let slot { supervisor.retire(slot) }
        slot = fresh
        stalls.reset()
        isHopeless = false
        writtenCount = 0
        clock.reset()
        resampler.reset()
        resampler.ppm = 0
        guard wasGone else { return }
        wasGone = false
        counters.reopenings &+= 1
        io.emit("cardback")
    }

    private func lose(_ lost: Unmanaged<Slot>, _ io: borrowing FilterIO) {
        supervisor.retire(lost)
        supervisor.report()
        slot = nil
        wasGone = true
        counters.disappearances &+= 1
        io.emit("cardgone")
    }

    private func count(_ transfer: CardTransfer, of frameCount: Int, _ io: borrowing FilterIO) {
        counters.frames &+= transfer.frameCount
        writtenCount &+= Int64(transfer.frameCount)
        if transfer.condition == .gone {
            counters.framesWithoutCard &+= frameCount
            return
        }
        counters.framesLost &+= frameCount &- transfer.frameCount
        counters.note(transfer, io)
        isHopeless = counters.note(stalls.look(moved: transfer.frameCount > 0, at: io.time), io)
    }

    private func watchForSample(_ io: borrowing FilterIO, _ card: any CardPlayback) {
        let block = io.input()
        let samples = block.samples
        for index in samples.indices where samples[index] != 0 {
            isWatchingForSample = false
            let queued = card.queuedFrameCount(at: io.time)
            io.emit("sample", value: Int64(queued), detail: Int64(index / block.channelCount))
            return
        }
    }
}
