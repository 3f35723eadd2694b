import Glibc

/// Hears DTMF digits in audio, within the limits of ITU-T Q.24.
///
/// A digit is a row's and a column's sine that hold together for 31 ms or more (Q.24: 40 ms is a digit, 23 ms is
/// none): both within 2.2 % of their frequency (1.5 % must, 3.5 % must not), neither far louder than the other,
/// and together most of what sounds. Speech fails here: it moves, and spreads over harmonics.
/// Interruptions up to 25 ms are bridged (10 ms must be, 40 ms must not), which also covers one concealed packet.
/// Shape: `Int16` at 8 to 192 kHz; several channels are heard as their mean.
/// Units: frames, counted from the first that was given.
/// Thread: one thread at a time; allocates only when made.
/// Source: ITU-T Q.23 (frequencies), Q.24 (limits, the strictest of its administrations), Q.24 annex A.
public final class DTMFDetector {
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
    /// Each sine's least mean square: that of a sine of -45 dBm0.
    private static let leastPower: Float = 8192
    /// Duration that a digit must have: between the 23 ms that Q.24 refuses and the 40 ms that it accepts.
    private static let minimumDuration = 0.031
    /// Steps of 2.5 ms without the pair inside one digit.
    private static let bridgedStepCount = 10
    private static let bridgedCandidateStepCount = 6
    private static let frequencyTolerance: Float = 0.022
    private static let greatestDrift: Float = 0.008
    private static let greatestDriftInNoise: Float = 0.004
    private static let frequencyToleranceInNoise: Float = 0.01
    /// Row over column and column over row, as ratios of power: 10 dB (Q.24: 8 must) and 6 dB (4 must).
    private static let greatestTwist: Float = 10
    private static let greatestReverseTwist: Float = 3.98
    /// Either way, for the smaller share: 4 dB.
    private static let greatestTwistInNoise: Float = 2.51
    /// What both sines must have of the power while the digit is being recognised; noise 10 dB below leaves 0.91.
    private static let leastShare: Float = 0.88
    /// What they must have when they have held for `longDuration`: enough under noise as loud as the digit.
    private static let leastLongShare: Float = 0.48
    private static let longDuration = 0.07
    /// The most that another bin of the same group may have, as a share of the digit's: -5 dB.
    ///
    /// For the smaller share it is -9 dB. The window's own skirt leaves -10 dB in the next bin for a digit 1.5 % out of tune.
    private static let greatestNeighbour: Float = 0.32
    private static let greatestLongNeighbour: Float = 0.13
    /// Of the last `checkedStepCount` steps (`checkedLongStepCount` for the smaller share), those that must come within 3 dB of the loudest: speech swells and fades.
    private static let leastSteadyStepCount: Float = 8
    private static let checkedStepCount = 14
    private static let leastLongSteadyStepCount: Float = 16
    private static let checkedLongStepCount = 28
    /// What they must have at any step.
    private static let leastStepShare: Float = 0.3

