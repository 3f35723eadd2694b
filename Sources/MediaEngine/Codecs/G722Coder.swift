/// One direction of G.722 at 64 kbit/s: a filter bank splits the signal into two bands, and each band is coded as the
/// difference from what an adaptive predictor expects.
///
///     samples → filter bank → low  (0–4 kHz) → 6-bit quantiser ┐
///                           → high (4–8 kHz) → 2-bit quantiser ┴→ byte: high × 64 + low
///
/// All arithmetic is that of the recommendation, bit for bit.
/// Source: ITU-T G.722, sections 3 to 6; the block names in capitals are its own.
struct G722Coder {
    private var low = G722Band(scale: 32)
    private var high = G722Band(scale: 8)
    /// The newest 24 values of the filter bank, every other one in each line, the newest last.
    private var evenLine = InlineArray<12, Int32>(repeating: 0)
    private var oddLine = InlineArray<12, Int32>(repeating: 0)

    /// Codes two samples.
    mutating func encode(_ first: Int16, _ second: Int16) -> UInt8 {
        push(Int32(first), Int32(second))
        let (even, odd) = filter()
        // The transmit filter bank has a gain of 2^13; what remains is the recommendation's 15 bits.
        let lowSample = G722.saturate((odd &+ even) &>> 14)
        let highSample = G722.saturate((odd &- even) &>> 14)
        let lowCode = G722.quantizeLow(G722.saturate(lowSample &- low.prediction), scale: low.scale)
        adaptLow(lowCode)
        let highCode = G722.quantizeHigh(G722.saturate(highSample &- high.prediction), scale: high.scale)
        adaptHigh(highCode)
        return UInt8(truncatingIfNeeded: highCode &<< 6 | lowCode)
    }

    /// Decodes the two samples of a byte.
    mutating func decode(_ byte: UInt8) -> (Int16, Int16) {
        let lowCode = Int(byte & 0x3F)
        let highCode = Int(byte &>> 6)
        let lowDifference = (low.scale &* G722.lowLevels64[lowCode]) &>> 15
        let lowSample = G722.limit(low.prediction &+ lowDifference)
        adaptLow(lowCode)
        let highDifference = (high.scale &* G722.highLevels[highCode]) &>> 15
        let highSample = G722.limit(high.prediction &+ highDifference)
        adaptHigh(highCode)
        push(lowSample &+ highSample, lowSample &- highSample)
        let (even, odd) = filter()
        return (Int16(clamping: odd &>> 11), Int16(clamping: even &>> 11))
    }

    /// Follows the low band on its upper four bits, which is all that every bitrate has.
    private mutating func adaptLow(_ code: Int) {
        let level = code &>> 2
        let difference = (low.scale &* G722.lowLevels48[level]) &>> 15
        low.adaptScale(by: G722.lowScaleSteps[level], most: 18432, shift: 8)
        low.adaptPredictor(difference)
    }

    private mutating func adaptHigh(_ code: Int) {
        let difference = (high.scale &* G722.highLevels[code]) &>> 15
        high.adaptScale(by: G722.highScaleSteps[code], most: 22528, shift: 10)
        high.adaptPredictor(difference)
    }

    private mutating func push(_ first: Int32, _ second: Int32) {
        for index in 0..<11 {
            evenLine[index] = evenLine[index &+ 1]
            oddLine[index] = oddLine[index &+ 1]
        }
        evenLine[11] = first
        oddLine[11] = second
    }

    /// The two phases of the quadrature mirror filter.
    private func filter() -> (even: Int32, odd: Int32) {
        var even: Int32 = 0
        var odd: Int32 = 0
        for tap in 0..<12 {
            even = even &+ evenLine[tap] &* G722.filterTaps[tap]
            odd = odd &+ oddLine[tap] &* G722.reversedFilterTaps[tap]
        }
        return (even, odd)
    }
}

/// One band's adaptive predictor and quantiser scale.
///
/// Source: ITU-T G.722, sections 3.5 and 3.6.
struct G722Band {
    /// DET: the quantiser's scale factor.
    private(set) var scale: Int32
    /// S: the predicted sample.
    private(set) var prediction: Int32 = 0
    /// NB: the logarithm of the scale factor.
    private var logarithmicScale: Int32 = 0
    /// SZ: the prediction's part by the zeros.
    private var zeroPrediction: Int32 = 0
    /// DLT: the newest six quantised differences.
    private var differences = InlineArray<6, Int32>(repeating: 0)
    /// BL: the six zeros' coefficients.
    private var zeros = InlineArray<6, Int32>(repeating: 0)
    /// AL: the two poles' coefficients.
    private var firstPole: Int32 = 0
    private var secondPole: Int32 = 0
    /// PLT: the two newest partly reconstructed signals.
    private var partial1: Int32 = 0
    private var partial2: Int32 = 0
    /// RLT: the newest reconstructed signal.
    private var reconstructed1: Int32 = 0

    /// A band at rest.
    init(scale: Int32) {
        self.scale = scale
    }

