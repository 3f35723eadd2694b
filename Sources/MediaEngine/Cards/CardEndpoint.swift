/// One direction of an opened card, in the hands of the media thread.
///
/// Thread: media, except that it is made and freed on a control thread; freeing closes the device. No call waits,
/// allocates or throws: what goes wrong is in the `CardTransfer`.
public protocol CardEndpoint: AnyObject, Sendable {
    /// The samples that go through.
    var format: AudioFormat { get }
    /// Frames that the card moves at once.
    var periodFrameCount: Int { get }
    /// Frames that the card's buffer holds.
    var bufferFrameCount: Int { get }
    /// Whether the card has a clock of its own, so that ticks can follow it. A card without one (ALSA's `null` and
    /// `file` PCMs, the built-in ones) takes data as fast as it is offered: it is paced by the ticks.
    var isClocked: Bool { get }
    /// Whether its frames come and go at another pace than the ticks', which the filter then has to follow.
    ///
    /// Cards with a clock of their own drift, unless that clock makes the ticks.
    var drifts: Bool { get }
    /// What must be served in the background while the endpoint is in use, if anything.
    var service: (any BackgroundService)? { get }

    /// Waits until the card can move a period, or `timeout` has passed; answers whether it can.
    ///
    /// Thread: of a driver that follows the card; the only call that waits.
    func wait(timeout: Duration) -> Bool

    /// Empties the card's buffer and begins anew, as after an xrun.
    func restart(at now: MediaTime)
}

extension CardEndpoint {
    /// No clock.
    public var isClocked: Bool { false }
    /// With a clock of its own it drifts.
    public var drifts: Bool { isClocked }
    /// Nothing to serve.
    public var service: (any BackgroundService)? { nil }
    /// Answers at once that the card can: there is no clock to wait for.
    public func wait(timeout: Duration) -> Bool { true }
}

/// A card that plays.
public protocol CardPlayback: CardEndpoint {
    /// Gives the card as many frames of `samples` as it takes now, from the first on.
    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer

    /// Frames that were written and not heard yet: the playback latency.
    func queuedFrameCount(at now: MediaTime) -> Int
}

/// A card that records.
public protocol CardCapture: CardEndpoint {
    /// Frames that can be read now.
    func availableFrameCount(at now: MediaTime) -> Int

    /// Takes the oldest frames into `samples`, at most as many as it holds.
    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer
}

/// How one write or read went.
public struct CardTransfer: Hashable, Sendable, BitwiseCopyable {
    /// The state that the transfer found the card in.
    public enum Condition: UInt8, Hashable, Sendable, BitwiseCopyable {
        /// As it should be.
        case running
        /// The card ran empty (playback) or over (capture); it has been started again.
        case xrun
        /// The machine slept; the card has been started again, or will be at one of the next transfers.
        case suspended
        /// The card is gone; this endpoint is of no further use.
        case gone
    }

    /// Frames that went through.
    public var frameCount: Int
    /// What the card was found in.
    public var condition: Condition
    /// Frames that were not heard or not recorded because of the condition.
    public var lostFrameCount: Int

    /// A transfer of `frameCount` frames.
    public init(frameCount: Int, condition: Condition = .running, lostFrameCount: Int = 0) {
        self.frameCount = frameCount
        self.condition = condition
        self.lostFrameCount = lostFrameCount
    }
}

/// What has gone through one direction of a card, and what went wrong, since the filter was made.
public struct CardStatistics: Hashable, Sendable, BitwiseCopyable {
    /// Frames that went through.
    public var frames = 0
    /// Times that the card ran empty or over.
    public var xruns = 0
    /// Frames not heard or not recorded: in xruns, and dropped to keep the latency in bounds.
    public var framesLost = 0
    /// Frames of silence given, or of sound discarded, while there was no card.
    public var framesWithoutCard = 0
    /// Times that the machine slept.
    public var suspends = 0
    /// Times that the card stopped moving without an error.
    public var stalls = 0
    /// Times that the card went away, or stood for so long that it was given up.
    public var disappearances = 0
    /// Times that it was opened again.
    public var reopenings = 0
    /// Frames in the card now: the latency it adds.
    public var latencyFrames = 0
    /// Frames of silence put in place of frames that were lost, so that those behind them are where they belong.
    public var framesInserted = 0
    /// Times that the card gave too little for a tick, or took too little of one, without an error.
    public var shortages = 0
    /// By how much the ratio between card and graph is corrected now, in parts per million.
    public var correctionPPM = 0.0
    /// By how much the card's clock is faster than the ticks', in parts per million; nil before it is known, and for
    /// cards that have no clock of their own.
    public var ppm: Double? { isRateKnown ? measuredPPM : nil }

    private var isRateKnown = false
    private var measuredPPM = 0.0

    /// All zero.
    public init() {}

    mutating func note(ppm: Double?) {
        isRateKnown = ppm != nil
        measuredPPM = ppm ?? 0
    }
}
