internal import CALSA
import CallBasics

extension ALSAEndpoint {
    func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer {
        var transfer = CardTransfer(frameCount: 0)
        var result = writeOnce(samples)
        if result < 0 {
            switch recover(result) {
            case .gone:
                return CardTransfer(frameCount: 0, condition: .gone)
            case .nothingToDo:
                return transfer
            case .prepared(let condition):
                transfer.condition = condition
                transfer.lostFrameCount = loss.frameCount(at: now)
                mustPrefill = true
                result = writeOnce(samples)
                if result < 0, ALSAPCM.isGone(result) { return CardTransfer(frameCount: 0, condition: .gone) }
            }
        }
        transfer.frameCount = max(0, result)
        if transfer.frameCount > 0 { loss.note(level: queuedFrameCount(), at: now) }
        return transfer
    }

    func queuedFrameCount() -> Int {
        guard pcm.isClocked else { return 0 }
        var delay = snd_pcm_sframes_t(0)
        guard snd_pcm_delay(pcm.handle, &delay) >= 0 else { return 0 }
        return max(0, delay)
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
}
