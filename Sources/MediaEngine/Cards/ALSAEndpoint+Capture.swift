internal import CALSA
import CallBasics

extension ALSAEndpoint {
    func availableFrameCount(at now: MediaTime) -> Int {
        beginIfNeeded(at: now)
        guard pcm.isClocked else {
            if pace.advance(to: now) != nil { pace.start(level: 0, at: now) }
            return pace.level
        }
        // Asked of the hardware: what the kernel knows by itself is as old as the last interrupt, of a whole period. A negative answer
        // is a fault, which the next read meets again and reports.
        let available = Int(snd_pcm_avail(pcm.handle))
        guard available >= 0 else { return 0 }
        loss.note(level: available, at: now)
        return available
    }

    func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
        beginIfNeeded(at: now)
        let wanted =
            pcm.isClocked ? samples.count / format.channelCount : pace.read(samples.count / format.channelCount)
        guard wanted > 0 else { return CardTransfer(frameCount: 0) }
        let result = readOnce(into: &samples, frameCount: wanted)
        guard result < 0 else { return CardTransfer(frameCount: result) }
        switch recover(result) {
        case .nothingToDo:
            return CardTransfer(frameCount: 0)
        case .gone:
            return CardTransfer(frameCount: 0, condition: .gone)
        case .prepared(let condition):
            let lost = loss.frameCount(at: now)
            start()
            noteStart(at: now)
            return CardTransfer(frameCount: 0, condition: condition, lostFrameCount: lost)
        }
    }

    /// Starts the device; what it holds counts from `noteStart` on.
    func start() {
        isStarted = true
        snd_pcm_start(pcm.handle)
    }

    func noteStart(at now: MediaTime) {
        pace.start(level: 0, at: now)
        loss.note(level: 0, at: now)
    }

    private func beginIfNeeded(at now: MediaTime) {
        if !isStarted { start() }
        if !pace.isRunning { noteStart(at: now) }
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
