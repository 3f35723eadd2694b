internal import CALSA
import Glibc

/// Playback on an ALSA PCM, by writes that never wait.
///
/// An underrun is recovered in place: the PCM is prepared again and gets silence in front, as at the start.
final class ALSAPlayback: CardPlayback, @unchecked Sendable {
    let format: AudioFormat

    private let pcm: ALSAPCM
    private let prefill: Int
    /// One buffer of the device's channels: for silence, and for blocks of other channels.
    private let scratch: UnsafeMutableBufferPointer<Int16>
    private var mustPrefill = true
    private var lastQueued = 0
    private var lastWrite = MediaTime.zero

    init(_ name: String, _ configuration: CardConfiguration) throws(CardError) {
        pcm = try ALSAPCM(name, .playback, configuration)
        format = configuration.format
        prefill = ALSAPCM.prefill(configuration, pcm.shape)
        scratch = .allocate(capacity: pcm.shape.bufferFrameCount * pcm.shape.channelCount)
        scratch.initialize(repeating: 0)
    }

    deinit {
        scratch.deallocate()
    }

    var periodFrameCount: Int { pcm.shape.periodFrameCount }
    var bufferFrameCount: Int { pcm.shape.bufferFrameCount }
    var isClocked: Bool { pcm.isClocked }

    func wait(timeout: Duration) -> Bool { pcm.wait(timeout: timeout) }

    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
        var transfer = CardTransfer(frameCount: 0)
        var result = writeOnce(samples)
        if result < 0 {
            guard let condition = recover(result) else { return CardTransfer(frameCount: 0, condition: .gone) }
            if condition != .running {
                transfer.condition = condition
                // The card has been silent since what was queued ran out.
                transfer.lostFrameCount = max(0, format.frameCount(in: now - lastWrite) &- lastQueued)
                mustPrefill = true
                result = writeOnce(samples)
                if result < 0, ALSAPCM.isGone(result) { return CardTransfer(frameCount: 0, condition: .gone) }
            }
        }
        transfer.frameCount = max(0, result)
        if transfer.frameCount > 0 {
            lastQueued = queuedFrameCount(at: now)
            lastWrite = now
        }
        return transfer
    }

    func queuedFrameCount(at now: MediaTime) -> Int {
        guard pcm.isClocked else { return 0 }
        var delay = snd_pcm_sframes_t(0)
        guard snd_pcm_delay(pcm.handle, &delay) >= 0 else { return 0 }
        return max(0, delay)
    }

    func restart(at now: MediaTime) {
        snd_pcm_drop(pcm.handle)
        snd_pcm_prepare(pcm.handle)
        mustPrefill = true
    }

    /// Writes what fits; answers the frames, 0 when the device takes none now, or a negative code.
    private func writeOnce(_ samples: Span<Int16>) -> Int {
        if mustPrefill {
            let result = fillWithSilence()
            guard result >= 0 else { return result }
            mustPrefill = false
        }
        let frameCount = samples.count / format.channelCount
        let result: Int
        if pcm.shape.channelCount == format.channelCount {
            result = samples.withUnsafeBufferPointer {
                Int(snd_pcm_writei(pcm.handle, $0.baseAddress, snd_pcm_uframes_t(frameCount)))
            }
        } else {
            let count = min(frameCount, scratch.count / pcm.shape.channelCount)
            CardChannels.map(samples, format.channelCount, into: scratch, pcm.shape.channelCount, frameCount: count)
            result = Int(snd_pcm_writei(pcm.handle, scratch.baseAddress, snd_pcm_uframes_t(count)))
        }
        return result == -Int(EAGAIN) || result == -Int(EINTR) ? 0 : result
    }

    private func fillWithSilence() -> Int {
        guard prefill > 0, pcm.isClocked else { return 0 }
        scratch.update(repeating: 0)
        return Int(snd_pcm_writei(pcm.handle, scratch.baseAddress, snd_pcm_uframes_t(prefill)))
    }

    /// Brings the PCM back after `code`; answers what was wrong, or nil when it is gone.
    private func recover(_ code: Int) -> CardTransfer.Condition? {
        switch Int32(truncatingIfNeeded: -code) {
        case EPIPE:
            return snd_pcm_prepare(pcm.handle) >= 0 ? .xrun : nil
        case ESTRPIPE:
            let resumed = snd_pcm_resume(pcm.handle)
            // The machine has not woken up entirely: the next tick tries again.
            if resumed == -EAGAIN { return .running }
            return snd_pcm_prepare(pcm.handle) >= 0 ? .suspended : nil
        default:
            return nil
        }
    }
}
