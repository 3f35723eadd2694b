import Glibc

/// Converts samples between two rates that drift against each other: cheap at any ratio, which may change every block.
///
///     input ──► history ──► windowed sinc at a fraction of a frame ──► output
///
/// Where SpeexDSP looks its filter up by a rational ratio and pays for each change of it, here the position in the
/// input is a fixed-point number that grows by `1 + ppm` per frame of output; the filter at that fraction lies between
/// two rows of a table. A change of the ratio bends the position, it does not break it: there is no click.
/// At equal rates without a correction the output is the input, bit for bit, `delayFrameCount` frames late.
/// Pure: it owns its memory and nothing else. Shape: interleaved `Int16`. Nothing allocates after `init`.
/// Thread: one at a time, any.
package final class PolyphaseResampler {
    /// Samples per frame.
    package let channelCount: Int
    /// Frames of input by which the output is late.
    package let delayFrameCount: Int
    /// How many parts per million more input the output takes than the two rates say; from the next block on.
    package var ppm: Double {
        didSet { step = Self.step(nominal, ppm) }
    }

    private let nominal: Double
    private let tapCount: Int
    private let capacity: Int
    /// Rows of `tapCount` coefficients: row r holds the filter for the fraction r / `phaseCount`.
    private let table: UnsafeMutablePointer<Float>
    /// `capacity` frames for each channel, one channel after the other.
    private let history: UnsafeMutablePointer<Float>
    private var filled: Int
    /// Where the filter begins in `history`, in frames, with 32 bits of fraction.
    private var position: Int64 = 0
    private var step: Int64
    /// Frames since the last one that was not silent; all of `history` is silent once it is exceeded.
    private var silentCount: Int

    /// A resampler that has heard silence so far.
    ///
    /// - Parameters:
    ///   - inputRate: Frames per second that go in.
    ///   - outputRate: Frames per second that come out.
    ///   - channelCount: Samples per frame.
    ///   - maximumFrameCount: The most frames of input that are taken at once.
    package init(from inputRate: Int, to outputRate: Int, channelCount: Int = 1, maximumFrameCount: Int = 1024) {
        precondition(inputRate > 0 && outputRate > 0 && channelCount > 0 && maximumFrameCount > 0)
        self.channelCount = channelCount
        nominal = Double(inputRate) / Double(outputRate)
        // Going down, the filter must be longer by as much as its band is narrower; in steps of one vector.
        let stretch = max(1, nominal)
        tapCount = Int((Double(Self.baseTapCount) * stretch / 8).rounded(.up)) * 8
        delayFrameCount = tapCount / 2
        capacity = tapCount + maximumFrameCount
        ppm = 0
        step = Self.step(nominal, 0)
        table = .allocate(capacity: (Self.phaseCount + 1) * tapCount)
        history = .allocate(capacity: capacity * channelCount)
        history.initialize(repeating: 0, count: capacity * channelCount)
        filled = tapCount - 1
        silentCount = capacity
        Self.fill(table, tapCount: tapCount, band: nominal > 1 ? 0.94 / nominal : 1)
    }

    deinit {
        table.deallocate()
        history.deallocate()
    }

    /// Frames of input that must be given to get `outputFrameCount` more.
    package func inputFrameCount(forOutput outputFrameCount: Int) -> Int {
        guard outputFrameCount > 0 else { return 0 }
        let last = (position &+ Int64(outputFrameCount &- 1) &* step) >> 32
        return max(0, Int(last) &+ tapCount &- filled)
    }

    /// Frames of output that `inputFrameCount` more frames of input give.
    package func outputFrameCount(forInput inputFrameCount: Int) -> Int {
        let last = filled &+ inputFrameCount &- tapCount
        let room = ((Int64(last) &+ 1) << 32) &- 1 &- position
        return room < 0 ? 0 : Int(room / step) &+ 1
    }

    /// Takes frames of `input` and gives frames to `output`, until one of them is used up.
    ///
    /// - Returns: The frames taken from the start of `input`, and those written to the start of `output`.
    package func process(_ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> (consumed: Int, produced: Int)
    {
        input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                var (consumed, produced) = (0, 0)
                let (available, room) = (input.count / channelCount, output.count / channelCount)
                while true {
                    let taken = min(capacity &- filled, available &- consumed)
                    if taken > 0, let source = input.baseAddress { append(source + consumed &* channelCount, taken) }
                    consumed &+= taken
                    let given = min(outputFrameCount(forInput: 0), room &- produced)
                    if given > 0, let target = output.baseAddress { convert(target + produced &* channelCount, given) }
                    produced &+= given
                    discardPast()
                    guard (given > 0 || taken > 0) && consumed < available && produced < room else { break }
                }
                return (consumed, produced)
            }
        }
    }

    /// Forgets the past, as if silence had gone before; the correction remains.
    package func reset() {
        history.update(repeating: 0, count: capacity &* channelCount)
        filled = tapCount &- 1
        position = 0
        silentCount = capacity
    }

    // MARK: Kernel

    private func append(_ source: UnsafePointer<Int16>, _ frameCount: Int) {
        var loud: Int16 = 0
        for channel in 0..<channelCount {
            let target = history + (channel &* capacity &+ filled)
            for frame in 0..<frameCount {
                let sample = source[frame &* channelCount &+ channel]
                loud |= sample
                target[frame] = Float(sample)
            }
        }
        silentCount = loud == 0 ? min(silentCount &+ frameCount, capacity) : 0
        filled &+= frameCount
    }

    private func convert(_ target: UnsafeMutablePointer<Int16>, _ frameCount: Int) {
        defer { position &+= Int64(frameCount) &* step }
        if silentCount >= filled {
            target.update(repeating: 0, count: frameCount &* channelCount)
            return
        }
        if step == Int64(1) << 32, position & 0xFFFF_FFFF == 0 {
            return copy(target, frameCount)
        }
        for channel in 0..<channelCount {
            interpolate(history + channel &* capacity, target + channel, frameCount)
        }
    }

    /// Without a fraction the filter is a single one: the sample in the middle.
    private func copy(_ target: UnsafeMutablePointer<Int16>, _ frameCount: Int) {
        let start = Int(position >> 32) &+ tapCount / 2 &- 1
        for channel in 0..<channelCount {
            let source = history + (channel &* capacity &+ start)
            for frame in 0..<frameCount {
                target[frame &* channelCount &+ channel] = Int16(truncatingIfNeeded: Int32(source[frame]))
            }
        }
    }

    private func interpolate(_ source: UnsafeMutablePointer<Float>, _ target: UnsafeMutablePointer<Int16>, _ count: Int)
    {
        var position = position
        let rowBytes = tapCount &* 4
        let (table, source) = (UnsafeRawPointer(table), UnsafeRawPointer(source))
        for frame in 0..<count {
            let fraction = Int(position & 0xFFFF_FFFF)
            let row = table + (fraction >> (32 &- Self.phaseBits)) &* rowBytes
            let between = Float(fraction & Self.betweenMask) * Self.betweenScale
            let samples = source + Int(position >> 32) &* 4
            var sum = SIMD8<Float>.zero
            var offset = 0
            while offset < rowBytes {
                let low = row.loadUnaligned(fromByteOffset: offset, as: SIMD8<Float>.self)
                let high = row.loadUnaligned(fromByteOffset: offset &+ rowBytes, as: SIMD8<Float>.self)
                let sample = samples.loadUnaligned(fromByteOffset: offset, as: SIMD8<Float>.self)
                sum += (low + (high - low) * between) * sample
                offset &+= 32
            }
            let half = sum.lowHalf + sum.highHalf
            let quarter = half.lowHalf + half.highHalf
            let value = quarter.x + quarter.y
            let rounded = Int32(value + (value < 0 ? -0.5 : 0.5))
            target[frame &* channelCount] = Int16(truncatingIfNeeded: min(max(rounded, -32768), 32767))
            position &+= step
        }
    }

    /// Moves what the filter still needs to the front.
    private func discardPast() {
        let past = min(Int(position >> 32), filled)
        guard past > 0 else { return }
        filled &-= past
        for channel in 0..<channelCount {
            let start = history + channel &* capacity
            start.update(from: start + past, count: filled)
        }
        position &-= Int64(past) << 32
    }

    // MARK: Table

    private static func step(_ nominal: Double, _ ppm: Double) -> Int64 {
        Int64((nominal * (1 + ppm / 1e6) * 4_294_967_296).rounded())
    }

    /// Rows of a sinc in a Kaiser window; `band` 1 passes all up to half the input rate.
    private static func fill(_ table: UnsafeMutablePointer<Float>, tapCount: Int, band: Double) {
        let half = Double(tapCount) / 2
        for row in 0...phaseCount {
            let fraction = Double(row) / Double(phaseCount)
            var coefficients = [Double](repeating: 0, count: tapCount)
            for tap in 0..<tapCount {
                let distance = Double(tap) - (half - 1) - fraction
                let place = distance / half
                guard abs(place) < 1 else { continue }
                let angle = Double.pi * distance * band
                let sinc = abs(angle) < 1e-12 ? 1 : sin(angle) / angle
                coefficients[tap] = band * sinc * bessel(kaiserBeta * (1 - place * place).squareRoot())
            }
            // Every row passes a constant unchanged.
            let sum = coefficients.reduce(0, +)
            for tap in 0..<tapCount { (table + row * tapCount + tap).initialize(to: Float(coefficients[tap] / sum)) }
        }
        guard band == 1 else { return }
        // What rounding left of the zeros of the sinc at whole frames.
        for (row, middle) in [(0, tapCount / 2 - 1), (phaseCount, tapCount / 2)] {
            for tap in 0..<tapCount { table[row * tapCount + tap] = tap == middle ? 1 : 0 }
        }
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

    private static var baseTapCount: Int { 32 }
    private static var kaiserBeta: Double { 8 }
    private static var phaseBits: Int { 8 }
    private static var phaseCount: Int { 256 }
    private static var betweenMask: Int { 0xFF_FFFF }
    private static var betweenScale: Float { 1 / 16_777_216 }
}
