internal import CVectors

/// Converts samples from one rate to another, by a ratio that is exact for ever or that follows a drift.
///
///     input ──► history ──► windowed sinc at a fraction of a frame ──► output
///
/// The position in the input is a whole frame and a fraction, counted in integers: after any time, frame n of the output
/// stands for the same instant as frame n × input rate / output rate of the input, `delayFrameCount` later. At a fixed
/// ratio the fractions that occur are few, and each has a filter of its own (`ResamplerTable`). One that follows a drift
/// takes any fraction, by a filter between two of the table: a change of `ppm` bends the position, it does not break it,
/// so there is no click. At equal rates without a correction the output is the input, bit for bit.
///
/// A resampler that skips its delay leaves the silence out that the filter's look-ahead puts in front; `drain` gives what
/// the filter still holds at the end.
/// Pure: it owns its memory and nothing else. Shape: interleaved `Int16`. Nothing allocates after `init`.
/// Thread: one at a time, any; `init` may compute for milliseconds, off the media thread.
package final class Resampler {
    /// How long the filter is: what it passes and keeps out, against its delay.
    ///
    /// The band ends where it has fallen by 0.1 dB; images of what lies in it, and aliases that fall into it, are below the
    /// level named. Both are told in parts of half the lower rate, the delay in frames of the lower rate. What lies just
    /// above 1 falls back just below 1, outside the band.
    package enum Quality: Int, Hashable, Sendable {
        /// Band to 0.8, -80 dB, 16 frames late.
        case low = 16
        /// Band to 0.9, -80 dB, 24 frames late.
        case speech = 24
        /// Band to 0.9, -90 dB, 32 frames late.
        case standard = 32
        /// Band to 0.91, -90 dB for all above 1, 64 frames late.
        case high = 64
    }

    /// Samples per frame.
    package let channelCount: Int
    /// Frames of input by which the output is late, exactly; 0 when the delay is skipped.
    package let delayFrameCount: Int
    /// How many parts per million more input the output takes than the two rates say; from the next block on.
    ///
    /// For a resampler that follows a drift; any other stays at 0.
    package var ppm: Double = 0 {
        didSet {
            precondition(ppm == 0 || followsDrift, "This resampler keeps its ratio. Make one that follows a drift.")
            step = Position(of: ratio, ppm: ppm, unit: unit)
        }
    }

    private let followsDrift: Bool
    private let ratio: Ratio
    private let table: ResamplerTable
    private let tapCount: Int
    private let capacity: Int
    /// `capacity` frames for each channel, one channel after the other, and what padded rows read behind the last.
    private let history: UnsafeMutablePointer<Float>
    private var filled: Int
    /// Fractions of a frame that the position is counted in.
    private let unit: Int
    /// Where the filter begins in `history`.
    private var position = Position()
    private var step: Position
    /// Frames since the last one that was not silent; all of `history` is silent once it is exceeded.
    private var silentCount: Int
    /// Frames of silence that are still to follow the input's end.
    private var drainCount: Int

    /// A resampler that has heard nothing yet.
    ///
    /// - Parameters:
    ///   - inputRate: Frames per second that go in.
    ///   - outputRate: Frames per second that come out.
    ///   - channelCount: Samples per frame.
    ///   - quality: The length of the filter.
    ///   - skipsDelay: Whether the silence that the filter's look-ahead puts in front is left out.
    ///   - followsDrift: Whether `ppm` may change.
    ///   - maximumFrameCount: The most frames of input that wait for room in the output.
    package init(
        from inputRate: Int,
        to outputRate: Int,
        channelCount: Int = 1,
        quality: Quality = .standard,
        skipsDelay: Bool = false,
        followsDrift: Bool = false,
        maximumFrameCount: Int = 1024
    ) {
        precondition(inputRate > 0 && outputRate > 0 && channelCount > 0 && maximumFrameCount > 0)
        self.channelCount = channelCount
        self.followsDrift = followsDrift
        ratio = Ratio(inputRate, outputRate)
        table = ResamplerTable.shared(ratio, quality, isDense: followsDrift)
        tapCount = table.tapCount
        delayFrameCount = skipsDelay ? 0 : tapCount / 2
        // Between rows some 2^-31 of a frame, in which the fixed ratio is a whole number as well.
        unit = table.isDense ? ratio.output * max(1, (1 << 31) / ratio.output) : ratio.output
        step = Position(of: ratio, ppm: 0, unit: unit)
        capacity = tapCount + maximumFrameCount
        history = .allocate(capacity: capacity * channelCount + ResamplerTable.rowStep)
        history.initialize(repeating: 0, count: capacity * channelCount + ResamplerTable.rowStep)
        filled = delayFrameCount + tapCount / 2 - 1
        drainCount = tapCount / 2
        silentCount = capacity
    }

    deinit {
        history.deallocate()
    }

    /// Frames of input that must be given to get `outputFrameCount` more.
    package func inputFrameCount(forOutput outputFrameCount: Int) -> Int {
        guard outputFrameCount > 0 else { return 0 }
        let steps = outputFrameCount &- 1
        let last = position.frame &+ steps &* step.frame &+ (position.fraction &+ steps &* step.fraction) / unit
        return max(0, last &+ tapCount &- filled)
    }

    /// Frames of output that `inputFrameCount` more frames of input give.
    package func outputFrameCount(forInput inputFrameCount: Int) -> Int {
        let frames = filled &+ inputFrameCount &- tapCount &+ 1 &- position.frame
        let room = frames &* unit &- 1 &- position.fraction
        return room < 0 ? 0 : room / (step.frame &* unit &+ step.fraction) &+ 1
    }

    /// Takes frames of `input` and gives frames to `output`, until one of them is used up.
    ///
    /// - Returns: The frames taken from the start of `input`, and those written to the start of `output`.
    package func process(_ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> (consumed: Int, produced: Int)
    {
        if !input.isEmpty { drainCount = tapCount / 2 }
        return input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                run(input.baseAddress, input.count / channelCount, output)
            }
        }
    }

    /// Writes frames that the filter still holds after the last input, and answers how many; 0 when all are out.
    ///
    /// With the delay skipped, the output is in all as long as the input, rounded up to a frame; else longer by the delay.
    package func drain(into output: inout MutableSpan<Int16>) -> Int {
        output.withUnsafeMutableBufferPointer { output in
            let (consumed, produced) = run(nil, drainCount, output)
            drainCount &-= consumed
            return produced
        }
    }

    /// Forgets the past: the next input begins another stretch; the correction remains.
    package func reset() {
        history.update(repeating: 0, count: capacity &* channelCount)
        filled = delayFrameCount &+ tapCount / 2 &- 1
        drainCount = tapCount / 2
        position = Position()
        silentCount = capacity
    }

    // MARK: History

    /// Takes up to `available` frames of `source`, or of silence, and gives what `output` has room for.
    private func run(
        _ source: UnsafePointer<Int16>?,
        _ available: Int,
        _ output: UnsafeMutableBufferPointer<Int16>
    ) -> (consumed: Int, produced: Int) {
        var (consumed, produced) = (0, 0)
        let room = output.count / channelCount
        while true {
            let taken = min(capacity &- filled, available &- consumed)
            if taken > 0 { append(source.map { $0 + consumed &* channelCount }, taken) }
            consumed &+= taken
            let given = min(outputFrameCount(forInput: 0), room &- produced)
            if given > 0, let target = output.baseAddress { convert(target + produced &* channelCount, given) }
            produced &+= given
            discardPast()
            guard (given > 0 || taken > 0) && consumed < available && produced < room else { break }
        }
        return (consumed, produced)
    }

    private func append(_ source: UnsafePointer<Int16>?, _ frameCount: Int) {
        var loud: Int16 = 0
        for channel in 0..<channelCount {
            let target = history + (channel &* capacity &+ filled)
            guard let source else {
                target.update(repeating: 0, count: frameCount)
                continue
            }
            // Two loops, of which the first becomes vector code.
            if channelCount == 1 {
                for frame in 0..<frameCount {
                    loud |= source[frame]
                    target[frame] = Float(source[frame])
                }
            } else {
                for frame in 0..<frameCount {
                    let sample = source[frame &* channelCount &+ channel]
                    loud |= sample
                    target[frame] = Float(sample)
                }
            }
        }
        silentCount = loud == 0 ? min(silentCount &+ frameCount, capacity) : 0
        filled &+= frameCount
    }

    /// Moves what the filter still needs to the front.
    private func discardPast() {
        let past = min(position.frame, filled)
        guard past > 0 else { return }
        filled &-= past
        for channel in 0..<channelCount {
            let start = history + channel &* capacity
            start.update(from: start + past, count: filled)
        }
        position.frame &-= past
    }

    // MARK: Kernels

    private func convert(_ target: UnsafeMutablePointer<Int16>, _ frameCount: Int) {
        var next = position
        if silentCount >= filled {
            target.update(repeating: 0, count: frameCount &* channelCount)
            next.advance(by: step, times: frameCount, unit)
        } else if step.frame == 1, step.fraction == 0, position.fraction == 0, table.passesWholeFrames {
            copy(target, frameCount)
            next.advance(by: step, times: frameCount, unit)
        } else {
            for channel in 0..<channelCount {
                let source = UnsafePointer(history + channel &* capacity)
                next =
                    table.isDense
                    ? interpolate(source, target + channel, frameCount) : filter(source, target + channel, frameCount)
            }
        }
        position = next
    }

    /// Without a fraction the filter is a single one: the sample in the middle.
    private func copy(_ target: UnsafeMutablePointer<Int16>, _ frameCount: Int) {
        for channel in 0..<channelCount {
            let source = history + (channel &* capacity &+ position.frame &+ tapCount / 2 &- 1)
            for frame in 0..<frameCount {
                target[frame &* channelCount &+ channel] = Int16(truncatingIfNeeded: Int32(source[frame]))
            }
        }
    }

    /// Each fraction has a row of the table.
    private func filter(_ source: UnsafePointer<Float>, _ target: UnsafeMutablePointer<Int16>, _ count: Int) -> Position
    {
        var position = position
        let (step, unit, rowLength) = (step, unit, table.rowLength)
        let rows = UnsafePointer(table.rows)
        for frame in 0..<count {
            let sum = sum_of_products(rows + position.fraction &* rowLength, source + position.frame, rowLength)
            target[frame &* channelCount] = Self.rounded(sum)
            position.advance(by: step, unit)
        }
        return position
    }

    /// A fraction lies between two rows of the table.
    private func interpolate(
        _ source: UnsafePointer<Float>,
        _ target: UnsafeMutablePointer<Int16>,
        _ count: Int
    ) -> Position {
        var position = position
        let (step, unit, rowLength) = (step, unit, table.rowLength)
        let rows = UnsafePointer(table.rows)
        let reciprocal = Int.max / unit
        for frame in 0..<count {
            // The fraction in 2^-32 of a frame: its first bits say which row, the rest how far it is to the next.
            let place = (position.fraction &* reciprocal) >> 31
            let row = rows + (place >> (32 &- ResamplerTable.denseRowBits)) &* rowLength
            let between = Float((place << ResamplerTable.denseRowBits) & 0xFFFF_FFFF) * 0x1p-32
            let sum = sum_of_products_between(row, row + rowLength, between, source + position.frame, rowLength)
            target[frame &* channelCount] = Self.rounded(sum)
            position.advance(by: step, unit)
        }
        return position
    }

    /// The nearest sample, clipped.
    @inline(__always)
    private static func rounded(_ sum: Float) -> Int16 {
        // On top of so large a number the last bit of the mantissa counts ones.
        let rounded = Int32(bitPattern: (sum + 12_582_912).bitPattern) &- 0x4B40_0000
        return Int16(truncatingIfNeeded: min(max(rounded, -32768), 32767))
    }

    /// A place in the input: a frame, and a fraction in units.
    private struct Position {
        var frame = 0
        var fraction = 0

        init() {}

        /// The input that a frame of output takes.
        init(of ratio: Ratio, ppm: Double, unit: Int) {
            let scale = unit / ratio.output
            let exact = ratio.input * scale
            let units = ppm == 0 ? exact : max(1, Int((Double(exact) * (1 + ppm / 1e6)).rounded()))
            (frame, fraction) = units.quotientAndRemainder(dividingBy: unit)
        }

        @inline(__always)
        mutating func advance(by step: Position, _ unit: Int) {
            frame &+= step.frame
            fraction &+= step.fraction
            if fraction >= unit {
                fraction &-= unit
                frame &+= 1
            }
        }

        mutating func advance(by step: Position, times count: Int, _ unit: Int) {
            let units = fraction &+ step.fraction &* count
            frame &+= step.frame &* count &+ units / unit
            fraction = units % unit
        }
    }

    /// Frames of input and frames of output that last equally long, without a common divisor.
    struct Ratio: Hashable {
        let input: Int
        let output: Int

        init(_ inputRate: Int, _ outputRate: Int) {
            var (divisor, rest) = (inputRate, outputRate)
            while rest != 0 { (divisor, rest) = (rest, divisor % rest) }
            input = inputRate / divisor
            output = outputRate / divisor
        }
    }
}
