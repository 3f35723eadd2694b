import Glibc

/// Weighs what was heard of one row and one column, and says whether it was a digit.
///
/// Two bars: a pair that is nearly all that sounds may be as far out of tune and as short as Q.24 allows; one that has
/// to share the line with noise must hold longer and be exactly in tune.
/// Pure: measured steps in, a verdict out.
/// Source: ITU-T Q.24, annex A
struct DTMFEvidence: BitwiseCopyable {
    /// Steps of 2.5 ms to look back at, for a pair alone and for one in noise.
    static var checkedStepCount: Int { 14 }
    static var checkedLongStepCount: Int { 28 }
    /// The steps over which a bin's phase is compared: 5 ms tell apart what lies within 100 Hz of the bin.
    static var turnStepCount: Int { 2 }
    /// Each sine's least mean square: that of a sine of -45 dBm0.
    static var leastPower: Float { 8192 }
    /// Row over column and column over row, as ratios of power: 10 dB (Q.24: 8 must) and 5.5 dB (4 must).
    static var greatestTwist: Float { 10 }
    static var greatestReverseTwist: Float { 3.55 }

    private let row: Int
    /// The column's bin, 4 to 7.
    private let column: Int
    private let frequencies: SIMD8<Float>
    private let sliceRate: Float
    private var count: Float = 0
    private var totalPower: Float = 0
    private var power = SIMD8<Float>()
    /// Of the steps whose window the pair fills: at its edges, a window sees less of the pair than of all that sounds.
    private var wholePower = SIMD8<Float>()
    private var wholeCount: Float = 0
    private var wholeTotalPower: Float = 0
    private var rowTurn = SIMD2<Float>()
    private var columnTurn = SIMD2<Float>()
    private var lateRowTurn = SIMD2<Float>()
    private var lateColumnTurn = SIMD2<Float>()

    /// Evidence of nothing yet, for row 0 to 3 and column 0 to 3 of `bank`.
    init(row: Int, column: Int, bank: DTMFBank) {
        self.row = row
        self.column = column &+ 4
        frequencies = bank.frequencies
        sliceRate = Float(bank.sliceRate)
    }

    /// Adds a step in which the pair was well heard, and the one `turnStepCount` before it; the newer half is late.
    mutating func add(_ step: DTMFBank.Step, after earlier: DTMFBank.Step, isLate: Bool, isWhole: Bool) {
        count += 1
        power += step.power
        totalPower += step.totalPower
        if isWhole {
            wholeCount += 1
            wholePower += step.power
            wholeTotalPower += step.totalPower
        }
        rowTurn += Self.turn(step, earlier, row)
        columnTurn += Self.turn(step, earlier, column)
        guard isLate else { return }
        lateRowTurn = rowTurn
        lateColumnTurn = columnTurn
    }

    /// Whether it was a digit; `isLong` when the pair has held for 70 ms and more.
    func isDigit(isLong: Bool) -> Bool {
        let (rowSkirt, columnSkirt) = (skirt(rowTurn), skirt(columnTurn))
        let isClear =
            wholeCount >= Self.leastWholeStepCount
            && wholePower[row] * rowSkirt + wholePower[column] * columnSkirt >= Self.leastShare * wholeTotalPower
        let weighed = isClear ? wholePower : power
        let (rowPower, columnPower) = (weighed[row] * rowSkirt, weighed[column] * columnSkirt)
        guard isClear || isLong && rowPower + columnPower >= Self.leastLongShare * totalPower,
            count >= (isClear ? Self.leastStepCount : Self.leastLongStepCount),
            min(power[row], power[column]) > Self.leastPower * count,
            rowPower <= (isClear ? Self.greatestTwist : Self.greatestTwistInNoise) * columnPower,
            columnPower <= (isClear ? Self.greatestReverseTwist : Self.greatestTwistInNoise) * rowPower
        else { return false }
        let neighbours = self.neighbours
        let neighbourShare = isClear ? Self.greatestNeighbour : Self.greatestNeighbourInNoise
        guard neighbours.row <= neighbourShare * power[row], neighbours.column <= neighbourShare * power[column]
        else { return false }
        let drift = isClear ? Self.greatestDrift : Self.greatestDriftInNoise
        return isInTune(rowTurn, bin: row, isClear: isClear)
            && isInTune(columnTurn, bin: column, isClear: isClear)
            && abs(glide(lateRowTurn, rowTurn - lateRowTurn)) <= drift * frequencies[row]
            && abs(glide(lateColumnTurn, columnTurn - lateColumnTurn)) <= drift * frequencies[column]
    }

