public import MediaEngine

/// A fault of a card and its time.
public struct ScriptedFault: Hashable, Sendable {
    /// What goes wrong.
    public enum Kind: Hashable, Sendable {
        /// The buffer runs empty or over.
        case xrun
        /// The machine sleeps: the buffer's content is lost.
        case suspend
        /// The card stops moving for a while, without an error.
        case stall(Duration)
        /// The card is pulled out.
        case unplug
        /// The card is put back in.
        case comeBack
        /// Another program takes the card: it does not open until it is set free.
        case occupy
        /// The other program lets go of the card.
        case setFree
    }

    /// When it happens, on the clock that the card is driven by.
    public let time: MediaTime
    /// What happens.
    public let fault: Kind

    /// A fault at `time`.
    public init(_ fault: Kind, at time: MediaTime) {
        self.fault = fault
        self.time = time
    }
}

/// A card that fails by a script, the same way each time: a card in trouble without the trouble.
///
/// Under the faults is another card, `NullCard` unless given; xruns, stalls and absence are laid over it. Each opened
/// endpoint meets each fault once.
public final class FaultyCard: SoundCard {
    /// "faulty", built in, and what the card beneath can do.
    public let description: CardDescription
    private let card: any SoundCard
    private let script: [ScriptedFault]

    /// A card that fails by `script`.
    ///
    /// - Parameters:
    ///   - script: What happens when, in any order.
    ///   - card: The card beneath.
    public init(_ script: [ScriptedFault], over card: any SoundCard) {
        self.script = script.sorted { $0.time < $1.time }
        self.card = card
        description = CardDescription(
            id: "builtin:faulty",
            name: "faulty",
            backend: "built-in",
            directions: card.description.directions
        )
    }

    /// A card that fails by `script` and whose clock is `driftPPM` parts per million too fast.
    public convenience init(_ script: [ScriptedFault] = [], driftPPM: Int = 0) {
        self.init(script, over: NullCard(driftPPM: driftPPM))
    }

    /// Opens the card beneath.
    ///
    /// - Throws: `CardError` while the card is unplugged or busy.
    public func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        try requirePresence(at: now)
        return FaultyEndpoint(try card.open(direction, configuration, at: now), FaultScript(script, after: now))
    }

    private func requirePresence(at now: MediaTime) throws(CardError) {
        var isPresent = true
        var isFree = true
        for entry in script where entry.time <= now {
            switch entry.fault {
            case .unplug: isPresent = false
            case .comeBack: isPresent = true
            case .occupy: isFree = false
            case .setFree: isFree = true
            case .xrun, .suspend, .stall: break
            }
        }
        guard isPresent else {
            throw CardError(.absent, "The faulty card is unplugged. Wait until its script puts it back.")
        }
        guard isFree else {
            throw CardError(.busy, "The faulty card is in use. Wait until its script sets it free.")
        }
    }
}

/// What remains of a script for one endpoint.
///
/// Pure: the present time is an argument.
struct FaultScript: Sendable {
    private let script: [ScriptedFault]
    private var next: Int
    private(set) var isGone = false
    private var stallEnd = MediaTime.zero
    /// The time that the card beneath has missed while it stood.
    private var missed = Duration.zero

    /// What follows `start`: the faults before it belong to the past.
    init(_ script: [ScriptedFault], after start: MediaTime) {
        self.script = script
        next = script.firstIndex { $0.time > start } ?? script.count
    }

    /// Meets the faults up to `now`; answers the last condition among them, or nil.
    mutating func advance(to now: MediaTime) -> CardTransfer.Condition? {
        var condition: CardTransfer.Condition?
        while next < script.count, script[next].time <= now, !isGone {
            switch script[next].fault {
            case .xrun: condition = .xrun
            case .suspend: condition = .suspended
            case .stall(let duration):
                let start = max(script[next].time, stallEnd)
                stallEnd = script[next].time + duration
                missed += max(.zero, stallEnd - start)
            case .unplug:
                isGone = true
                condition = .gone
            case .comeBack, .occupy, .setFree: break
            }
            next &+= 1
        }
        return isGone ? .gone : condition
    }

    /// Whether the card stands at `now`.
    func isStalled(at now: MediaTime) -> Bool { now < stallEnd }

    /// The time on the card's own clock, which stands while the card does.
    ///
    /// Not to be asked while it stands.
    func cardTime(at now: MediaTime) -> MediaTime { now - missed }
}

private final class FaultyEndpoint: CardEndpoint, @unchecked Sendable {
    private let inner: any CardEndpoint
    private var script: FaultScript
    /// Of playback: what was queued when the card stopped.
    private var levelWhenStopped = 0
    /// Of capture: what the next read tells.
    private var pending: CardTransfer.Condition?

    init(_ inner: any CardEndpoint, _ script: FaultScript) {
        self.inner = inner
        self.script = script
    }

    var direction: CardDirection { inner.direction }
    var format: AudioFormat { inner.format }
    var periodFrameCount: Int { inner.periodFrameCount }
    var bufferFrameCount: Int { inner.bufferFrameCount }
    var isClocked: Bool { inner.isClocked }
    var drifts: Bool { inner.drifts }
    var service: (any BackgroundService)? { inner.service }

    func frameCount(at now: MediaTime) -> Int {
        if direction == .capture, let condition = script.advance(to: now) { pending = condition }
        guard !script.isGone else { return 0 }
        guard script.isStalled(at: now) else { return inner.frameCount(at: script.cardTime(at: now)) }
        return direction == .playback ? levelWhenStopped : 0
    }

    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
        let condition = script.advance(to: now)
        if condition == .gone { return CardTransfer(frameCount: 0, condition: .gone) }
        if script.isStalled(at: now) {
            // The buffer still has room for what it did not yet take.
            return CardTransfer(frameCount: 0, condition: condition ?? .running)
        }
        let cardTime = script.cardTime(at: now)
        guard let condition else {
            let transfer = inner.write(samples, at: cardTime)
            levelWhenStopped = inner.frameCount(at: cardTime)
            return transfer
        }
        let lost = inner.frameCount(at: cardTime)
        inner.restart(at: cardTime)
        let frameCount = inner.write(samples, at: cardTime).frameCount
        return CardTransfer(frameCount: frameCount, condition: condition, lostFrameCount: lost)
    }

    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        if let condition = script.advance(to: now) { pending = condition }
        if script.isGone { return CardTransfer(frameCount: 0, condition: .gone) }
        guard !script.isStalled(at: now) else { return CardTransfer(frameCount: 0) }
        let cardTime = script.cardTime(at: now)
        guard let condition = pending.take() else { return inner.read(into: &samples, at: cardTime) }
        let lost = inner.frameCount(at: cardTime)
        inner.restart(at: cardTime)
        return CardTransfer(frameCount: 0, condition: condition, lostFrameCount: lost)
    }

    func wait(timeout: Duration) -> Bool { inner.wait(timeout: timeout) }

    func restart(at now: MediaTime) {
        guard !script.isGone, !script.isStalled(at: now) else { return }
        inner.restart(at: script.cardTime(at: now))
    }
}
