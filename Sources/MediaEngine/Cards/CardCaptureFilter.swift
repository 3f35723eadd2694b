/// Gives what a card records, and silence while the card is away.
///
///     (card) ──► [ratio] ──► card capture ──► audio
///
/// A tick needs a whole block, and a card moves by periods of its own: the filter begins when enough frames for a tick
/// and a little more are there, and from then on holds that level. Where the card has a clock of its own, a resampler
/// follows it; a card that makes the ticks, or has no clock, is read as it is.
/// Frames that an xrun has lost are replaced by as many of silence, and frames that come too late are left out, so that
/// what is recorded stays as late as it was, to the sample. What exceeds a few blocks is dropped. A card that goes
/// away, or stands for 3 s, is opened again.
/// Events: "xrun", "suspend" (value: frames lost), "stall", "moving" (value: ms that it stood), "cardgone", "cardback",
/// "dropped" (value: frames), "rate" (value: thousandths of a ppm by which the card's clock is fast).
public final class CardCaptureFilter: Filter, @unchecked Sendable {
    /// Opens and reopens the card; to be served in the background.
    public let supervisor: CardSupervisor<any CardCapture>
    /// What has gone through.
    ///
    /// Thread: any.
    public let statistics = LatestValue(CardStatistics())

    private typealias Slot = CardSlot<any CardCapture>

    /// Whether the card's period starts the ticks, so that there is no drift between the two.
    ///
    /// Thread: to be set before the first tick.
    var setsPace = false

    private let channelCount: Int
    private let resampler: PolyphaseResampler
    /// What the resampler takes in one tick, and what is thrown away.
    private let scratch: UnsafeMutableBufferPointer<Int16>
    private var slot: Unmanaged<Slot>?
    private var isActive: Bool
    private var isFlowing = false
    private var wasGone = false
    private var lastAvailable = 0
    private var readCount: Int64 = 0
    private var stalls = StallDetector()
    @exclusivity(unchecked) private var clock: CardClock
    @exclusivity(unchecked) private var counters = CardStatistics()

    /// A filter that records from `card`, which is not opened yet: see `open`.
    ///
    /// - Parameters:
    ///   - card: Where to record.
    ///   - configuration: What is asked of the card; its format is the output port's.
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
        scratch = .allocate(capacity: (format.frameCount(in: .milliseconds(100)) + 64) * format.channelCount)
        scratch.initialize(repeating: 0)
        clock = CardClock(.capture, sampleRate: format.sampleRate)
        supervisor = CardSupervisor(
            service: { $0.service },
            open: { now throws(CardError) in try card.openCapture(configuration, at: now) }
        )
        super.init(
            FilterDescription(
                name: "card capture",
                purpose: "Records from \(card.description.name).",
                outputs: [.audio(configuration.format)],
                latency: configuration.period
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
    var endpoint: (any CardCapture)? { slot?._withUnsafeGuaranteedRef { $0.endpoint } }

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
        default:
            break
        }
    }

    /// Takes a block from the card.
    ///
    /// Thread: media.
    public override func process(_ io: borrowing FilterIO) {
        supervisor.noteTick(io.time)
        let block = io.output()
        guard isActive else { return block.fillWithSilence() }
        adopt(io)
        defer { statistics.publish(counters) }
        guard let slot else {
            supervisor.report()
            counters.framesWithoutCard &+= block.frameCount
            return block.fillWithSilence()
        }
        let card = slot._withUnsafeGuaranteedRef { $0.endpoint }
        if !take(block, from: card, io) { block.fillWithSilence() }
    }

