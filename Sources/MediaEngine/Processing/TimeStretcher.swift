/// Shortens or lengthens sound by a few milliseconds, so that nobody hears where.
///
/// Speech is nearly periodic: where the sound resembles itself some milliseconds later, that stretch can be left out, or
/// repeated, and the seam be blended.
///
///     shorten    …|  a  |  b  |…   ─►   …| a→b |…
///     lengthen   …|  a  |  b  |…   ─►   …|  a  | b→a |  b  |…     (a has been played already)
///
/// Where nothing resembles (music, noise, a word's beginning) it refuses, and its caller tries again later. What is as
/// quiet as the pauses between words may be cut anywhere.
/// Shape: interleaved frames of `format`, in the caller's memory.
/// Thread: one at a time; nothing allocates after `init`.
final class TimeStretcher {
    /// The longest stretch that is left out or repeated at once.
    static let longestLag = Duration.milliseconds(15)
    /// What must lie behind the longest stretch to be compared and blended.
    static let window = Duration.milliseconds(10)

    private static var likeness: Float { 0.85 }
    private static var urgentLikeness: Float { 0.5 }
    /// How many times louder than the quietest sound of late a pause may be, in power.
    private static var pauseFactor: Float { 4 }
    /// The power of a pause whatever came before (about -60 dBov), and the greatest that may count as the quietest
    /// sound (-48 dBov): a tone that never ends is no pause.
    private static var quiet: ClosedRange<Float> { 250...4000 }

    private let channelCount: Int
    private let step: Int
    private let shortestLag: Int
    private let longestLagFrames: Int
    private let windowFrames: Int
    private let blendFrames: Int
    private let coarse: UnsafeMutablePointer<Float>
    private let blend: UnsafeMutablePointer<Int16>
    private var quietest = TimeStretcher.quiet.lowerBound

    /// A stretcher of sound of `format`.
    init(format: AudioFormat) {
        channelCount = format.channelCount
        step = max(1, format.sampleRate / 8000)
        shortestLag = format.sampleRate / 400
        longestLagFrames = format.frameCount(in: Self.longestLag)
        windowFrames = format.frameCount(in: Self.window)
        blendFrames = format.sampleRate / 200
        coarse = .allocate(capacity: (longestLagFrames + windowFrames) / step + 1)
        blend = .allocate(capacity: blendFrames * channelCount)
    }

    deinit {
        coarse.deallocate()
        blend.deallocate()
    }

    /// Leaves out at most `limit` frames from frame `start` on; what follows, up to `end`, moves forward.
    ///
    /// - Parameters:
    ///   - samples: The sound.
    ///   - start: The first frame that may change.
    ///   - end: The frame behind the last one.
    ///   - limit: How many frames to leave out at most.
    ///   - isUrgent: Whether a worse likeness will do.
    /// - Returns: How many frames were left out.
    func shorten(
        _ samples: UnsafeMutablePointer<Int16>,
        start: Int,
        end: Int,
        limit: Int,
        isUrgent: Bool
    ) -> Int {
        let longest = min(limit, longestLagFrames, end &- start &- windowFrames)
        guard longest >= shortestLag else { return 0 }
        let lag = findLag(samples, origin: start, sign: 1, lags: shortestLag...longest, isUrgent: isUrgent)
        guard lag > 0 else { return 0 }
        let first = samples + start &* channelCount
        mix(into: first, from: first, to: first + lag &* channelCount)
        let rest = (end &- start &- blendFrames &- lag) &* channelCount
        let seam = first + blendFrames &* channelCount
        seam.update(from: seam + lag &* channelCount, count: rest)
        return lag
    }

    /// Repeats at most `limit` frames before frame `start`; what lies from there up to `end` moves back, for which
    /// there must be room.
    ///
    /// - Parameters:
    ///   - samples: The sound.
    ///   - start: The first frame that may change; those before it are heard once more.
    ///   - end: The frame behind the last one.
    ///   - limit: How many frames to repeat at most.
    ///   - isUrgent: Whether a worse likeness will do.
    /// - Returns: How many frames were added.
    func lengthen(
        _ samples: UnsafeMutablePointer<Int16>,
        start: Int,
        end: Int,
        limit: Int,
        isUrgent: Bool
    ) -> Int {
        let longest = min(limit, longestLagFrames, start)
        // What is blended must have been heard.
        guard longest >= blendFrames, end &- start >= windowFrames else { return 0 }
        let lag = findLag(samples, origin: start, sign: -1, lags: blendFrames...longest, isUrgent: isUrgent)
        guard lag > 0 else { return 0 }
        let first = samples + start &* channelCount
        let earlier = first - lag &* channelCount
        mix(into: blend, from: first, to: earlier)
        (first + lag &* channelCount).update(from: first, count: (end &- start) &* channelCount)
        let blended = blendFrames &* channelCount
        first.update(from: blend, count: blended)
        (first + blended).update(from: earlier + blended, count: lag &* channelCount &- blended)
        return lag
    }

