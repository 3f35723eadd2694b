import CallBasics
import Glibc

/// Hears DTMF digits in audio, within the limits of ITU-T Q.24.
///
/// A digit is a row's and a column's sine that hold together for 31 ms or more (Q.24: 40 ms is a digit, 23 ms is
/// none): both in tune (1.5 % and 2 Hz off must be accepted, 3.5 % must not), neither far louder than the other,
/// and together nearly all that sounds. Speech fails here: it moves, and spreads over harmonics.
/// Interruptions up to 25 ms are bridged (10 ms must be, 40 ms must not), which also covers one concealed packet.
/// Shape: `Int16` at 8 to 192 kHz; several channels are heard as their mean.
/// Units: frames, counted from the first that was given.
/// Thread: one thread at a time; allocates only when made.
/// Source: ITU-T Q.23 (frequencies), Q.24 (limits, the strictest of its administrations), Q.24 annex A.
package final class DTMFDetector {
    private struct Candidate: BitwiseCopyable {
        var row: Int
        var column: Int
        var rowPeak: Float
        var columnPeak: Float
        /// Steps since both sines were last heard.
        var missCount = 0
        /// First frame; known from the confirmation on.
        var start = 0.0
        /// The frame after the last that was heard.
        var end = 0.0

        var digit: DTMFDigit { DTMFDigit(row: row, column: column) }
    }

    private let bank: DTMFBank
    private let history: UnsafeMutablePointer<DTMFBank.Step>
    /// Steps measured so far; the newest is number `stepCount - 1`.
    private var stepCount = 0
    private var frameCount = 0
    /// Where the audio ended, once that is known.
    private var lastFrame = Int.max
    private var candidate: Candidate?
    private var current: Candidate?
    /// The first step that no earlier digit has claimed.
    private var firstFreeStep = 0
    private let detections: RingBuffer<DTMFDetection>
    private let minimumOnFrames: Double
    private let longFrames: Double

    private static let historyCount = 32
    /// Duration that a digit must have: between the 23 ms that Q.24 refuses and the 40 ms that it accepts.
    private static let minimumDuration = 0.031
    /// Steps of 2.5 ms without the pair inside one digit.
    private static let bridgedStepCount = 10
    private static let bridgedCandidateStepCount = 6
    private static let longDuration = 0.07
    /// What the pair must have of the power at any step.
    private static let leastStepShare: Float = 0.3

    /// A detector for audio of `sampleRate` Hz, 8000 to 192000.
    ///
    /// Throws: `ToneError` for other rates.
    package init(sampleRate: Int) throws(ToneError) {
        guard (8000...192_000).contains(sampleRate) else {
            throw ToneError(
                .unsuitableSamples,
                "DTMF cannot be detected at \(sampleRate) Hz. Resample to 8000 to 192000 Hz."
            )
        }
        bank = DTMFBank(sampleRate: sampleRate)
        history = .allocate(capacity: Self.historyCount)
        history.initialize(
            repeating: DTMFBank.Step(real: .zero, imaginary: .zero, power: .zero, totalPower: 0),
            count: Self.historyCount
        )
        minimumOnFrames = Self.minimumDuration * Double(sampleRate)
        longFrames = Self.longDuration * Double(sampleRate)
        detections = RingBuffer(minimumCapacity: 64)
    }

    deinit {
        history.deallocate()
    }

    /// Listens to `samples`: whole frames of `channelCount` channels.
    package func process(_ samples: Span<Int16>, channelCount: Int = 1) {
        let frames = samples.count / channelCount
        var frame = 0
        while frame < frames {
            frame &+= bank.take(samples, channelCount: channelCount, from: frame)
            if let step = bank.nextStep() { advance(step) }
        }
        frameCount &+= frames
    }

    /// Tells the detector that no more audio comes, so that a digit which sounds to the end is told, too.
    package func finish() {
        lastFrame = frameCount
        let silence: InlineArray<64, Int16> = .init(repeating: 0)
        let needed = bank.sliceFrameCount &* (DTMFBank.sliceCount &+ Self.bridgedStepCount &+ 2)
        var given = 0
        while given < needed {
            process(silence.span)
            given &+= silence.count
        }
        if let last = current { endCurrent(last) }
        candidate = nil
    }

    /// What was heard, oldest first; nil when all has been told.
    ///
    /// At most 64 wait between two calls.
    package func nextDetection() -> DTMFDetection? { detections.pop() }

    // MARK: Steps

    private func advance(_ step: DTMFBank.Step) {
        history[stepCount & (Self.historyCount &- 1)] = step
        stepCount &+= 1
        let pair = loudestPair(step)
        if followCurrent(pair, step) { return }
        guard let pair, !isDying(pair) else {
            guard let missing = candidate else { return }
            candidate = missing.missCount < Self.bridgedCandidateStepCount ? missing : nil
            candidate?.missCount &+= 1
            return
        }
        var next = candidate ?? pair
        if next.row != pair.row || next.column != pair.column { next = pair }
        next.missCount = 0
        next.rowPeak = max(next.rowPeak, pair.rowPeak)
        next.columnPeak = max(next.columnPeak, pair.columnPeak)
        candidate = next
        confirm(next)
    }

    /// Goes on with the digit that sounds; false when `pair` may be the beginning of another.
    private func followCurrent(_ pair: Candidate?, _ step: DTMFBank.Step) -> Bool {
        guard var sounding = current else { return false }
        let ratio = heardRatio(step, sounding)
        if let pair, pair.row == sounding.row, pair.column == sounding.column, ratio >= 0.25 {
            sounding.missCount = 0
            sounding.end = time(ofStep: stepCount &- 1)
            // Follows a slowly changing level, and hardly moves in the few steps of a digit's end.
            sounding.rowPeak += 0.03 * (pair.rowPeak - sounding.rowPeak)
            sounding.columnPeak += 0.03 * (pair.columnPeak - sounding.columnPeak)
            current = sounding
            candidate = nil
            return true
        }
        if sounding.missCount == 0 {
            sounding.end += crossing(from: sounding, below: ratio)
        }
        sounding.missCount &+= 1
        current = sounding
        if sounding.missCount > Self.bridgedStepCount { endCurrent(sounding) }
        return false
    }

    /// Whether `pair` is what is left of the digit that was heard until just now.
    private func isDying(_ pair: Candidate) -> Bool {
        guard let current else { return false }
        return pair.row == current.row && pair.column == current.column
    }

    /// How far after the last step that was heard the sound crossed half its level, in frames.
    private func crossing(from sounding: Candidate, below ratio: Float) -> Double {
        let last = heardRatio(history[(stepCount &- 2) & (Self.historyCount &- 1)], sounding).squareRoot()
        let next = ratio.squareRoot()
        guard last > 0.5, next < 0.5 else { return Double(bank.sliceFrameCount) / 2 }
        return Double((last - 0.5) / (last - next)) * Double(bank.sliceFrameCount)
    }

    private func endCurrent(_ sounding: Candidate) {
        detections.push(detection(sounding, .ended))
        firstFreeStep = stepCount &- sounding.missCount
        current = nil
    }

    private func detection(_ candidate: Candidate, _ phase: DTMFDetection.Phase) -> DTMFDetection {
        let start = max(0, Int(candidate.start.rounded()))
        return DTMFDetection(
            digit: candidate.digit,
            phase: phase,
            startFrame: start,
            frameCount: max(1, min(lastFrame, Int(candidate.end.rounded())) &- start)
        )
    }

    /// The loudest row and column, when they could be a digit.
    private func loudestPair(_ step: DTMFBank.Step) -> Candidate? {
        guard step.totalPower > DTMFEvidence.leastPower else { return nil }
        var row = 0
        var column = 4
        for index in 1..<4 {
            if step.power[index] > step.power[row] { row = index }
            if step.power[index &+ 4] > step.power[column] { column = index &+ 4 }
        }
        let rowPower = step.power[row]
        let columnPower = step.power[column]
        guard min(rowPower, columnPower) > DTMFEvidence.leastPower * 0.25,
            rowPower + columnPower > Self.leastStepShare * step.totalPower,
            rowPower < 2 * DTMFEvidence.greatestTwist * columnPower,
            columnPower < 2 * DTMFEvidence.greatestReverseTwist * rowPower
        else { return nil }
        return Candidate(row: row, column: column &- 4, rowPeak: rowPower, columnPeak: columnPower)
    }

    /// The weaker sine's power, relative to its peak.
    private func heardRatio(_ step: DTMFBank.Step, _ candidate: Candidate) -> Float {
        min(step.power[candidate.row] / candidate.rowPeak, step.power[candidate.column &+ 4] / candidate.columnPeak)
    }

    /// Makes the candidate the current digit if it has lasted long enough and passes every check.
    private func confirm(_ candidate: Candidate) {
        guard let start = start(of: candidate) else { return }
        let isLong = time(ofStep: stepCount &- 1) - start >= longFrames
        guard isDigit(candidate, isLong: isLong) else { return }
        if let sounding = current { endCurrent(sounding) }
        var confirmed = candidate
        confirmed.start = start
        confirmed.end = time(ofStep: stepCount &- 1)
        current = confirmed
        self.candidate = nil
        detections.push(detection(confirmed, .began))
    }

    /// The frame where the candidate rose above half its level, or nil when it has not sounded long enough.
    private func start(of candidate: Candidate) -> Double? {
        var first = stepCount
        var holes = 0
        var holesInside = 0
        var previous: Float = 0
        var before: Float = 0
        var back = 1
        while back <= min(Self.historyCount &- 2, stepCount &- firstFreeStep) {
            let ratio = heardRatio(history[(stepCount &- back) & (Self.historyCount &- 1)], candidate)
            if ratio >= 0.25 {
                first = stepCount &- back
                holesInside &+= holes
                holes = 0
                previous = ratio
                before = 0
            } else {
                if holes == 0 { before = ratio }
                holes &+= 1
                guard holes <= Self.bridgedCandidateStepCount else { break }
            }
            back &+= 1
        }
        guard first < stepCount else { return nil }
        let (high, low) = (previous.squareRoot(), before.squareRoot())
        let fraction = high > 0.5 && low < 0.5 ? Double((high - 0.5) / (high - low)) : 0
        let start = time(ofStep: first) - fraction * Double(bank.sliceFrameCount)
        let heard = time(ofStep: stepCount &- 1) - start - Double(holesInside &* bank.sliceFrameCount)
        return heard >= minimumOnFrames ? start : nil
    }

    /// Weighs the last steps in which the candidate was well heard.
    private func isDigit(_ candidate: Candidate, isLong: Bool) -> Bool {
        var evidence = DTMFEvidence(row: candidate.row, column: candidate.column, bank: bank)
        let checked = isLong ? DTMFEvidence.checkedLongStepCount : DTMFEvidence.checkedStepCount
        for back in 1...checked {
            let step = history[(stepCount &- back) & (Self.historyCount &- 1)]
            let ratio = heardRatio(step, candidate)
            guard ratio > 0.5 else { continue }
            let earlier = history[(stepCount &- back &- DTMFEvidence.turnStepCount) & (Self.historyCount &- 1)]
            evidence.add(step, after: earlier, isLate: back <= checked / 2, isWhole: ratio > 0.8)
        }
        return evidence.isDigit(isLong: isLong)
    }

    /// The input frame in the middle of step `step`'s window.
    private func time(ofStep step: Int) -> Double {
        (Double(step) + DTMFBank.centre) * Double(bank.sliceFrameCount) - Double(bank.delayFrameCount)
    }
}