    /// Fills `block` from `card`, or answers false.
    private func take(_ block: AudioBlock, from card: any CardCapture, _ io: borrowing FilterIO) -> Bool {
        let available = card.availableFrameCount(at: io.time)
        guard watchForStall(available, io) else { return false }
        lastAvailable = available
        counters.latencyFrames = available
        let follows = card.drifts && !setsPace
        let look = card.isClocked ? io.time + io.lateness : io.time
        let passed = clock.advance(to: io.time, look: look, tickDuration: io.tickDuration)
        let need = follows ? resampler.inputFrameCount(forOutput: block.frameCount) : block.frameCount
        // A card that moves in small steps may be half a block late; one that moves in long steps, a whole step.
        let reserve = max(card.periodFrameCount > block.frameCount ? card.periodFrameCount : 0, block.frameCount / 2)
        guard isFlowing || begin(available, need &+ reserve, card, io) else { return false }

        clock.alignment.move(by: passed.frames)
        clock.alignment.skip(passed.skipped &* need)
        if available >= need {
            if !clock.alignment.confirm(actual: available, at: io.time) { clock.accept(level: available) }
            if clock.alignment.isCalm { follow(available, look: look, follows, io) }
        }
        defer { clock.alignment.move(by: Double(-need)) }
        if !leaveOut(available, need, reserve, card, io) { return false }
        var samples = block.mutableSamples
        guard follows else {
            return samples.withUnsafeMutableBufferPointer { fill($0, need, from: card, io) }
        }
        guard need &* channelCount <= scratch.count else { return false }
        let input = UnsafeMutableBufferPointer(rebasing: scratch[..<(need &* channelCount)])
        guard fill(input, need, from: card, io) else { return false }
        return resampler.process(UnsafeBufferPointer(input).span, into: &samples).produced == block.frameCount
    }

    /// Lets the flow begin once `wanted` frames are there.
    private func begin(_ available: Int, _ wanted: Int, _ card: any CardCapture, _ io: borrowing FilterIO) -> Bool {
        guard available >= wanted else {
            // A card in trouble says so when it is read, and may show nothing available.
            if available <= 0 { _ = read(UnsafeMutableBufferPointer(rebasing: scratch[..<channelCount]), card, io) }
            return false
        }
        isFlowing = true
        clock.accept(level: available)
        clock.noteBreak()
        return true
    }

    /// Measures the card's rate, and moves the ratio so that the level stays.
    private func follow(_ available: Int, look: MediaTime, _ follows: Bool, _ io: borrowing FilterIO) {
        guard follows else { return }
        clock.observe(frames: readCount &+ Int64(available), at: look)
        let late = Double((look - io.time).nanoseconds) * clock.sampleRate / 1e9
        resampler.ppm = clock.control(level: Double(available) - late, tickDuration: io.tickDuration)
        counters.correctionPPM = resampler.ppm
        counters.note(ppm: clock.ppm)
        if let news = clock.takeNews() { io.emit("rate", value: news) }
    }

    /// Throws away frames whose time has passed, and whatever would make the latency grow; answers false when the card
    /// turned out to be gone.
    private func leaveOut(
        _ available: Int,
        _ need: Int,
        _ reserve: Int,
        _ card: any CardCapture,
        _ io: borrowing FilterIO
    ) -> Bool {
        var remaining = available
        let limit = reserve &+ max(3 &* need, 2 &* card.periodFrameCount)
        let surplus = clock.alignment.correction < 0 ? min(-clock.alignment.correction, available &- need) : 0
        if surplus > 0 {
            let dropped = discard(surplus, card, io)
            clock.alignment.correct(-dropped)
            remaining &-= dropped
        }
        guard isFlowing, remaining &+ clock.alignment.correction > limit else { return slot != nil }
        let dropped = discard(remaining &- reserve &- need, card, io)
        guard isFlowing else { return slot != nil }
        io.emit("dropped", value: Int64(dropped))
        clock.accept(level: remaining &- dropped)
        return true
    }

    private func discard(_ count: Int, _ card: any CardCapture, _ io: borrowing FilterIO) -> Int {
        var dropped = 0
        while dropped < count {
            let part = min(count &- dropped, scratch.count / channelCount)
            let read = read(UnsafeMutableBufferPointer(rebasing: scratch[..<(part &* channelCount)]), card, io)
            guard read > 0 else { break }
            dropped &+= read
        }
        counters.framesLost &+= dropped
        return dropped
    }