    /// The loudest of the other bins in the row's and in the column's group.
    private var neighbours: (row: Float, column: Float) {
        var (rows, columns): (Float, Float) = (0, 0)
        for bin in 0..<4 {
            if bin != row { rows = max(rows, power[bin]) }
            if bin &+ 4 != column { columns = max(columns, power[bin &+ 4]) }
        }
        return (rows, columns)
    }

    private func isInTune(_ turn: SIMD2<Float>, bin: Int, isClear: Bool) -> Bool {
        let tolerance =
            isClear
            ? Self.frequencyTolerance * frequencies[bin] + Self.frequencyMargin
            : Self.frequencyToleranceInNoise * frequencies[bin]
        return abs(hertz(turn)) <= tolerance
    }

    /// How far the sine is from its bin's frequency.
    private func hertz(_ turn: SIMD2<Float>) -> Float {
        atan2f(turn.y, turn.x) * sliceRate / (2 * .pi * Float(Self.turnStepCount))
    }

    /// How far the frequency has moved from the early to the late half: the pitch of speech glides.
    private func glide(_ late: SIMD2<Float>, _ early: SIMD2<Float>) -> Float {
        hertz(SIMD2(late.x * early.x + late.y * early.y, late.y * early.x - late.x * early.y))
    }

    /// What a sine's power is to be multiplied by, because its bin sees less of it the further it is out of tune.
    ///
    /// The inverse of the response of a raised cosine drawn in straight lines.
    private func skirt(_ turn: SIMD2<Float>) -> Float {
        let bins = min(0.9, abs(hertz(turn)) * Float(DTMFBank.sliceCount) / sliceRate)
        guard bins > 0.01 else { return 1 }
        let inverse = (1 - bins * bins) * .pi * bins / sinf(.pi * bins) * (1 + 0.0514 * bins * bins)
        return inverse * inverse
    }

    /// The product of a bin with its earlier conjugate: its angle is the turn between the two.
    private static func turn(_ step: DTMFBank.Step, _ earlier: DTMFBank.Step, _ bin: Int) -> SIMD2<Float> {
        let (a, b) = (step.real[bin], step.imaginary[bin])
        let (c, d) = (earlier.real[bin], earlier.imaginary[bin])
        return SIMD2(a * c + b * d, b * c - a * d)
    }

    /// What both sines must have of the power; noise 10 dB below leaves 0.91.
    private static var leastShare: Float { 0.91 }
    /// What they must have when they have held for long: enough under noise as loud as the digit.
    private static var leastLongShare: Float { 0.48 }
    /// Of the checked steps, those that must come within 3 dB of the loudest: speech swells and fades.
    private static var leastStepCount: Float { 8 }
    /// Of these, those that must come within 1 dB.
    private static var leastWholeStepCount: Float { 2 }
    private static var leastLongStepCount: Float { 16 }
    /// Q.24: 1.5 % and 2 Hz must be accepted, 3.5 % must not; the margin is what 15 dB of noise makes of it.
    private static var frequencyTolerance: Float { 0.015 }
    private static var frequencyMargin: Float { 3.2 }
    private static var frequencyToleranceInNoise: Float { 0.003 }
    private static var greatestDrift: Float { 0.007 }
    private static var greatestDriftInNoise: Float { 0.004 }
    /// Either way, in noise: 4 dB.
    private static var greatestTwistInNoise: Float { 2.51 }
    /// The most that another bin of the same group may have, as a share of the digit's: -6 dB, in noise -9 dB.
    ///
    /// The window's own skirt leaves -9 dB in the next bin for a digit 1.5 % and 2 Hz out of tune.
    private static var greatestNeighbour: Float { 0.25 }
    private static var greatestNeighbourInNoise: Float { 0.13 }
}
