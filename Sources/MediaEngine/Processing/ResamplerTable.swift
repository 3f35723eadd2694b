import Glibc
import Synchronization

/// The filters of resamplers of one ratio: a sinc in a Kaiser window, at each of several fractions of a frame.
///
///     row r       the filter for the fraction r / rowCount, `tapCount` coefficients and zeros up to a whole vector
///     last row    that of the fraction 1, so that each fraction lies between two rows
///
/// A fixed ratio with at most 1280 fractions has a row for each; otherwise rows are dense enough for a straight line
/// between two: what that adds is 94 dB below the sound.
/// Immutable, and shared by all resamplers of a ratio. Thread: any; `shared` takes a lock and computes.
/// Source: Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", ISCAS 1974.
final class ResamplerTable: @unchecked Sendable {
    let rowCount: Int
    let tapCount: Int
    /// Whether fractions lie between rows.
    let isDense: Bool
    /// Whether the filter for a whole frame passes the sample in the middle and nothing else.
    let passesWholeFrames: Bool
    /// Coefficients of a row, with the zeros behind them.
    let rowLength: Int
    /// Rows one after the other, from a multiple of 64 bytes on.
    let rows: UnsafeMutablePointer<Float>

    /// Coefficients that are worked on at once: rows are multiples of it.
    static var rowStep: Int { 16 }
    /// A dense table has two to that power of rows.
    static var denseRowBits: Int { 8 }

    private init(_ key: Key) {
        let (ratio, quality) = (key.ratio, key.quality)
        isDense = key.isDense
        rowCount = isDense ? 1 << Self.denseRowBits : ratio.output
        // Going down, the filter must be longer by as much as its band is narrower; in steps of half a vector.
        let length = 2 * quality.rawValue * max(ratio.input, ratio.output)
        tapCount = (length + 8 * ratio.output - 1) / (8 * ratio.output) * 8
        rowLength = (tapCount + Self.rowStep - 1) / Self.rowStep * Self.rowStep
        passesWholeFrames = ratio.input == ratio.output
        let count = (rowCount + 1) * rowLength
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count * 4, alignment: 64)
        rows = memory.initializeMemory(as: Float.self, repeating: 0, count: count)
        let shape = quality.shape
        for row in 0...rowCount {
            fill(
                rows + row * rowLength,
                fraction: Double(row) / Double(rowCount),
                band: passesWholeFrames ? 1 : shape.band * min(1, Double(ratio.output) / Double(ratio.input)),
                beta: shape.beta
            )
        }
        guard passesWholeFrames else { return }
        // What rounding left of the zeros of the sinc at whole frames.
        for (row, middle) in [(0, tapCount / 2 - 1), (rowCount, tapCount / 2)] {
            for tap in 0..<tapCount { rows[row * rowLength + tap] = tap == middle ? 1 : 0 }
        }
    }

    deinit {
        UnsafeMutableRawPointer(rows).deallocate()
    }

    /// One row; `band` 1 passes all up to half the input rate.
    private func fill(_ row: UnsafeMutablePointer<Float>, fraction: Double, band: Double, beta: Double) {
        let half = Double(tapCount) / 2
        var coefficients = [Double](repeating: 0, count: tapCount)
        for tap in 0..<tapCount {
            let distance = Double(tap) - (half - 1) - fraction
            let place = distance / half
            guard abs(place) < 1 else { continue }
            let angle = Double.pi * distance * band
            let sinc = abs(angle) < 1e-12 ? 1 : sin(angle) / angle
            coefficients[tap] = sinc * Self.bessel(beta * (1 - place * place).squareRoot())
        }
        // Every row passes a constant unchanged.
        let sum = coefficients.reduce(0, +)
        for tap in 0..<tapCount { row[tap] = Float(coefficients[tap] / sum) }
    }

    /// The modified Bessel function of the first kind and order zero.
    private static func bessel(_ value: Double) -> Double {
        var (sum, term, index) = (1.0, 1.0, 1.0)
        while term > sum * 1e-17 {
            term *= (value / (2 * index)) * (value / (2 * index))
            sum += term
            index += 1
        }
        return sum
    }

    private static var mostRows: Int { 1280 }

    // MARK: Sharing

    private struct Key: Hashable {
        let ratio: Resampler.Ratio
        let quality: Resampler.Quality
        let isDense: Bool
    }

    private static let tables = Mutex<[Key: ResamplerTable]>([:])
    /// Tables that are kept although nobody uses them.
    private static var keptCount: Int { 32 }

    /// The table for `ratio`: one that is there, or a new one.
    static func shared(_ ratio: Resampler.Ratio, _ quality: Resampler.Quality, isDense: Bool) -> ResamplerTable {
        let key = Key(ratio: ratio, quality: quality, isDense: isDense || ratio.output > mostRows)
        return tables.withLock { tables in
            if let table = tables[key] { return table }
            if tables.count >= keptCount {
                for other in Array(tables.keys) {
                    var table = tables.removeValue(forKey: other)
                    if !isKnownUniquelyReferenced(&table) { tables[other] = table }
                }
            }
            let table = ResamplerTable(key)
            tables[key] = table
            return table
        }
    }
}

extension Resampler.Quality {
    /// Where the band ends, in parts of half the lower rate, and how steep the window is.
    ///
    /// More band would let more of what is above fold back, a wider window would take from the band.
    fileprivate var shape: (band: Double, beta: Double) {
        switch self {
        case .low: (0.95, 8)
        case .speech: (0.98, 8)
        case .standard: (0.967, 9.4)
        case .high: (0.95, 10)
        }
    }
}