    /// Fills `target` with silence for frames that were lost, then with frames of the card, then with silence for
    /// frames that have not come; answers false when the flow must begin anew.
    private func fill(
        _ target: UnsafeMutableBufferPointer<Int16>,
        _ need: Int,
        from card: any CardCapture,
        _ io: borrowing FilterIO
    ) -> Bool {
        guard slot != nil else { return false }
        var filled = putSilence(target, 0, need)
        if filled < need {
            // While too little is there, nothing is taken, so that a block is whole or silent; but a card in trouble
            // says so only when it is read.
            let rest = need &- filled
            let isEnough = lastAvailable >= rest
            if isEnough || lastAvailable <= 0 {
                let part = UnsafeMutableBufferPointer(rebasing: target[(filled &* channelCount)...])
                let read = read(part, card, io)
                guard isFlowing else { return false }
                filled &+= read
                counters.frames &+= read
                // After an xrun the correction is known only now.
                filled &+= putSilence(target, filled, need)
            }
        }
        if filled < need {
            counters.shortages &+= 1
            clock.alignment.disturb()
            clock.noteBreak()
            UnsafeMutableBufferPointer(rebasing: target[(filled &* channelCount)...]).update(repeating: 0)
        }
        return true
    }

    /// Puts silence in place of lost frames from frame `start` on, and answers how many.
    private func putSilence(_ target: UnsafeMutableBufferPointer<Int16>, _ start: Int, _ end: Int) -> Int {
        let count = min(max(clock.alignment.correction, 0), end &- start)
        guard count > 0 else { return 0 }
        let part = target[(start &* channelCount)..<((start &+ count) &* channelCount)]
        UnsafeMutableBufferPointer(rebasing: part).update(repeating: 0)
        clock.alignment.correct(count)
        counters.framesInserted &+= count
        return count
    }

    /// Reads frames into `target`, and meets whatever is wrong with the card.
    private func read(
        _ target: UnsafeMutableBufferPointer<Int16>,
        _ card: any CardCapture,
        _ io: borrowing FilterIO
    ) -> Int {
        var samples = target.mutableSpan
        let transfer = card.read(into: &samples, at: io.time)
        readCount &+= Int64(transfer.frameCount)
        lastAvailable &-= transfer.frameCount
        counters.note(transfer, io)
        switch transfer.condition {
        case .running:
            return transfer.frameCount
        case .gone:
            lose(io)
            return transfer.frameCount
        case .xrun, .suspended:
            break
        }
        lastAvailable = 0
        clock.noteBreak()
        if !clock.alignment.repair(actual: 0, at: io.time) { isFlowing = false }
        return transfer.frameCount
    }

    private func adopt(_ io: borrowing FilterIO) {
        guard let fresh = supervisor.take() else { return }
        if let slot { supervisor.retire(slot) }
        slot = fresh
        isFlowing = false
        lastAvailable = 0
        readCount = 0
        stalls.reset()
        clock.reset()
        resampler.reset()
        resampler.ppm = 0
        guard wasGone else { return }
        wasGone = false
        counters.reopenings &+= 1
        io.emit("cardback")
    }

    private func lose(_ io: borrowing FilterIO) {
        if let slot = slot.take() { supervisor.retire(slot) }
        supervisor.report()
        wasGone = true
        isFlowing = false
        counters.disappearances &+= 1
        counters.latencyFrames = 0
        io.emit("cardgone")
    }

    /// Counts a stall and its end; answers false when the card was given up.
    private func watchForStall(_ available: Int, _ io: borrowing FilterIO) -> Bool {
        let isHopeless = counters.note(stalls.look(moved: available > lastAvailable, at: io.time), io)
        if isHopeless { lose(io) }
        return !isHopeless
    }
}