    /// Forgets how quiet pauses are.
    func reset() {
        quietest = Self.quiet.lowerBound
    }

    /// Fades from one stretch to another over `blendFrames`.
    private func mix(
        into target: UnsafeMutablePointer<Int16>,
        from old: UnsafeMutablePointer<Int16>,
        to new: UnsafeMutablePointer<Int16>
    ) {
        let scale = 1 / Float(blendFrames &+ 1)
        for frame in 0..<blendFrames {
            let weight = Float(frame &+ 1) * scale
            for channel in 0..<channelCount {
                let index = frame &* channelCount &+ channel
                let (a, b) = (Float(old[index]), Float(new[index]))
                target[index] = Int16(clamping: Int((a + weight * (b - a)).rounded()))
            }
        }
    }

    // MARK: The likeness

    /// The lag at which the sound from `origin` on resembles the sound that much later (`sign` 1) or earlier (-1); 0
    /// when none does.
    private func findLag(
        _ samples: UnsafeMutablePointer<Int16>,
        origin: Int,
        sign: Int,
        lags: ClosedRange<Int>,
        isUrgent: Bool
    ) -> Int {
        let window = windowFrames / step
        let farthest = lags.upperBound / step
        let from = sign > 0 ? origin : origin &- farthest &* step
        fillCoarse(samples + from &* channelCount, count: farthest &+ window)
        let reference = sign > 0 ? 0 : farthest
        var energy: Float = 0
        for index in 0..<window { energy += coarse[reference &+ index] * coarse[reference &+ index] }
        let power = energy / Float(max(window, 1))
        quietest = min(max(min(quietest * 1.02, power), Self.quiet.lowerBound), Self.quiet.upperBound)
        if power <= quietest * Self.pauseFactor { return lags.upperBound }
        var best = (lag: 0, score: Float(0))
        for lag in lags.lowerBound / step...farthest {
            let score = similarity(reference, reference &+ sign &* lag, window: window, energy: energy)
            if score > best.score { best = (lag, score) }
        }
        guard best.score >= (isUrgent ? Self.urgentLikeness : Self.likeness) else { return 0 }
        return step == 1 ? best.lag : refine(samples, origin, sign, around: best.lag &* step, among: lags)
    }

    /// Channel sums, `step` frames averaged into one.
    private func fillCoarse(_ samples: UnsafeMutablePointer<Int16>, count: Int) {
        let width = step &* channelCount
        let scale = 1 / Float(width)
        for index in 0..<count {
            var sum: Int32 = 0
            let first = index &* width
            for position in first..<first &+ width { sum = sum &+ Int32(samples[position]) }
            coarse[index] = Float(sum) * scale
        }
    }

    /// The normalised correlation of two windows of `coarse`, of which the first has `energy`.
    private func similarity(_ first: Int, _ second: Int, window: Int, energy: Float) -> Float {
        var product: Float = 0
        var otherEnergy: Float = 0
        for index in 0..<window {
            let other = coarse[second &+ index]
            product += coarse[first &+ index] * other
            otherEnergy += other * other
        }
        return product / max(energy * otherEnergy, 1).squareRoot()
    }

    /// The best lag at the full rate near a coarse one, by the first channel.
    private func refine(
        _ samples: UnsafeMutablePointer<Int16>,
        _ origin: Int,
        _ sign: Int,
        around coarseLag: Int,
        among lags: ClosedRange<Int>
    ) -> Int {
        var best = (lag: coarseLag, score: -Float.greatestFiniteMagnitude)
        for lag in ((coarseLag &- step)...(coarseLag &+ step)).clamped(to: lags) {
            var product: Float = 0
            var energy: Float = 0
            var frame = 0
            while frame < windowFrames {
                let other = Float(samples[(origin &+ frame &+ sign &* lag) &* channelCount])
                product += Float(samples[(origin &+ frame) &* channelCount]) * other
                energy += other * other
                frame &+= 2
            }
            let score = product / max(energy, 1).squareRoot()
            if score > best.score { best = (lag, score) }
        }
        return best.lag
    }
}
