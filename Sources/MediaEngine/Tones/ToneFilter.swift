package import CallBasics
import Synchronization

/// Mixes DTMF digits and tones into what passes; without an input it is the source of a tone stream.
///
///     audio (optional) ──► [ ToneFilter ] ──► audio
///
/// Thread: `prepare` control; the rest media.
package final class ToneFilter: ControlledFilter<ToneFilter.Command, ToneFilter.Event>, @unchecked Sendable {
    /// What it can be asked for; times of request come back in the events, so that the way from a key to its sound can be
    /// measured.
    package enum Command: Sendable, BitwiseCopyable {
        /// Queues a digit, and a silence after it; durations in nanoseconds.
        case play(DTMFDigit, duration: Int64, gap: Int64, requestedAt: MediaTime)
        /// Queues a silence, in nanoseconds.
        case pause(Int64)
        /// Presses a digit down until `stop`.
        case start(DTMFDigit, requestedAt: MediaTime)
        /// Releases the digit, or every held one for nil; it still sounds for `ToneGenerator.minimumDuration`.
        case stop(DTMFDigit?)
        /// Plays the tone that was prepared last, in place of one that sounds.
        case tone(requestedAt: MediaTime)
        /// Fades the tone that sounds.
        case stopTone
        /// Ends digits and tone, and forgets the digits that wait.
        case silence
        /// The same without a fade, where nobody hears it any more.
        case forget
        /// Sets the level of each sine of the digits that start from now on, in dBm0.
        case level(Decibels)
    }

    /// What happened at a frame of the tick, counted from its first; the time is that of the command.
    package enum Event: Sendable, BitwiseCopyable {
        case digitStarted(frameOffset: Int, requestedAt: MediaTime)
        case digitEnded(frameOffset: Int, requestedAt: MediaTime)
        case toneStarted(frameOffset: Int, requestedAt: MediaTime)
        case toneEnded(frameOffset: Int, requestedAt: MediaTime)
    }

    /// The places for digits and pauses that wait: whoever plays one takes one first.
    let places = Credits(ToneGenerator.queueCapacity)
    /// Who plays a tone prepares it and sends the command before the next one prepares another.
    let turns = Mutex(())

    private let generator: ToneGenerator
    private let format: AudioFormat
    private let handOff = HandOff<PreparedTone>()
    private var isTonePending = false
    /// Frames that have passed since the generator fell silent: until a command comes it is left alone.
    private var idleFrameCount: Int?
    private var toneTime = MediaTime.zero
    private var waitingCount = 0

    /// A filter for blocks of `format`.
    package init(format: AudioFormat) {
        self.format = format
        generator = ToneGenerator(format: format)
        super.init(
            FilterDescription(
                name: "tones",
                purpose: "Mixes DTMF digits and call-progress tones into the audio.",
                inputs: [.audio(format, isRequired: false)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    package override func process(_ io: borrowing FilterIO) {
        let input = io.input()
        let output = io.output()
        output.copy(from: input)
        if let idle = idleFrameCount {
            idleFrameCount = idle &+ output.frameCount
            return
        }
        if isTonePending { takeTone() }
        var samples = output.mutableSamples
        generator.render(into: &samples)
        // Who waits for the end of a key must hear of it: what finds no place is told in the next tick.
        while io.hasEventRoom, let notice = generator.nextNotice() { emit(Event(notice), io) }
        givePlacesBack()
        if !generator.isActive, !isTonePending, !generator.hasNotice { idleFrameCount = 0 }
    }

    package override func handle(_ command: Command) {
        if let idle = idleFrameCount {
            generator.skip(idle)
            idleFrameCount = nil
        }
        switch command {
        case .play(let digit, let duration, let gap, let requestedAt):
            queue(
                generator.play(
                    digit,
                    for: .nanoseconds(duration),
                    gap: .nanoseconds(gap),
                    tag: requestedAt.nanoseconds
                )
            )
        case .pause(let duration): queue(generator.pause(for: .nanoseconds(duration)))
        case .start(let digit, let requestedAt): queue(generator.start(digit, tag: requestedAt.nanoseconds))
        case .stop(let digit): generator.stop(digit)
        case .tone(let requestedAt):
            toneTime = requestedAt
            isTonePending = true
        case .stopTone:
            isTonePending = false
            generator.stopTone()
        case .silence:
            isTonePending = false
            generator.silence()
        case .forget:
            isTonePending = false
            generator.forget()
        case .level(let level): generator.digitLevel = level
        }
    }

    /// Makes the tone of `spec` the one that the command `tone` plays; of several in one tick, the last counts.
    ///
    /// - Throws: `ToneError` when the tone cannot be played at the filter's sample rate.
    package func prepare(_ spec: ToneSpec) throws(ToneError) {
        handOff.offer(try PreparedTone(spec, sampleRate: format.sampleRate))
    }

    // MARK: Media thread

    private func queue(_ isAccepted: Bool) {
        if isAccepted { waitingCount &+= 1 } else { places.give(1) }
    }

    private func givePlacesBack() {
        guard generator.queuedCount < waitingCount else { return }
        places.give(waitingCount &- generator.queuedCount)
        waitingCount = generator.queuedCount
    }

    private func takeTone() {
        guard let offered = handOff.take() else { return }
        offered._withUnsafeGuaranteedRef { generator.play($0, tag: toneTime.nanoseconds) }
        handOff.retire(offered)
        isTonePending = false
    }
}

extension ToneFilter.Event {
    fileprivate init(_ notice: ToneNotice) {
        let (offset, time) = (notice.frameOffset, MediaTime(nanoseconds: notice.tag))
        switch notice.kind {
        case .digitStarted: self = .digitStarted(frameOffset: offset, requestedAt: time)
        case .digitEnded: self = .digitEnded(frameOffset: offset, requestedAt: time)
        case .toneStarted: self = .toneStarted(frameOffset: offset, requestedAt: time)
        case .toneEnded: self = .toneEnded(frameOffset: offset, requestedAt: time)
        }
    }
}
