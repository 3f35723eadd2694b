package import CallBasics

/// Plays DTMF digits and cadenced tones into blocks: it adds them to what is there.
///
/// Digits wait in a bounded queue and sound one after the other; one tone may sound beside them. Every sound swells and
/// fades over 5 ms inside its own length, so that nothing clicks, and starts and ends at exact frames. The output does
/// not depend on the size of the blocks.
/// Shape: interleaved `Int16`, the same signal in every channel; sums are limited, not wrapped.
/// Units: levels in dBm0 per sine (0 dBm0 is `Decibels.zeroDBm0`).
/// Thread: one thread at a time; allocates only when made.
package final class ToneGenerator {
    /// The shape of the blocks.
    package let format: AudioFormat
    /// The level of each of a digit's two sines, in dBm0, for digits that have not started yet.
    package var digitLevel: Decibels

    /// A key that is released earlier still sounds so long: ITU-T Q.24 asks receivers to accept digits of 40 ms.
    package static let minimumDuration: Duration = .milliseconds(50)
    /// The silence kept after a held key: Q.24 asks receivers to tell digits apart by a pause of 40 ms.
    package static let minimumGap: Duration = .milliseconds(50)
    /// Digits and pauses that wait at most.
    package static let queueCapacity = 256
    /// The level of each sine of a digit unless another is set.
    package static let defaultDigitLevel = Decibels(-10)

    private let mixer: ToneMixer
    private let minimumFrameCount: Int
    private let minimumGapFrameCount: Int
    private var queue: DigitQueue
    /// Frames rendered since the generator was made.
    private var position = 0

    private var sounding: QueuedDigit?
    private var digitMix = ToneMix()
    private var digitStart = 0
    /// `Int.max` while the key is held.
    private var digitEnd = 0
    private var earliestNextDigit = 0

    private var tone: TonePlayer
    private let notices: RingBuffer<ToneNotice>

    /// A generator of blocks of `format` whose queue holds `queueCapacity` digits and pauses.
    package init(
        format: AudioFormat,
        digitLevel: Decibels = ToneGenerator.defaultDigitLevel,
        queueCapacity: Int = ToneGenerator.queueCapacity
    ) {
        self.format = format
        self.digitLevel = digitLevel
        mixer = ToneMixer(format: format)
        minimumFrameCount = format.frameCount(in: Self.minimumDuration)
        minimumGapFrameCount = format.frameCount(in: Self.minimumGap)
        queue = DigitQueue(capacity: queueCapacity)
        tone = TonePlayer()
        notices = RingBuffer(minimumCapacity: 64)
    }

    /// Whether something sounds or waits.
    package var isActive: Bool { isDialling || tone.isActive }

    /// Whether a digit sounds or waits.
    package var isDialling: Bool { sounding != nil || queue.count > 0 }

    /// Digits and pauses that wait.
    var queuedCount: Int { queue.count }

    // MARK: Digits

    /// Queues `digit` for `duration`, at least one frame, with `gap` of silence after it.
    ///
    /// It starts when those before it and their gaps are over, and not before `delay` frames of the next block have
    /// passed. `tag` comes back in its notices. Answers false when the queue is full.
    @discardableResult
    package func play(
        _ digit: DTMFDigit,
        for duration: Duration,
        gap: Duration,
        delay: Int = 0,
        tag: Int64 = 0
    ) -> Bool {
        queue.append(
            QueuedDigit(
                digit: digit,
                isHeld: false,
                frameCount: max(1, format.frameCount(in: duration)),
                gapFrameCount: max(0, format.frameCount(in: gap)),
                earliestStart: position &+ max(0, delay),
                tag: tag
            )
        )
    }

    /// Queues `duration` of silence, in addition to the gaps around it.
    @discardableResult
    package func pause(for duration: Duration) -> Bool {
        queue.append(
            QueuedDigit(
                digit: nil,
                isHeld: false,
                frameCount: 0,
                gapFrameCount: max(0, format.frameCount(in: duration)),
                earliestStart: position,
                tag: 0
            )
        )
    }

    /// Presses `digit` down until `stop`; a key that is still held is released.
    @discardableResult
    package func start(_ digit: DTMFDigit, delay: Int = 0, tag: Int64 = 0) -> Bool {
        stop()
        return queue.append(
            QueuedDigit(
                digit: digit,
                isHeld: true,
                frameCount: minimumFrameCount,
                gapFrameCount: minimumGapFrameCount,
                earliestStart: position &+ max(0, delay),
                tag: tag
            )
        )
    }

    /// Releases `digit`, or every held key for nil.
    ///
    /// It fades now, or when it has sounded for `minimumDuration`.
    package func stop(_ digit: DTMFDigit? = nil) {
        queue.release(digit, frameCount: minimumFrameCount)
        guard let current = sounding, current.isHeld, digit == nil || digit == current.digit else { return }
        sounding?.isHeld = false
        digitEnd = max(position &+ mixer.rampFrameCount, digitStart &+ minimumFrameCount)
    }

    /// Forgets the queue and fades what sounds, digits and tone, at once.
    package func silence() {
        queue.removeAll()
        if sounding != nil {
            sounding?.isHeld = false
            sounding?.gapFrameCount = minimumGapFrameCount
            digitEnd = min(digitEnd, position &+ mixer.rampFrameCount)
        } else {
            earliestNextDigit = min(earliestNextDigit, position &+ minimumGapFrameCount)
        }
        stopTone()
    }

    /// Forgets all at once, without a fade: nobody hears it any more.
    package func forget() {
        queue.removeAll()
        if let current = sounding { note(.digitEnded, current, at: position) }
        (sounding, earliestNextDigit) = (nil, position)
        tone.forget(notices)
    }

    // MARK: Tones

    /// Plays `prepared`, after fading a tone that already sounds.
    ///
    /// Its steps are copied, so the object may be freed afterwards. A tone prepared for another sample rate is
    /// a mistake of the caller and traps.
    package func play(_ prepared: PreparedTone, delay: Int = 0, tag: Int64 = 0) {
        precondition(prepared.sampleRate == format.sampleRate)
        tone.play(prepared, earliestStart: position &+ max(0, delay), tag: tag)
        tone.release(at: position, ramp: mixer.rampFrameCount)
    }

    /// Fades the tone that sounds, and forgets one that waits.
    package func stopTone() {
        tone.forgetNext()
        tone.release(at: position, ramp: mixer.rampFrameCount)
    }

    // MARK: Blocks

    /// Adds the next frames to `samples`, a whole number of frames, and notes what starts and ends in them.
    package func render(into samples: inout MutableSpan<Int16>) {
        let frameCount = samples.count / format.channelCount
        defer { position &+= frameCount }
        guard isActive else { return }
        renderDigits(into: &samples, frameCount: frameCount)
        tone.render(into: &samples, frameCount: frameCount, position: position, mixer: mixer, notices: notices)
    }

    /// Lets `frameCount` frames pass in which nothing sounds; nothing may be active.
    func skip(_ frameCount: Int) {
        position &+= frameCount
    }

    /// What happened in the block rendered last, oldest first; nil when all has been told.
    ///
    /// At most 64 notices are kept between two calls; more are lost.
    package func nextNotice() -> ToneNotice? { notices.pop() }

    /// Whether one waits to be taken.
    package var hasNotice: Bool { notices.count > 0 }

    private func renderDigits(into samples: inout MutableSpan<Int16>, frameCount: Int) {
        let blockEnd = position &+ frameCount
        var now = position
        while now < blockEnd {
            guard let current = sounding else {
                guard let next = queue.first else { return }
                let start = max(next.earliestStart, earliestNextDigit, now)
                guard start < blockEnd else { return }
                queue.removeFirst()
                begin(next, at: start)
                now = start
                continue
            }
            let count = min(blockEnd, digitEnd) &- now
            let length = digitEnd == .max ? Int.max : digitEnd &- digitStart
            mixer.add(
                digitMix,
                to: &samples,
                firstFrame: now &- position,
                count: count,
                position: now &- digitStart,
                length: length
            )
            now &+= count
            guard now == digitEnd else { return }
            note(.digitEnded, current, at: now)
            earliestNextDigit = now &+ current.gapFrameCount
            sounding = nil
        }
    }

    private func begin(_ next: QueuedDigit, at start: Int) {
        guard let digit = next.digit else {
            earliestNextDigit = start &+ next.gapFrameCount
            return
        }
        sounding = next
        digitMix = ToneMix(digit, level: digitLevel, sampleRate: format.sampleRate)
        digitStart = start
        digitEnd = next.isHeld ? .max : start &+ next.frameCount
        note(.digitStarted, next, at: start)
    }

    private func note(_ kind: ToneNotice.Kind, _ digit: QueuedDigit, at frame: Int) {
        notices.push(ToneNotice(kind: kind, digit: digit.digit, frameOffset: frame &- position, tag: digit.tag))
    }
}
