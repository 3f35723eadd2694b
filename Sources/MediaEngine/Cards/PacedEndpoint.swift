/// Where the built-in cards get the sound that is recorded, and leave the sound that is played.
///
/// Thread: media; neither call allocates or waits.
protocol PacedSound: AnyObject, Sendable {
    /// Takes samples that were played.
    func play(_ samples: Span<Int16>)
    /// Fills the first `count` of `samples` with what was recorded.
    func record(into samples: inout MutableSpan<Int16>, count: Int)
    /// What must be served in the background.
    var service: (any BackgroundService)? { get }
}

extension PacedSound {
    func play(_ samples: Span<Int16>) {}
    func record(into samples: inout MutableSpan<Int16>, count: Int) {
        for index in 0..<count { samples[index] = 0 }
    }
    var service: (any BackgroundService)? { nil }
}

/// Nothing heard, silence recorded.
final class Silence: PacedSound {}

/// Playback that is paced by the time it is given, for the built-in cards.
final class PacedPlayback: CardPlayback, @unchecked Sendable {
    let format: AudioFormat
    let periodFrameCount: Int
    let bufferFrameCount: Int
    let drifts: Bool
    private let prefill: Int
    private let sound: any PacedSound
    private var buffer: PacedBuffer

    init(_ configuration: CardConfiguration, sound: any PacedSound, driftPPM: Int = 0) {
        format = configuration.format
        periodFrameCount = max(1, format.frameCount(in: configuration.period))
        bufferFrameCount = max(format.frameCount(in: configuration.buffer), 2 * periodFrameCount)
        prefill = min(format.frameCount(in: configuration.prefill), bufferFrameCount - periodFrameCount)
        self.sound = sound
        drifts = driftPPM != 0
        buffer = PacedBuffer(
            direction: .playback,
            sampleRate: format.sampleRate,
            capacity: bufferFrameCount,
            driftPPM: driftPPM
        )
    }

    var service: (any BackgroundService)? { sound.service }

    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
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

    func queuedFrameCount(at now: MediaTime) -> Int {
        var later = buffer
        _ = later.advance(to: now)
        return later.level
    }

    func restart(at now: MediaTime) {
        buffer.start(level: prefill, at: now)
    }
}

/// Capture that is paced by the time it is given, for the built-in cards.
///
/// It starts when first looked at.
final class PacedCapture: CardCapture, @unchecked Sendable {
    let format: AudioFormat
    let periodFrameCount: Int
    let bufferFrameCount: Int
    let drifts: Bool
    private let sound: any PacedSound
    private var buffer: PacedBuffer
    private var pendingLoss: Int?

    init(_ configuration: CardConfiguration, sound: any PacedSound, driftPPM: Int = 0) {
        format = configuration.format
        periodFrameCount = max(1, format.frameCount(in: configuration.period))
        // A recording card must hold what comes while a tick is late.
        bufferFrameCount = max(format.frameCount(in: configuration.buffer), 4 * periodFrameCount)
        self.sound = sound
        drifts = driftPPM != 0
        buffer = PacedBuffer(
            direction: .capture,
            sampleRate: format.sampleRate,
            capacity: bufferFrameCount,
            driftPPM: driftPPM
        )
    }

    var service: (any BackgroundService)? { sound.service }

    func availableFrameCount(at now: MediaTime) -> Int {
        if !buffer.isRunning, pendingLoss == nil { buffer.start(level: 0, at: now) }
        if let lost = buffer.advance(to: now) { pendingLoss = lost &+ buffer.level }
        return buffer.level
    }

    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        _ = availableFrameCount(at: now)
        if let lost = pendingLoss.take() {
            // Like ALSA, the card starts again empty: what stood in the buffer is lost too.
            restart(at: now)
            return CardTransfer(frameCount: 0, condition: .xrun, lostFrameCount: lost)
        }
        let frameCount = buffer.read(samples.count / format.channelCount)
        sound.record(into: &samples, count: frameCount &* format.channelCount)
        return CardTransfer(frameCount: frameCount)
    }

    func restart(at now: MediaTime) {
        buffer.start(level: 0, at: now)
    }
}