    /// A detector for audio of `sampleRate` Hz, 8000 to 192000.
    ///
    /// Throws: `ToneError` for other rates.
    public init(sampleRate: Int) throws(ToneError) {
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
    public func process(_ samples: Span<Int16>, channelCount: Int = 1) {
        let frames = samples.count / channelCount
        var frame = 0
        while frame < frames {
            frame &+= bank.take(samples, channelCount: channelCount, from: frame)
            if let step = bank.nextStep() { advance(step) }
        }
        frameCount &+= frames
    }

    /// Tells the detector that no more audio comes, so that a digit which sounds to the end is told, too.
    public func finish() {
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
    public func nextDetection() -> DTMFDetection? { detections.pop() }

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
        guard step.totalPower > Self.leastPower else { return nil }
        var row = 0
        var column = 4
        for index in 1..<4 {
            if step.power[index] > step.power[row] { row = index }
            if step.power[index &+ 4] > step.power[column] { column = index &+ 4 }
        }
        let rowPower = step.power[row]
        let columnPower = step.power[column]
        guard min(rowPower, columnPower) > Self.leastPower * 0.25,
            rowPower + columnPower > Self.leastStepShare * step.totalPower,
            rowPower < 2 * Self.greatestTwist * columnPower,
            columnPower < 2 * Self.greatestReverseTwist * rowPower
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

    /// Checks level, twist, share and frequency over the last steps in which the candidate was well heard.
    private func isDigit(_ candidate: Candidate, isLong: Bool) -> Bool {
        let row = candidate.row
        let column = candidate.column &+ 4
        var totalPower: Float = 0
        var count: Float = 0
        var rowTurn = SIMD2<Float>()
        var columnTurn = SIMD2<Float>()
        var lateRowTurn = SIMD2<Float>()
        var lateColumnTurn = SIMD2<Float>()
        var power = SIMD8<Float>()
        let checked = isLong ? Self.checkedLongStepCount : Self.checkedStepCount
        for back in 1...checked {
            let step = history[(stepCount &- back) & (Self.historyCount &- 1)]
            guard heardRatio(step, candidate) > 0.5 else { continue }
            let earlier = history[(stepCount &- back &- Self.turnStepCount) & (Self.historyCount &- 1)]
            power += step.power
            totalPower += step.totalPower
            rowTurn += Self.turn(step, earlier, row)
            columnTurn += Self.turn(step, earlier, column)
            count += 1
            guard back <= checked / 2 else { continue }
            lateRowTurn = rowTurn
            lateColumnTurn = columnTurn
        }
        let rowPower = power[row]
        let columnPower = power[column]
        var rowNeighbour: Float = 0
        var columnNeighbour: Float = 0
        for bin in 0..<4 {
            if bin != row { rowNeighbour = max(rowNeighbour, power[bin]) }
            if bin &+ 4 != column { columnNeighbour = max(columnNeighbour, power[bin &+ 4]) }
        }
        let pairPower = rowPower * skirt(rowTurn) + columnPower * skirt(columnTurn)
        let isClear = pairPower >= Self.leastShare * totalPower
        let neighbourShare = isClear ? Self.greatestNeighbour : Self.greatestLongNeighbour
        let tolerance = isClear ? Self.frequencyTolerance : Self.frequencyToleranceInNoise
        let drift = isClear ? Self.greatestDrift : Self.greatestDriftInNoise
        return count >= (isClear ? Self.leastSteadyStepCount : Self.leastLongSteadyStepCount)
            && min(rowPower, columnPower) > Self.leastPower * count
            && rowNeighbour <= neighbourShare * rowPower
            && columnNeighbour <= neighbourShare * columnPower
            && rowPower <= (isClear ? Self.greatestTwist : Self.greatestTwistInNoise) * columnPower
            && columnPower <= (isClear ? Self.greatestReverseTwist : Self.greatestTwistInNoise) * rowPower
            && (isClear || isLong && pairPower >= Self.leastLongShare * totalPower)
            && isInTune(rowTurn, bin: row, tolerance: tolerance)
            && isInTune(columnTurn, bin: column, tolerance: tolerance)
            && isSteady(lateRowTurn, rowTurn - lateRowTurn, bin: row, tolerance: drift)
            && isSteady(lateColumnTurn, columnTurn - lateColumnTurn, bin: column, tolerance: drift)
    }

    private func isInTune(_ turn: SIMD2<Float>, bin: Int, tolerance: Float) -> Bool {
        abs(hertz(turn)) <= tolerance * bank.frequencies[bin]
    }

    /// How far the sine is from its bin's frequency.
    private func hertz(_ turn: SIMD2<Float>) -> Float {
        atan2f(turn.y, turn.x) * Float(bank.sliceRate) / (2 * .pi * Float(Self.turnStepCount))
    }

    /// What a sine's power is to be multiplied by, because its bin sees less of it the further it is out of tune.
    ///
    /// The inverse of a raised-cosine window's response.
    private func skirt(_ turn: SIMD2<Float>) -> Float {
        let bins = min(0.9, abs(hertz(turn)) * Float(DTMFBank.sliceCount) / Float(bank.sliceRate))
        guard bins > 0.01 else { return 1 }
        let inverse = (1 - bins * bins) * .pi * bins / sinf(.pi * bins)
        return inverse * inverse
    }

    /// Whether the frequency is the same early and late: the pitch of speech glides.
    private func isSteady(_ late: SIMD2<Float>, _ early: SIMD2<Float>, bin: Int, tolerance: Float) -> Bool {
        let between = SIMD2(late.x * early.x + late.y * early.y, late.y * early.x - late.x * early.y)
        return isInTune(between, bin: bin, tolerance: tolerance)
    }

    /// The steps over which a bin's phase is compared: 5 ms tell apart what lies within 100 Hz of the bin.
    private static let turnStepCount = 2

    /// The product of a bin with its earlier conjugate: its angle is the turn between the two.
    private static func turn(_ step: DTMFBank.Step, _ earlier: DTMFBank.Step, _ bin: Int) -> SIMD2<Float> {
        let (a, b) = (step.real[bin], step.imaginary[bin])
        let (c, d) = (earlier.real[bin], earlier.imaginary[bin])
        return SIMD2(a * c + b * d, b * c - a * d)
    }

    /// The input frame in the middle of step `step`'s window.
    private func time(ofStep step: Int) -> Double {
        Double((step &+ 1 &- DTMFBank.sliceCount / 2) &* bank.sliceFrameCount &- bank.delayFrameCount)
    }
}
