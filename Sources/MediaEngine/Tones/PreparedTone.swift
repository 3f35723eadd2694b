import CallBasics

/// A tone that has been checked and computed for one sample rate, ready to be handed to the media thread.
///
/// Thread: made and freed on the control side, read on the media thread; immutable.
package final class PreparedTone: Sendable {
    /// One stretch of sound or silence.
    struct Step: BitwiseCopyable {
        var mix: ToneMix
        /// `Int.max` for a stretch without end.
        var frameCount: Int
    }

    /// Frames per second that the tone is computed for.
    package let sampleRate: Int
    /// Rounds to play; `Int.max` for no end.
    let repeatCount: Int
    let stepCount: Int
    nonisolated(unsafe) let steps: UnsafeMutablePointer<Step>

    /// The tone of `spec` at `sampleRate` Hz.
    ///
    /// Throws: `ToneError` when a frequency, level, duration or count cannot be played, naming it.
    package init(_ spec: ToneSpec, sampleRate: Int) throws(ToneError) {
        let prepared = try Self.prepare(spec, sampleRate: sampleRate)
        self.sampleRate = sampleRate
        repeatCount = spec.repeatCount ?? .max
        stepCount = prepared.count
        steps = .allocate(capacity: prepared.count)
        for (index, step) in prepared.enumerated() { (steps + index).initialize(to: step) }
    }

    deinit {
        steps.deallocate()
    }

    private static func prepare(_ spec: ToneSpec, sampleRate: Int) throws(ToneError) -> [Step] {
        guard (1...ToneSpec.maximumStepCount).contains(spec.steps.count) else {
            throw ToneError(
                .invalidTone,
                "A tone of \(spec.steps.count) steps cannot be played. Give 1 to \(ToneSpec.maximumStepCount) steps."
            )
        }
        if let count = spec.repeatCount, count < 1 {
            throw ToneError(.invalidTone, "A tone cannot be repeated \(count) times. Give 1 or more, or no count.")
        }
        var prepared: [Step] = []
        for (index, step) in spec.steps.enumerated() {
            var mix = ToneMix()
            guard step.components.count <= ToneSpec.maximumComponentCount else {
                throw ToneError(
                    .invalidTone,
                    "Step \(index + 1) of the tone has \(step.components.count) frequencies. "
                        + "Give at most \(ToneSpec.maximumComponentCount)."
                )
            }
            for component in step.components {
                mix.append(try partial(component, sampleRate: sampleRate))
            }
            let isLast = index == spec.steps.count - 1
            prepared.append(
                Step(mix: mix, frameCount: try frameCount(of: step, number: index + 1, isLast: isLast, at: sampleRate))
            )
        }
        return prepared
    }

    private static func frameCount(
        of step: ToneStep,
        number: Int,
        isLast: Bool,
        at sampleRate: Int
    ) throws(ToneError) -> Int {
        guard let duration = step.duration else {
            guard isLast else {
                throw ToneError(
                    .invalidTone,
                    "Step \(number) of the tone never ends, but others follow it. Give it a duration."
                )
            }
            return .max
        }
        guard duration >= .milliseconds(1), duration <= .seconds(3600) else {
            throw ToneError(
                .invalidTone,
                "Step \(number) of the tone lasts \(duration.milliseconds) ms. Give 1 ms to 1 h."
            )
        }
        return max(1, AudioFormat(sampleRate: sampleRate).frameCount(in: duration))
    }

    private static func partial(_ component: ToneComponent, sampleRate: Int) throws(ToneError) -> ToneMix.Partial {
        let limit = Double(sampleRate) / 2
        for frequency in [component.frequency, component.modulation ?? component.frequency] {
            guard frequency > 0, frequency < limit else {
                throw ToneError(
                    .invalidTone,
                    "A tone of \(frequency) Hz cannot be played at \(sampleRate) Hz. "
                        + "Give a frequency above 0 and below \(limit) Hz."
                )
            }
        }
        guard component.level.value <= -Decibels.zeroDBm0.value, component.level.value >= -100 else {
            throw ToneError(
                .invalidTone,
                "A tone's level of \(component.level.value) dBm0 cannot be played. "
                    + "Give -100 to \(-Decibels.zeroDBm0.value) dBm0."
            )
        }
        guard component.modulationDepth >= 0, component.modulationDepth <= 1 else {
            throw ToneError(
                .invalidTone,
                "A modulation depth of \(component.modulationDepth) cannot be played. Give 0 to 1."
            )
        }
        return ToneMix.Partial(
            carrier: Oscillator(frequency: component.frequency, sampleRate: sampleRate),
            amplitude: ToneMix.amplitude(ofDBm0: component.level),
            modulator: Oscillator(frequency: component.modulation ?? 0, sampleRate: sampleRate),
            depth: component.modulation == nil ? 0 : Float(component.modulationDepth)
        )
    }
}
