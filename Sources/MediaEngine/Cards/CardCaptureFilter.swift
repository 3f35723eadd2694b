/// Gives what a card records, and silence while the card is away.
///
///     (card) ──► card capture ──► audio
///
/// A tick needs a whole block, and a card moves by periods of its own: the filter begins when enough frames for a tick
/// and a little more are there, drops what exceeds a few blocks (so that latency cannot grow), and gives one silent
/// block when too few came, after which it begins again. A card that goes away, or stands for 3 s, is opened again.
/// Events: "xrun", "suspend" (value: frames lost), "stall", "moving" (value: ms that it stood), "cardgone", "cardback",
/// "dropped" (value: frames).
public final class CardCaptureFilter: Filter, @unchecked Sendable {
    /// Opens and reopens the card; to be served in the background.
    public let supervisor: CardSupervisor<any CardCapture>
    /// What has gone through.
    ///
    /// Thread: any.
    public let statistics = LatestValue(CardStatistics())

    private typealias Slot = CardSlot<any CardCapture>

    private let channelCount: Int
    private var slot: Unmanaged<Slot>?
    private var isActive: Bool
    private var isFlowing = false
    private var wasGone = false
    private var lastAvailable = 0
    private var stalls = StallDetector()
    private var counters = CardStatistics()

    /// A filter that records from `card`, which is not opened yet: see `open`.
    ///
    /// - Parameters:
    ///   - card: Where to record.
    ///   - configuration: What is asked of the card; its format is the output port's.
    ///   - isGated: Whether frames flow only from `activateCommand` on (an audio session).
    public init(_ card: any SoundCard, _ configuration: CardConfiguration, isGated: Bool = false) {
        isActive = !isGated
        channelCount = configuration.format.channelCount
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
        var available = card.availableFrameCount(at: io.time)
        guard watchForStall(available, io) else { return false }
        lastAvailable = available
        counters.latencyFrames = available
        let blockCount = block.frameCount
        let period = card.periodFrameCount
        // A card that moves in small steps may be half a block late; one that moves in long steps, a whole step.
        let reserve = period > blockCount ? period : blockCount / 2
        let limit = reserve &+ max(3 &* blockCount, 2 &* period)
        var samples = block.mutableSamples
        if available > limit {
            var dropped = 0
            while available &- dropped >= reserve &+ 2 &* blockCount {
                let transfer = card.read(into: &samples, at: io.time)
                guard count(transfer, io) else { return false }
                guard transfer.frameCount > 0 else { break }
                dropped &+= transfer.frameCount
            }
            counters.framesLost &+= dropped
            io.emit("dropped", value: Int64(dropped))
            available &-= dropped
        }
        // A card in trouble says so when it is read, and may show nothing available: it is read in any case.
        let isReady = available >= (isFlowing ? blockCount : blockCount &+ reserve)
        guard isReady || available <= 0 else {
            isFlowing = false
            return false
        }
        let transfer = card.read(into: &samples, at: io.time)
        guard count(transfer, io) else { return false }
        lastAvailable = available &- transfer.frameCount
        isFlowing = transfer.frameCount == blockCount
        guard isFlowing else {
            counters.framesLost &+= transfer.frameCount
            return false
        }
        counters.frames &+= blockCount
        return true
    }

    private func adopt(_ io: borrowing FilterIO) {
        guard let fresh = supervisor.take() else { return }
        if let slot { supervisor.retire(slot) }
        slot = fresh
        isFlowing = false
        lastAvailable = 0
        stalls.reset()
        guard wasGone else { return }
        wasGone = false
        counters.reopenings &+= 1
        io.emit("cardback")
    }

    /// Counts what was wrong with `transfer`; answers whether nothing was.
    private func count(_ transfer: CardTransfer, _ io: borrowing FilterIO) -> Bool {
        counters.framesLost &+= transfer.lostFrameCount
        switch transfer.condition {
        case .running:
            return true
        case .xrun:
            counters.xruns &+= 1
            io.emit("xrun", value: Int64(transfer.lostFrameCount))
        case .suspended:
            counters.suspends &+= 1
            io.emit("suspend", value: Int64(transfer.lostFrameCount))
        case .gone:
            lose(io)
        }
        isFlowing = false
        lastAvailable = 0
        return false
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
        switch stalls.look(moved: available > lastAvailable, at: io.time) {
        case .nothing:
            break
        case .stalled:
            counters.stalls &+= 1
            io.emit("stall")
        case .resumed(let duration):
            io.emit("moving", value: duration.nanoseconds / 1_000_000)
        case .hopeless:
            lose(io)
            return false
        }
        return true
    }
}
