/// What has gone through one direction of a card, and what went wrong, whatever cards were used one after the other.
package struct CardStatistics: Hashable, Sendable, BitwiseCopyable {
    /// Frames that went through.
    package internal(set) var frames = 0
    /// Times that the card ran empty or over.
    package internal(set) var xruns = 0
    /// Frames not heard or not recorded: in xruns, and dropped to keep the latency in bounds.
    package internal(set) var framesLost = 0
    /// Frames of silence given, or of sound discarded, while there was no card.
    package internal(set) var framesWithoutCard = 0
    /// Times that the machine slept.
    package internal(set) var suspends = 0
    /// Times that the card stopped moving without an error.
    package internal(set) var stalls = 0
    /// Times that the card went away, or stood for so long that it was given up.
    package internal(set) var disappearances = 0
    /// Times that there was a card again after one had gone.
    package internal(set) var reopenings = 0
    /// Frames in the card at the time the last tick was due: the latency it adds.
    package internal(set) var latencyFrames = 0
    /// Frames of silence put in place of frames that were lost, so that those behind them are where they belong.
    package internal(set) var framesInserted = 0
    /// Times that the card gave too little for a tick, or took too little of one, without an error.
    package internal(set) var shortages = 0
    /// By how much the ratio between card and graph is corrected now, in parts per million.
    package internal(set) var correctionPPM = 0.0
    /// By how much the card's clock is faster than the ticks', in parts per million; nil before it is known, and for
    /// cards that have no clock of their own.
    package var ppm: Double? { isRateKnown ? measuredPPM : nil }

    /// The number of the card that is in use, or was last, and the frames that have gone through it.
    var cardNumber = 0
    var cardFrames = 0
    /// The number of the card that went away last.
    var lostCardNumber = 0
    var framesLostInXruns = 0
    /// `latencyFrames` when a card moved last.
    var lastLatencyFrames = 0

    private var isRateKnown = false
    private var measuredPPM = 0.0

    init() {}

    mutating func note(ppm: Double?) {
        isRateKnown = ppm != nil
        measuredPPM = ppm ?? 0
    }
}
