/// Plays what it hears on a card, and goes on without one while the card is away.
///
///     audio ──► card playback ──► (card)
///
/// Nothing waits here: what the card does not take is dropped and counted, a card that goes away is opened again by
/// the supervisor, and meanwhile sound is discarded at the pace of the ticks. So is one that stands for 3 s.
/// Events: "xrun", "suspend" (value: frames lost), "stall", "moving" (value: ms that it stood), "cardgone", "cardback",
/// "sample" (see `sampleCommand`).
public final class CardPlaybackFilter: Filter, @unchecked Sendable {
    /// Opens and reopens the card; to be served in the background.
    public let supervisor: CardSupervisor<any CardPlayback>
    /// What has gone through.
    ///
    /// Thread: any.
    public let statistics = LatestValue(CardStatistics())

    private typealias Slot = CardSlot<any CardPlayback>

    private var slot: Unmanaged<Slot>?
    private var isActive: Bool
    private var wasGone = false
    private var isWatchingForSample = false
    private var stalls = StallDetector()
    private var isHopeless = false
    private var counters = CardStatistics()

    /// A filter that plays on `card`, which is not opened yet: see `open`.
    ///
    /// - Parameters:
    ///   - card: Where to play.
    ///   - configuration: What is asked of the card; its format is the input port's.
    ///   - isGated: Whether frames flow only from `activateCommand` on (an audio session).
    public init(_ card: any SoundCard, _ configuration: CardConfiguration, isGated: Bool = false) {
        isActive = !isGated
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
        let transfer = card.write(block.samples, at: io.time)
        count(transfer, of: block.frameCount, io)
        if transfer.condition == .gone || isHopeless {
            lose(slot, io)
            counters.latencyFrames = 0
        } else {
            counters.latencyFrames = card.queuedFrameCount(at: io.time)
        }
    }

    private func adopt(_ io: borrowing FilterIO) {
        guard let fresh = supervisor.take() else { return }
        if let slot { supervisor.retire(slot) }
        slot = fresh
        stalls.reset()
        isHopeless = false
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
        if transfer.condition == .gone {
            counters.framesWithoutCard &+= frameCount
            return
        }
        counters.framesLost &+= transfer.lostFrameCount &+ frameCount &- transfer.frameCount
        switch transfer.condition {
        case .xrun:
            counters.xruns &+= 1
            io.emit("xrun", value: Int64(transfer.lostFrameCount))
        case .suspended:
            counters.suspends &+= 1
            io.emit("suspend", value: Int64(transfer.lostFrameCount))
        case .running, .gone:
            break
        }
        switch stalls.look(moved: transfer.frameCount > 0, at: io.time) {
        case .nothing:
            break
        case .stalled:
            counters.stalls &+= 1
            io.emit("stall")
        case .resumed(let duration):
            io.emit("moving", value: duration.nanoseconds / 1_000_000)
        case .hopeless:
            isHopeless = true
        }
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
