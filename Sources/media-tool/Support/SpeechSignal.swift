internal import CallBasics
import Glibc
import MediaEngine

/// Eight seconds that have of speech what codecs, concealment and detectors of speech go by: pitch, formants, hiss, syllables,
/// phrases with pauses, and the level.
///
/// Pulses go through three resonators in a row, hiss through one. The samples are the same each time, and end in a pause.
/// Source: Klatt, "Software for a cascade/parallel formant synthesizer", JASA 67(3), 1980; levels as ITU-T P.56 has them.
struct SpeechSignal {
    static let seconds = 8

    private let rate: Double
    private var generator = SeededGenerator(seed: 4)
    private var pitchPhase = 0.0
    private var glottis = (0.0, 0.0)
    private var formants = Self.vowels[0]
    private var resonators = (Resonator(), Resonator(), Resonator())
    private var hiss = Resonator()
    private var loudness = 0.0
    private var hissing = 0.0
    private var sound: [Double] = []
    private var isSpoken: [Bool] = []

    /// Frequencies of the first three formants of a, e, i, o and u, in Hz.
    private static let vowels = [
        SIMD3(730.0, 1090, 2440), [530, 1840, 2480], [270, 2290, 3010], [570, 840, 2410], [300, 870, 2240],
    ]
    private static let bandwidths = SIMD3(80.0, 100, 140)
    /// How far below the loudest sine speech is while somebody speaks.
    private static let level = Decibels(-26)
    private static let highestPitch = 135.0
    /// How often the formants move on, in seconds.
    private static let step = 0.005

    private init(rate: Int) {
        self.rate = Double(rate)
        hiss.tune(to: min(4500, 0.38 * self.rate), bandwidth: 1500, rate: self.rate)
    }

    /// The signal; in every channel the same.
    static func samples(_ format: AudioFormat) -> [Int16] {
        var signal = SpeechSignal(rate: format.sampleRate)
        signal.speak()
        return signal.scaled.flatMap { [Int16](repeating: $0, count: format.channelCount) }
    }

    private mutating func speak() {
        let count = Self.seconds * Int(rate)
        rest(0.2)
        while sound.count < count - Int(2.2 * rate) {
            let syllables = 4 + Int(generator.nextUnit() * 4)
            for index in 0..<syllables {
                let vowel = Self.vowels[Int(generator.nextUnit() * Double(Self.vowels.count))]
                let pitch = Self.highestPitch * (1 - 0.25 * Double(index) / Double(syllables))
                if generator.nextUnit() < 0.5 {
                    utter(0.05 + 0.04 * generator.nextUnit(), vowel, pitch, voice: 0, hiss: 1)
                }
                utter(0.11 + 0.1 * generator.nextUnit(), vowel, pitch, voice: 1, hiss: 0)
                utter(0.02 + 0.03 * generator.nextUnit(), vowel, pitch, voice: 0.2, hiss: 0)
            }
            rest(0.3 + 0.4 * generator.nextUnit())
        }
        rest(Double(count - sound.count) / rate)
    }

    private mutating func rest(_ seconds: Double) { utter(seconds, formants, Self.highestPitch, voice: 0, hiss: 0) }

    /// Speaks for some time, with loudness that moves to the one given within a hundredth of a second.
    private mutating func utter(
        _ seconds: Double,
        _ vowel: SIMD3<Double>,
        _ pitch: Double,
        voice: Double,
        hiss strength: Double
    ) {
        let block = Int(Self.step * rate)
        for index in 0..<Int(seconds * rate) {
            if index % block == 0 {
                formants += (vowel - formants) * 0.25
                resonators.0.tune(to: formants[0], bandwidth: Self.bandwidths[0], rate: rate)
                resonators.1.tune(to: formants[1], bandwidth: Self.bandwidths[1], rate: rate)
                resonators.2.tune(to: formants[2], bandwidth: Self.bandwidths[2], rate: rate)
            }
            loudness += (voice - loudness) / (0.01 * rate)
            hissing += (strength - hissing) / (0.01 * rate)
            sound.append(loudness * nextVoice(pitch) + 0.02 * hissing * hiss.next(generator.nextUnit() - 0.5))
            isSpoken.append(voice + strength > 0)
        }
    }

    /// The next sample of the voice: pulses, softened as by the glottis, then the mouth.
    private mutating func nextVoice(_ pitch: Double) -> Double {
        pitchPhase += pitch / rate
        var pulse = 0.0
        if pitchPhase >= 1 {
            pitchPhase -= 1
            pulse = 1
        }
        let softening = 1 - exp(-2 * Double.pi * 300 / rate)
        glottis.0 += (pulse - glottis.0) * softening
        glottis.1 += (glottis.0 - glottis.1) * softening
        return resonators.2.next(resonators.1.next(resonators.0.next(glottis.1)))
    }

    /// The sound at speech level.
    private var scaled: [Int16] {
        var (energy, count) = (0.0, 0)
        for (sample, isSpoken) in zip(sound, isSpoken) where isSpoken {
            energy += sample * sample
            count += 1
        }
        let loudest = 32767.0
        let factor = Self.level.amplitude * loudest * 0.5.squareRoot() / (energy / Double(max(count, 1))).squareRoot()
        return sound.map { Int16(max(-loudest, min(loudest, $0 * factor)).rounded()) }
    }

    /// A resonance: two poles, and a gain of 1 at 0 Hz.
    private struct Resonator {
        private var factors = SIMD3<Double>(1, 0, 0)
        private var past = (0.0, 0.0)

        mutating func tune(to frequency: Double, bandwidth: Double, rate: Double) {
            let radius = exp(-Double.pi * bandwidth / rate)
            let first = 2 * radius * cos(2 * Double.pi * frequency / rate)
            factors = [1 - first + radius * radius, first, -radius * radius]
        }

        mutating func next(_ sample: Double) -> Double {
            let result = factors[0] * sample + factors[1] * past.0 + factors[2] * past.1
            past = (result, past.0)
            return result
        }
    }
}
