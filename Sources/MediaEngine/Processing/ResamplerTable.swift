import Glibc
import Synchronization

/// The filters of resamplers of one ratio: a sinc in a Kaiser window, at each of several fractions of a frame.
///
///     row r       the filter for the fraction r / rowCount, `tapCount` coefficients and zeros up to a whole vector
///     last row    that of the fraction 1, so that each fraction lies between two rows
///
/// A fixed ratio with few fractions has a row for each; otherwise rows are dense enough for a straight line between two:
/// what that adds is 94 dB below the sound.
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
        tapCount = Self.tapCount(ratio, quality)
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

    /// Going down, the filter must be longer by as much as its band is narrower; in steps of half a vector.
    private static func tapCount(_ ratio: Resampler.Ratio, _ quality: Resampler.Quality) -> Int {
        let length = 2 * quality.rawValue * max(ratio.input, ratio.output)
        return (length + 8 * ratio.output - 1) / (8 * ratio.output) * 8
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

    // MARK: Sharing

    private struct Key: Hashable {
        let ratio: Resampler.Ratio
        let quality: Resampler.Quality
        let isDense: Bool
    }

    private static let tables = Mutex<[Key: ResamplerTable]>([:])
    /// Coefficients of all tables from which on those that nobody uses go: 4 MiB.
    private static var keptCount: Int { 1 << 20 }
    /// Coefficients of a table with a row for each fraction.
    private static var largestCount: Int { 1 << 18 }

    /// The table for `ratio`: one that is there, or a new one.
    static func shared(_ ratio: Resampler.Ratio, _ quality: Resampler.Quality, isDense: Bool) -> ResamplerTable {
        let isLarge = ratio.output * tapCount(ratio, quality) > largestCount
        let key = Key(ratio: ratio, quality: quality, isDense: isDense || isLarge)
        if let table = tables.withLock({ $0[key] }) { return table }
        let new = ResamplerTable(key)
        return tables.withLock { tables in
            if let table = tables[key] { return table }
            if tables.values.reduce(0, { $0 + $1.count }) > keptCount { removeUnused(&tables) }
            tables[key] = new
            return new
        }
    }

    private static func removeUnused(_ tables: inout [Key: ResamplerTable]) {
        for key in Array(tables.keys) {
            var table = tables.removeValue(forKey: key)
            if !isKnownUniquelyReferenced(&table) { tables[key] = table }
        }
    }

    private var count: Int { rowCount * rowLength }
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
