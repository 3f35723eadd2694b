import CallBasics

/// The shape of a stream of samples: how many per second, and in how many channels.
///
/// Shape: interleaved `Int16`; one frame is one sample of each channel at one instant.
/// Units: `sampleRate` in Hz. It is not the RTP clock rate: for G.722 (RFC 3551, section 4.5.2) and Opus
/// (RFC 7587, section 4.1) the two differ.
public struct AudioFormat: Hashable, Sendable, CustomStringConvertible {
    /// Frames per second, in Hz.
    public let sampleRate: Int

    /// Samples per frame: 1 for mono, 2 for stereo.
    public let channelCount: Int

    /// A format of `sampleRate` Hz with `channelCount` interleaved channels.
    public init(sampleRate: Int, channelCount: Int = 1) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
    }

    /// Frames that last `duration`, rounded down; of one that is longer than any sound 2^53.
    public func frameCount(in duration: Duration) -> Int {
        let (product, isTooLong) = duration.nanoseconds.multipliedReportingOverflow(by: Int64(sampleRate))
        // Sums of such counts do not overflow.
        guard !isTooLong else { return duration < .zero ? -(1 << 53) : 1 << 53 }
        return Int(product / 1_000_000_000)
    }

    /// The time that `frameCount` frames last.
    public func duration(ofFrames frameCount: Int) -> Duration {
        .nanoseconds(nanoseconds(ofFrames: frameCount))
    }

    /// The same in nanoseconds, for the media thread: a `Duration` counts in 128 bits.
    @inline(__always)
    func nanoseconds(ofFrames frameCount: Int) -> Int64 {
        Int64(frameCount) * 1_000_000_000 / Int64(sampleRate)
    }

    /// What a port of a graph carries such sound as: the format itself or, where a tick of 10 ms holds no whole number of its
    /// frames, one of 48000 Hz.
    var portFormat: AudioFormat {
        let tick = Duration.milliseconds(10)
        guard sampleRate > 0, channelCount > 0, duration(ofFrames: frameCount(in: tick)) != tick else { return self }
        return AudioFormat(sampleRate: 48000, channelCount: channelCount)
    }

    /// "48000 Hz mono", "44100 Hz stereo", or "16000 Hz, 4 channels".
    public var description: String {
        switch channelCount {
        case 1: "\(sampleRate) Hz mono"
        case 2: "\(sampleRate) Hz stereo"
        default: "\(sampleRate) Hz, \(channelCount) channels"
        }
    }
}
