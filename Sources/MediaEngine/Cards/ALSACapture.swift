internal import CALSA
import Glibc

/// Capture from an ALSA PCM, by reads that never wait.
///
/// It starts when first looked at.
final class ALSACapture: CardCapture, @unchecked Sendable {
    let format: AudioFormat

    private let pcm: ALSAPCM
    private let scratch: UnsafeMutableBufferPointer<Int16>
    private var isStarted = false
    private var lastAvailable = 0
    private var lastLook = MediaTime.zero
    /// For a device without a clock: how much it would have recorded.
    private var pace: PacedBuffer

    init(_ name: String, _ configuration: CardConfiguration) throws(CardError) {
        pcm = try ALSAPCM(name, .capture, configuration)
        format = configuration.format
        scratch = .allocate(capacity: pcm.shape.bufferFrameCount * pcm.shape.channelCount)
        scratch.initialize(repeating: 0)
        pace = PacedBuffer(
            direction: .capture,
            sampleRate: format.sampleRate,
            capacity: 4 * pcm.shape.bufferFrameCount
        )
    }

    deinit {
        scratch.deallocate()
    }

    var periodFrameCount: Int { pcm.shape.periodFrameCount }
    var bufferFrameCount: Int { pcm.shape.bufferFrameCount }
    var isClocked: Bool { pcm.isClocked }

    func wait(timeout: Duration) -> Bool {
        if !isStarted { start(at: lastLook) }
        return pcm.wait(timeout: timeout)
    }

    func availableFrameCount(at now: MediaTime) -> Int {
        if !isStarted { start(at: now) }
        guard pcm.isClocked else {
            if pace.advance(to: now) != nil { pace.start(level: 0, at: now) }
            return pace.level
        }
        // A negative answer is a fault, which the next read meets again and reports.
        let available = Int(snd_pcm_avail_update(pcm.handle))
        guard available >= 0 else { return 0 }
        lastAvailable = available
        lastLook = now
        return available
    }

    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        if !isStarted { start(at: now) }
        let wanted =
            pcm.isClocked ? samples.count / format.channelCount : pace.read(samples.count / format.channelCount)
        guard wanted > 0 else { return CardTransfer(frameCount: 0) }
        let result = readOnce(into: &samples, frameCount: wanted)
        guard result < 0 else { return CardTransfer(frameCount: result) }
        var condition = CardTransfer.Condition.xrun
        switch Int32(truncatingIfNeeded: -result) {
        case EAGAIN, EINTR:
            return CardTransfer(frameCount: 0)
        case EPIPE:
            break
        case ESTRPIPE:
            if snd_pcm_resume(pcm.handle) == -EAGAIN { return CardTransfer(frameCount: 0) }
            condition = .suspended
        default:
            return CardTransfer(frameCount: 0, condition: .gone)
        }
        // All is lost since the last look, with what stood in the buffer then.
        let lost = max(0, format.frameCount(in: now - lastLook)) &+ lastAvailable
        guard snd_pcm_prepare(pcm.handle) >= 0 else { return CardTransfer(frameCount: 0, condition: .gone) }
        start(at: now)
        return CardTransfer(frameCount: 0, condition: condition, lostFrameCount: lost)
    }

    func restart(at now: MediaTime) {
        snd_pcm_drop(pcm.handle)
        snd_pcm_prepare(pcm.handle)
        start(at: now)
    }

    private func start(at now: MediaTime) {
        isStarted = true
        snd_pcm_start(pcm.handle)
        pace.start(level: 0, at: now)
        lastAvailable = 0
        lastLook = now
    }

    private func readOnce(into samples: inout MutableSpan<Int16>, frameCount: Int) -> Int {
        if pcm.shape.channelCount == format.channelCount {
            return samples.withUnsafeMutableBufferPointer {
                Int(snd_pcm_readi(pcm.handle, $0.baseAddress, snd_pcm_uframes_t(frameCount)))
            }
        }
        let count = min(frameCount, scratch.count / pcm.shape.channelCount)
        let result = Int(snd_pcm_readi(pcm.handle, scratch.baseAddress, snd_pcm_uframes_t(count)))
        guard result > 0 else { return result }
        samples.withUnsafeMutableBufferPointer {
            CardChannels.map(
                UnsafeBufferPointer(scratch).span,
                pcm.shape.channelCount,
                into: $0,
                format.channelCount,
                frameCount: result
            )
        }
        return result
    }
}
