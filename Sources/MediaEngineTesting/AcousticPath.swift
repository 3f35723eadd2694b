public import CallBasics
import Glibc
import MediaEngine

/// The way of sound from a loudspeaker to a microphone, as numbers: for tests and simulations.
public struct AcousticPathConfiguration: Sendable, Hashable {
    /// Frames per second.
    public var sampleRate = 16000
    /// From a sample played to the first of its echo captured: buffers of both cards, and air; at least 256 frames.
    public var delay = Duration.milliseconds(40)
    /// The time in which the room's reverberation falls by 60 dB.
    public var reverberation = Duration.milliseconds(80)
    /// How loud the echo is against what is played.
    public var gain = Decibels(-6)
    /// The microphone's noise, as the level of white noise.
    public var noise = Decibels(-76)
    /// What the room's reflections and the noise are drawn from.
    public var seed: UInt64 = 1

    /// A small room, with cards that need 40 ms.
    public init() {}
}

/// Plays into a simulated room and captures there: delay, reverberation, gain, noise, a near end that speaks at the same
/// time, and what goes wrong with cards on top, when a test asks for it.
///
/// The impulse response is a direct sound and seeded noise that decays exponentially. Pure: time is what is processed.
/// Shape: mono `Int16`. Thread: one at a time, any.
public final class AcousticPath {
    /// What the path is made of.
    public let configuration: AcousticPathConfiguration

    private let convolver: BlockConvolver
    private let ring: UnsafeMutablePointer<Float>
    private var random: SeededGenerator
    private var gain: Float
    private var written = 0
    private var delayFrameCount: Int

    /// A room that is silent.
    public init(_ configuration: AcousticPathConfiguration = AcousticPathConfiguration()) {
        self.configuration = configuration
        random = SeededGenerator(seed: configuration.seed)
        gain = Float(configuration.gain.amplitude)
        convolver = BlockConvolver(Self.impulseResponse(configuration, &random))
        ring = .zeros(Self.ringSize)
        delayFrameCount = Self.frames(of: configuration.delay, configuration.sampleRate)
    }

    deinit {
        ring.deallocate()
    }

    /// Plays `played` and captures as many frames.
    ///
    /// - Parameters:
    ///   - played: What the loudspeaker gives.
    ///   - near: What is spoken into the microphone meanwhile, as the microphone hears it; missing frames are silence.
    ///   - captured: What the microphone hears.
    public func process(played: Span<Int16>, near: Span<Int16>, into captured: inout MutableSpan<Int16>) {
        let noise = Float(configuration.noise.amplitude) * 32768 * Float(3).squareRoot()
        let mask = Self.ringSize - 1
        var index = 0
        while index < min(played.count, captured.count) {
            ring[written & mask] = convolver.next(Float(played[index]))
            let echo = ring[(written &- delayFrameCount &+ BlockConvolver.block) & mask] * gain
            let hiss = noise * (Float(random.next() >> 40) / Float(1 << 23) - 1)
            let voice = index < near.count ? Float(near[index]) : 0
            captured[index] = Int16(max(-32768, min(32767, (echo + hiss + voice).rounded())))
            written += 1
            index += 1
        }
    }

    /// Loses `frameCount` frames of the capture, as an xrun does: echoes come earlier from now on.
    public func lose(_ frameCount: Int) {
        delayFrameCount = max(delayFrameCount - frameCount, BlockConvolver.block)
    }

    /// Takes another route: another delay from now on.
    public func change(delay: Duration) {
        delayFrameCount = Self.frames(of: delay, configuration.sampleRate)
    }

    /// Turns the loudspeaker up or down.
    public func change(gain: Decibels) {
        self.gain = Float(gain.amplitude)
    }

    private static func frames(of delay: Duration, _ sampleRate: Int) -> Int {
        let count = Int((delay.milliseconds * Double(sampleRate) / 1000).rounded())
        return min(max(count, BlockConvolver.block), ringSize - 2 * BlockConvolver.block)
    }

    private static func impulseResponse(
        _ configuration: AcousticPathConfiguration,
        _ random: inout SeededGenerator
    ) -> [Float] {
        let length = frames(of: configuration.reverberation, configuration.sampleRate)
        var response = (0..<length).map { index in
            let decay = exp(-6.9 * Double(index) / Double(length))
            return (Float(random.next() >> 40) / Float(1 << 23) - 1) * Float(decay)
        }
        response[0] = 3
        let energy = response.reduce(0) { $0 + $1 * $1 }
        return response.map { $0 / energy.squareRoot() }
    }

    /// A power of two; over 1 s at 48 kHz.
    private static var ringSize: Int { 65536 }
}
