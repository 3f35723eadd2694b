import Glibc

/// Adds ramped tones to a block: the part of tone generation that touches samples.
///
/// Thread: made on the control side, used by one thread; allocates only when made.
final class ToneMixer {
    /// Frames from silence to the full level.
    let rampFrameCount: Int
    private let ramp: UnsafeMutablePointer<Float>
    private let scratch: UnsafeMutablePointer<Float>
    private let channelCount: Int
    private static let scratchFrameCount = 480

    /// Long enough for a 941 Hz tone to swell over five periods, short enough to leave a 40 ms digit whole.
    static let rampDuration: Duration = .milliseconds(5)

    init(format: AudioFormat) {
        channelCount = format.channelCount
        rampFrameCount = max(1, format.frameCount(in: Self.rampDuration))
        ramp = .allocate(capacity: rampFrameCount)
        for index in 0..<rampFrameCount {
            (ramp + index).initialize(to: Float(0.5 - 0.5 * cos(.pi * (Double(index) + 0.5) / Double(rampFrameCount))))
        }
        scratch = .allocate(capacity: Self.scratchFrameCount)
        scratch.initialize(repeating: 0, count: Self.scratchFrameCount)
    }

    deinit {
        ramp.deallocate()
        scratch.deallocate()
    }

    /// The gain of frame `position` in a tone of `length` frames: a raised cosine at both ends, 1 between.
    func gain(at position: Int, of length: Int) -> Float {
        let distance = min(position, length &- 1 &- position)
        guard distance < rampFrameCount else { return 1 }
        return distance < 0 ? 0 : ramp[distance]
    }

    /// Adds frames `position..<position + count` of a tone of `length` frames to `samples`, in every channel.
    ///
    /// The first goes to frame `firstFrame`. Sums that do not fit are limited to what a sample holds.
    func add(
        _ mix: ToneMix,
        to samples: inout MutableSpan<Int16>,
        firstFrame: Int,
        count: Int,
        position: Int,
        length: Int
    ) {
        var done = 0
        while done < count {
            let chunk = min(count &- done, Self.scratchFrameCount)
            let start = position &+ done
            mix.render(into: scratch, count: chunk, from: start)
            applyRamps(count: chunk, position: start, length: length)
            addScratch(to: &samples, firstFrame: firstFrame &+ done, count: chunk)
            done &+= chunk
        }
    }

    private func applyRamps(count: Int, position: Int, length: Int) {
        let attackEnd = min(count, rampFrameCount &- position)
        let releaseStart = max(0, length &- rampFrameCount &- position)
        guard attackEnd > 0 || releaseStart < count else { return }
        for index in 0..<count {
            scratch[index] *= gain(at: position &+ index, of: length)
        }
    }

    private func addScratch(to samples: inout MutableSpan<Int16>, firstFrame: Int, count: Int) {
        if channelCount == 1 {
            for index in 0..<count {
                let sum = Int32(samples[firstFrame &+ index]) &+ Self.rounded(scratch[index])
                samples[firstFrame &+ index] = Int16(clamping: sum)
            }
            return
        }
        for index in 0..<count {
            let value = Self.rounded(scratch[index])
            let base = (firstFrame &+ index) &* channelCount
            for channel in 0..<channelCount {
                samples[base &+ channel] = Int16(clamping: Int32(samples[base &+ channel]) &+ value)
            }
        }
    }

    /// The nearest integer, for magnitudes below 2^22, without a range check:
    /// adding 1.5 * 2^23 leaves the integer in the low bits of the number.
    @inline(__always)
    private static func rounded(_ value: Float) -> Int32 {
        Int32(bitPattern: (value + 12_582_912).bitPattern) &- 0x4B40_0000
    }
}
