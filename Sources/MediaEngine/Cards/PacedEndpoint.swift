package import CallBasics

/// Where the built-in cards get the sound that is recorded, and leave the sound that is played.
///
/// Thread: media; neither call allocates or waits.
package protocol PacedSound: AnyObject, Sendable {
    /// Takes samples that were played.
    func play(_ samples: Span<Int16>)
    /// Fills the first `count` of `samples` with what was recorded.
    func record(into samples: inout MutableSpan<Int16>, count: Int)
    /// What must be served in the background.
    var service: (any BackgroundService)? { get }
}

extension PacedSound {
    package func play(_ samples: Span<Int16>) {}
    package func record(into samples: inout MutableSpan<Int16>, count: Int) {
        for index in 0..<count { samples[index] = 0 }
    }
    package var service: (any BackgroundService)? { nil }
}

/// Nothing heard, silence recorded.
final class Silence: PacedSound {}

/// An endpoint that is paced by the time it is given, for the built-in cards.
///
/// In playback it starts with the first write, in capture when it is first looked at.
package final class PacedEndpoint: CardEndpoint, @unchecked Sendable {
    package let direction: CardDirection
    package let format: AudioFormat
    package let periodFrameCount: Int
    package let bufferFrameCount: Int
    package let drifts: Bool
    private let prefill: Int
    private let sound: any PacedSound
    private var buffer: PacedBuffer
    /// Frames of capture lost in an xrun that the next read tells.
    private var pendingLoss: Int?

    /// An endpoint whose frames go to `sound` or come from there, by a clock that is `driftPPM` parts per million fast.
    package init(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        sound: any PacedSound,
        driftPPM: Int = 0
    ) {
        self.direction = direction
        format = configuration.format
        periodFrameCount = max(1, format.frameCount(in: configuration.period))
        // A recording card must hold what comes while a tick is late.
        let shortest = (direction == .capture ? 4 : 2) * periodFrameCount
        bufferFrameCount = max(format.frameCount(in: configuration.buffer), shortest)
        prefill =
            direction == .capture
            ? 0 : min(format.frameCount(in: configuration.prefill), bufferFrameCount - periodFrameCount)
        self.sound = sound
        drifts = driftPPM != 0
        buffer = PacedBuffer(
            direction: direction,
            sampleRate: format.sampleRate,
            capacity: bufferFrameCount,
            driftPPM: driftPPM
        )
    }

    package var service: (any BackgroundService)? { sound.service }

    package func frameCount(at now: MediaTime) -> Int {
        guard direction == .capture else {
            // What has run dry is told by the next write.
            var later = buffer
            _ = later.advance(to: now)
            return later.level
        }
        if !buffer.isRunning, pendingLoss == nil { buffer.start(level: 0, at: now) }
        if let lost = buffer.advance(to: now) { pendingLoss = lost &+ buffer.level }
        return buffer.level
    }

    package func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
        var transfer = CardTransfer(frameCount: 0)
        if let missing = buffer.advance(to: now) {
            transfer.condition = .xrun
            transfer.lostFrameCount = missing
        }
        if !buffer.isRunning { buffer.start(level: prefill, at: now) }
        transfer.frameCount = buffer.write(samples.count / format.channelCount)
        sound.play(samples.extracting(0..<transfer.frameCount &* format.channelCount))
        return transfer
    }

    package func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        _ = frameCount(at: now)
        if let lost = pendingLoss.take() {
            // Like ALSA, the card starts again empty: what stood in the buffer is lost too.
            restart(at: now)
            return CardTransfer(frameCount: 0, condition: .xrun, lostFrameCount: lost)
        }
        let frameCount = buffer.read(samples.count / format.channelCount)
        sound.record(into: &samples, count: frameCount &* format.channelCount)
        return CardTransfer(frameCount: frameCount)
    }

    package func restart(at now: MediaTime) {
        buffer.start(level: prefill, at: now)
    }
}
