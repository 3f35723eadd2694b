public import CallBasics

/// One sine of a tone.
public struct ToneComponent: Hashable, Sendable {
    /// In Hz.
    package var frequency: Double
    /// In dBm0; for a modulated component, at the crest of the modulation.
    package var level: Decibels
    /// Frequency in Hz of a slower sine that modulates the amplitude, or nil for a steady component.
    ///
    /// What ITU-T E.180 writes as 400×16 is a component of 400 Hz modulated by 16 Hz.
    package var modulation: Double?
    /// Share of the amplitude that the modulation moves, from 0 to 1.
    package var modulationDepth: Double

    /// A sine of `frequency` Hz at `level` dBm0, steady unless `modulation` names a frequency.
    ///
    /// What is outside the ranges is refused when the tone is to be played.
    /// - Parameters:
    ///   - frequency: In Hz, above 0 and below half the sample rate.
    ///   - level: In dBm0, -100 to 3.17; for a modulated sine, at the crest of the modulation.
    ///   - modulation: The frequency in Hz, in the same range, of a slower sine that modulates the amplitude; nil for none.
    ///   - modulationDepth: The share of the amplitude that the modulation moves, 0 to 1.
    public init(frequency: Double, level: Decibels, modulation: Double? = nil, modulationDepth: Double = 0.85) {
        self.frequency = frequency
        self.level = level
        self.modulation = modulation
        self.modulationDepth = modulationDepth
    }
}

/// One stretch of a tone: some sines, or silence, for some time.
public struct ToneStep: Hashable, Sendable {
    /// What sounds: one to four sines, or none for silence.
    package var components: [ToneComponent]
    /// For how long; nil is without end, and stands last.
    package var duration: Duration?

    /// A stretch in which `components` sound.
    ///
    /// - Parameters:
    ///   - components: One to four sines, or none for silence.
    ///   - duration: 1 ms to 1 h; nil is without end, and stands last.
    public init(_ components: [ToneComponent], for duration: Duration?) {
        self.components = components
        self.duration = duration
    }

    /// A stretch of silence.
    static func silence(for duration: Duration) -> ToneStep { ToneStep([], for: duration) }
}

/// A tone described for people and configuration: what sounds, in what rhythm, how often.
public struct ToneSpec: Hashable, Sendable {
    /// The stretches of one round, in order.
    package var steps: [ToneStep]
    /// How many rounds are played; nil for no end.
    package var repeatCount: Int?

    /// Steps that a tone may have.
    package static let maximumStepCount = 32
    /// Sines that may sound together.
    package static let maximumComponentCount = 4

    /// A tone of the given steps.
    ///
    /// - Parameters:
    ///   - steps: 1 to 32.
    ///   - repeatCount: How many rounds are played, at least 1; nil for no end.
    public init(steps: [ToneStep], repeatCount: Int? = nil) {
        self.steps = steps
        self.repeatCount = repeatCount
    }

    /// `components` in the rhythm of `cadence`.
    init(_ components: [ToneComponent], cadence: Cadence = .continuous, repeatCount: Int? = nil) {
        guard !cadence.durations.isEmpty else {
            self.init(steps: [ToneStep(components, for: nil)], repeatCount: repeatCount)
            return
        }
        let steps = cadence.durations.enumerated().map { index, duration in
            ToneStep(index.isMultiple(of: 2) ? components : [], for: duration)
        }
        self.init(steps: steps, repeatCount: repeatCount)
    }

    /// Sines of `frequencies` Hz, each at `level` dBm0, in the rhythm of `cadence`.
    ///
    /// - Parameters:
    ///   - frequencies: One to four, in Hz, each above 0 and below half the sample rate.
    ///   - level: Of each sine, -100 to 3.17 dBm0.
    ///   - cadence: At most 32 lengths of sound and silence, each 1 ms to 1 h.
    ///   - repeatCount: How many rounds are played, at least 1; nil for no end.
    public init(
        frequencies: [Double],
        level: Decibels = Decibels(-13),
        cadence: Cadence = .continuous,
        repeatCount: Int? = nil
    ) {
        let components = frequencies.map { ToneComponent(frequency: $0, level: level) }
        self.init(components, cadence: cadence, repeatCount: repeatCount)
    }

    /// The length of all rounds together, or nil for a tone without end.
    package var duration: Duration? {
        guard let repeatCount else { return nil }
        var round = Duration.zero
        for step in steps {
            guard let duration = step.duration else { return nil }
            round += duration
        }
        return round * repeatCount
    }
}
