import CallBasics

/// Up to four sines that sound together, ready for one sample rate.
struct ToneMix: BitwiseCopyable {
    /// One sine, and the slower one that may modulate its amplitude.
    struct Partial: BitwiseCopyable {
        var carrier: Oscillator
        /// Peak in units of a sample.
        var amplitude: Float
        var modulator: Oscillator
        /// 0 for no modulation.
        var depth: Float

        static let none = Partial(
            carrier: Oscillator(frequency: 0, sampleRate: 1),
            amplitude: 0,
            modulator: Oscillator(frequency: 0, sampleRate: 1),
            depth: 0
        )
    }

    private var first = Partial.none
    private var second = Partial.none
    private var third = Partial.none
    private var fourth = Partial.none
    private(set) var count = 0

    /// Partials that a mix can hold.
    static let capacity = 4

    /// Silence.
    init() {}

    /// Both tones of `digit`, each at `level` dBm0.
    init(_ digit: DTMFDigit, level: Decibels, sampleRate: Int) {
        let amplitude = Self.amplitude(ofDBm0: level)
        append(Self.partial(frequency: digit.lowFrequency, amplitude: amplitude, sampleRate: sampleRate))
        append(Self.partial(frequency: digit.highFrequency, amplitude: amplitude, sampleRate: sampleRate))
    }

    /// Adds a partial; the fifth and later ones are left out.
    mutating func append(_ partial: Partial) {
        switch count {
        case 0: first = partial
        case 1: second = partial
        case 2: third = partial
        case 3: fourth = partial
        default: return
        }
        count &+= 1
    }

    /// The peak of a sine of `level` dBm0, in units of a sample.
    static func amplitude(ofDBm0 level: Decibels) -> Float {
        Float(32767 * Decibels(level.value + Decibels.zeroDBm0.value).amplitude)
    }

    /// Writes the sum of the partials at the `count` frames from `position` on to `target`.
    func render(into target: UnsafeMutablePointer<Float>, count frameCount: Int, from position: Int) {
        target.update(repeating: 0, count: frameCount)
        if count > 0 { Self.add(first, to: target, count: frameCount, from: position) }
        if count > 1 { Self.add(second, to: target, count: frameCount, from: position) }
        if count > 2 { Self.add(third, to: target, count: frameCount, from: position) }
        if count > 3 { Self.add(fourth, to: target, count: frameCount, from: position) }
    }

    private static func partial(frequency: Double, amplitude: Float, sampleRate: Int) -> Partial {
        var partial = Partial.none
        partial.carrier = Oscillator(frequency: frequency, sampleRate: sampleRate)
        partial.amplitude = amplitude
        return partial
    }

    private static func add(
        _ partial: Partial,
        to target: UnsafeMutablePointer<Float>,
        count: Int,
        from position: Int
    ) {
        guard partial.depth > 0 else {
            partial.carrier.add(to: target, count: count, from: position, amplitude: partial.amplitude)
            return
        }
        let amplitude = partial.amplitude / (1 + partial.depth)
        var done = 0
        while done < count {
            let (run, first) = partial.carrier.run(from: position &+ done, limit: count &- done)
            var modulatorTurn = partial.modulator.run(from: position &+ done, limit: run).turn
            var turn = first
            let end = done &+ run
            while done < end {
                target[done] += amplitude * (1 + partial.depth * Oscillator.sine(modulatorTurn)) * Oscillator.sine(turn)
                turn &+= partial.carrier.turnStep
                modulatorTurn &+= partial.modulator.turnStep
                done &+= 1
            }
        }
    }
}