    /// LOGSCL, LOGSCH, SCALEL, SCALEH: follows the level of the codes.
    mutating func adaptScale(by step: Int32, most: Int32, shift: Int32) {
        logarithmicScale = min(max(((logarithmicScale &* 127) &>> 7) &+ step, 0), most)
        let mantissa = G722.inverseLogarithms[Int((logarithmicScale &>> 6) & 31)]
        let exponent = shift &- (logarithmicScale &>> 11)
        scale = (exponent < 0 ? mantissa &<< (0 &- exponent) : mantissa &>> exponent) &<< 2
    }

    /// Takes a quantised difference and predicts the next sample.
    mutating func adaptPredictor(_ difference: Int32) {
        // RECONS, PARREC.
        let reconstructed = G722.saturate(prediction &+ difference)
        let partial = G722.saturate(zeroPrediction &+ difference)
        adaptPoles(partial)
        adaptZeros(difference)
        // DELAYA, FILTEP, PREDIC.
        let first = (firstPole &* G722.saturate(2 &* reconstructed)) &>> 15
        let second = (secondPole &* G722.saturate(2 &* reconstructed1)) &>> 15
        reconstructed1 = reconstructed
        partial2 = partial1
        partial1 = partial
        prediction = G722.saturate(G722.saturate(first &+ second) &+ zeroPrediction)
    }

    /// UPPOL2, UPPOL1.
    private mutating func adaptPoles(_ partial: Int32) {
        let agreesWithFirst = (partial ^ partial1) >= 0
        let agreesWithSecond = (partial ^ partial2) >= 0
        let fourfold = G722.saturate(4 &* firstPole)
        let pull = agreesWithFirst ? min(0 &- fourfold, 32767) : fourfold
        let second = (pull &>> 7) &+ (agreesWithSecond ? 128 : -128) &+ ((secondPole &* 32512) &>> 15)
        secondPole = min(max(second, -12288), 12288)
        let first = G722.saturate((agreesWithFirst ? 192 : -192) &+ ((firstPole &* 32640) &>> 15))
        let most = G722.saturate(15360 &- secondPole)
        firstPole = min(max(first, 0 &- most), most)
    }

    /// UPZERO, FILTEZ.
    private mutating func adaptZeros(_ difference: Int32) {
        let gain: Int32 = difference == 0 ? 0 : 128
        var newer = difference
        var sum: Int32 = 0
        for index in 0..<6 {
            let older = differences[index]
            let push = (older ^ difference) >= 0 ? gain : 0 &- gain
            zeros[index] = G722.saturate(push &+ ((zeros[index] &* 32640) &>> 15))
            differences[index] = newer
            sum = sum &+ ((zeros[index] &* G722.saturate(2 &* newer)) &>> 15)
            newer = older
        }
        zeroPrediction = G722.saturate(sum)
    }
}

/// The tables and the quantisers of G.722.
///
/// Source: ITU-T G.722, tables 11 to 21.
enum G722 {
    /// To 16 bits.
    static func saturate(_ value: Int32) -> Int32 { min(max(value, -32768), 32767) }

    /// LIMIT: to 15 bits.
    static func limit(_ value: Int32) -> Int32 { min(max(value, -16384), 16383) }

    /// QUANTL.
    static func quantizeLow(_ difference: Int32, scale: Int32) -> Int {
        let magnitude = difference >= 0 ? difference : ~difference
        // The number of decision levels that the magnitude reaches; they rise, so halving finds it.
        var interval = 0
        var end = 29
        while interval < end {
            let middle = (interval &+ end) &>> 1
            if magnitude >= (decisionLevels[middle] &* scale) &>> 12 {
                interval = middle &+ 1
            } else {
                end = middle
            }
        }
        // Codes fall as the magnitude grows. Those of positive differences begin at 61; those of negative ones at 63
        // for the two innermost intervals and at 31 from there.
        guard difference < 0 else { return 61 &- interval }
        return interval < 2 ? 63 &- interval : 33 &- interval
    }

    /// QUANTH.
    static func quantizeHigh(_ difference: Int32, scale: Int32) -> Int {
        let magnitude = difference >= 0 ? difference : ~difference
        let isOuter = magnitude >= (564 &* scale) &>> 12
        return difference < 0 ? (isOuter ? 0 : 1) : (isOuter ? 2 : 3)
    }

    static let filterTaps: InlineArray<12, Int32> = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11]

    static let reversedFilterTaps: InlineArray<12, Int32> = [
        -11, 53, -156, 362, -805, 3876, 951, -210, 32, 12, -11, 3,
    ]

    private static let decisionLevels: InlineArray<29, Int32> = [
        35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121, 1219,
        1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
    ]

    static let inverseLogarithms: InlineArray<32, Int32> = [
        2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960,
        3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
    ]

    /// By the upper four bits of the low code: what the scale's logarithm gains.
    static let lowScaleSteps: InlineArray<16, Int32> = [
        -60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60,
    ]

    /// By the high code: what the scale's logarithm gains.
    static let highScaleSteps: InlineArray<4, Int32> = [798, -214, 798, -214]

    static let highLevels: InlineArray<4, Int32> = [-7408, -1616, 7408, 1616]

    /// By the upper four bits of the low code.
    static let lowLevels48: InlineArray<16, Int32> = [
        0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0,
    ]

    /// By all six bits of the low code.
    static let lowLevels64: InlineArray<64, Int32> = [
        -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576,
        -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040,
        -728, 24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
        4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
    ]
}
