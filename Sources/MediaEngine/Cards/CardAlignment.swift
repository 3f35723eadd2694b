import CallBasics

/// Keeps a card's frames where they belong on the graph's time line, across every fault.
///
/// The level of the card's buffer is reckoned on from tick to tick: what the card's clock moves, what the graph gives
/// or takes. After a fault the card holds something else, and the difference is the correction: so many frames of
/// silence in place of frames that were lost, or so many frames to be left out because the card was silent meanwhile.
/// A frame that was played or recorded after the fault is then as late as one before it, to the sample.
/// A card that gave or took too little without an error may be late, or may have stood: that shows in the ticks that
/// follow, and is corrected then.
/// Pure. Units: frames at the card's rate.
struct CardAlignment: Sendable, BitwiseCopyable {
    /// Frames of silence that are still to be put in; negative: frames that are still to be left out.
    private(set) var correction = 0
    /// Whether a level is known from which to reckon on.
    private(set) var isKnown = false

    private let isCapture: Bool
    private let sampleRate: Int
    /// The level that there would be without faults.
    private var expected = 0.0
    private var watchedTicks = 0
    private var watchedDifference = 0.0
    private var repairCount = 0
    private var firstRepair = MediaTime.zero

    init(_ direction: CardDirection, sampleRate: Int) {
        isCapture = direction == .capture
        self.sampleRate = sampleRate
    }

    /// Whether the level can be relied on: no fault is being watched or corrected.
    var isCalm: Bool { isKnown && watchedTicks == 0 && correction == 0 }

    /// Begins anew: from here on frames are where they are to stay.
    mutating func begin(level: Int) {
        expected = Double(level)
        correction = 0
        watchedTicks = 0
        isKnown = true
    }

    /// Forgets everything: there is another card.
    mutating func forget() { self = CardAlignment(isCapture ? .capture : .playback, sampleRate: sampleRate) }

    /// Reckons on by `frames`, which came into the buffer, or, negative, went out of it.
    mutating func move(by frames: Double) { expected += frames }

    /// Takes the level `actual` of a tick without a fault; answers false when frames have moved for good, and the level
    /// that there is now must do.
    ///
    /// So it is when a card took too little because it was too full: to fill it up again would make it refuse again.
    mutating func confirm(actual: Int, at now: MediaTime) -> Bool {
        let real = Double(actual &+ correction)
        guard watchedTicks > 0 else {
            expected = real
            return true
        }
        // A card that is late shows too little recorded, or too much queued, until it has caught up.
        let difference = expected - real
        if watchedTicks == Self.watchTicks { watchedDifference = difference }
        watchedDifference =
            isCapture ? min(watchedDifference, difference) : max(watchedDifference, difference)
        watchedTicks &-= 1
        guard watchedTicks == 0 else { return true }
        // Less than a millisecond is left to the ratio, at the level that a card which was too full has now.
        if abs(watchedDifference) * 1000 <= Double(sampleRate) {
            expected = real
            return isCapture
        }
        guard watchedDifference < 0, mayRepair(at: now) else { return false }
        correction &+= Int(watchedDifference.rounded())
        return true
    }

    /// Notes that the card gave or took too little, for whatever reason.
    mutating func disturb() { watchedTicks = Self.watchTicks }

    /// Takes the level `actual` after a fault that has emptied the buffer; answers false when frames cannot stay where
    /// they were, because too much was lost, or because it happens again and again: then the card must begin anew.
    mutating func repair(actual: Int, at now: MediaTime) -> Bool {
        guard isKnown, mayRepair(at: now) else { return false }
        let wanted = expected - Double(actual)
        guard abs(wanted) * 5 <= Double(sampleRate) else { return false }
        correction = Int(wanted.rounded())
        watchedTicks = 0
        return true
    }

    /// Counts a repair; answers false when there were too many lately: the level does not suit the card.
    private mutating func mayRepair(at now: MediaTime) -> Bool {
        if repairCount == 0 || now - firstRepair > Self.repairWindow {
            repairCount = 0
            firstRepair = now
        }
        repairCount &+= 1
        return repairCount <= Self.repairLimit
    }

    /// Notes that `frames` of the correction have been made: put in when positive, left out when negative.
    mutating func correct(_ frames: Int) { correction &-= frames }

    /// Notes that the graph has skipped time in which `frames` would have gone through.
    ///
    /// They are put in where they are missing, in playback, and left out where they are too many, in capture.
    mutating func skip(_ frames: Int) {
        guard isKnown else { return }
        let missing = isCapture ? -frames : frames
        correction &+= missing
        expected += Double(missing)
    }

    private static var watchTicks: Int { 20 }
    private static var repairLimit: Int { 3 }
    private static var repairWindow: Duration { .seconds(5) }
}
