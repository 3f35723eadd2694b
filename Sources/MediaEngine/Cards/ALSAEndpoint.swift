internal import CALSA
import CallBasics
import Glibc

/// One direction of an ALSA PCM, by writes or reads that never wait.
///
/// An xrun is recovered in place: the PCM is prepared and started again. Playback then gets silence in front, as at the
/// start; capture starts when first looked at.
final class ALSAEndpoint: CardEndpoint, @unchecked Sendable {
    let direction: CardDirection
    let format: AudioFormat

    let pcm: ALSAPCM
    /// One buffer of the device's channels: for silence, and for blocks of other channels.
    let scratch: UnsafeMutableBufferPointer<Int16>
    /// Frames of silence in front of the first block of playback.
    let prefill: Int
    var mustPrefill = true
    var isStarted = false
    var loss: XrunLoss
    /// For a device without a clock: how much it would have recorded.
    var pace: PacedBuffer

    init(_ name: String, _ direction: CardDirection, _ configuration: CardConfiguration) throws(CardError) {
        self.direction = direction
        pcm = try ALSAPCM(name, direction, configuration)
        format = configuration.format
        prefill = direction == .playback ? ALSAPCM.prefill(configuration, pcm.shape) : 0
        scratch = .allocate(capacity: pcm.shape.bufferFrameCount * pcm.shape.channelCount)
        scratch.initialize(repeating: 0)
        loss = XrunLoss(direction, sampleRate: format.sampleRate)
        pace = PacedBuffer(
            direction: direction,
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

    func frameCount(at now: MediaTime) -> Int {
        direction == .playback ? queuedFrameCount() : availableFrameCount(at: now)
    }

    func wait(timeout: Duration) -> Bool {
        if direction == .capture, !isStarted { start() }
        return pcm.wait(timeout: timeout)
    }

    func restart(at now: MediaTime) {
        snd_pcm_drop(pcm.handle)
        snd_pcm_prepare(pcm.handle)
        mustPrefill = true
        if direction == .capture {
            start()
            noteStart(at: now)
        }
    }

    /// Brings the PCM back after the negative `code`.
    func recover(_ code: Int) -> Recovery {
        switch Int32(truncatingIfNeeded: -code) {
        case EAGAIN, EINTR:
            return .nothingToDo
        case EPIPE:
            return snd_pcm_prepare(pcm.handle) >= 0 ? .prepared(.xrun) : .gone
        case ESTRPIPE:
            // The machine may not have woken up entirely: the next tick tries again.
            if snd_pcm_resume(pcm.handle) == -EAGAIN { return .nothingToDo }
            return snd_pcm_prepare(pcm.handle) >= 0 ? .prepared(.suspended) : .gone
        default:
            return .gone
        }
    }

    /// What became of a PCM that answered with an error.
    enum Recovery {
        /// It moves no frames now; the next tick tries again.
        case nothingToDo
        /// It was found in this condition, and can be started again.
        case prepared(CardTransfer.Condition)
        /// It is of no further use.
        case gone
    }
}
