import CallBasics
import Synchronization

extension EngineCore {
    /// Silence after a key that has a length.
    private static var keyGap: Duration { .milliseconds(50) }
    /// How long the ringer stays open after the last sound when nobody holds it: keys often follow each other.
    private static var ringerLinger: Duration { .seconds(2) }

    // MARK: Keys

    /// Plays a key in what is heard of the calls, or on the ringer where there is no call, or no card for it.
    func playDTMF(_ digit: DTMFDigit, for duration: Duration?) async throws(EngineError) {
        let now = self.now
        let command: ToneFilter.Command =
            if let duration {
                .play(digit, duration: duration.nanoseconds, gap: Self.keyGap.nanoseconds, requestedAt: now)
            } else {
                .start(digit, requestedAt: now)
            }
        let hasCard = cards.playback.hasCard
        let (tones, releaseCount) = state.withLock { state in
            (hasCard && state.sections.isPlaying ? state.sections.keyTones : nil, state.keyReleaseCount)
        }
        if let tones { return try loop.play(command, on: tones) }
        try await withTones { stream in
            try stream.play(command)
            // It was released while the ringer was being opened.
            if duration == nil, self.state.withLock({ $0.keyReleaseCount }) != releaseCount { try stream.release() }
        }
    }

    /// Releases the keys that are held, wherever they sound.
    func stopDTMF() throws(EngineError) {
        let (keyTones, isPlaying, stream) = state.withLock { state in
            state.keyReleaseCount += 1
            return (state.sections.keyTones, state.sections.isPlaying, state.tones)
        }
        if isPlaying { try loop.send(.stop(nil), to: keyTones) }
        try stream?.release()
    }

    /// From each key that a card got to its first sample, on the call card and on the ringer.
    var keyToSample: [Duration] {
        loop.serve()
        state.withLock { $0.tones }?.serve()
        return keyTimes.all
    }

    // MARK: The ringer

    /// Hands the ringer's stream to `body`, opened if it is not; it is not closed meanwhile.
    func withTones<Result: Sendable>(
        _ body: @Sendable (ToneStream) async throws -> Result
    ) async throws(EngineError) -> Result {
        try await EngineError.wrappingAsync {
            try await toneChanges.withLock { try await body(try await openTones()) }
        }
    }

    /// Counts a holder.
    func holdTones() async throws(EngineError) {
        try await withTones { _ in self.state.withLock { $0.toneHolders += 1 } }
    }

    /// Lets go of a holder; with the last, the ringer closes.
    func releaseTones() async {
        await toneChanges.withLock {
            let ended = state.withLock { state -> ToneStream? in
                guard state.toneHolders > 0 else { return nil }
                state.toneHolders -= 1
                return state.toneHolders == 0 ? state.tones.take() : nil
            }
            await ended?.stop()
        }
    }

    /// Rings with a file, which is opened before the ringer is asked for: that may take long, and keys do not wait for it.
    ///
    /// A ring that was ended, or begun with another file, before this one was open does not begin.
    func startRinging(file path: String, repetition: FileRepetition) async throws(EngineError) {
        let number = countRing()
        let source = try await CallSourceEnd(
            .file(path, repetition: repetition),
            format: CallEngine.cardFormat,
            cards: cards
        )
        let isWanted: @Sendable () -> Bool = { self.state.withLock { $0.ringCount } == number }
        guard isWanted() else { return await source.close(timebase, loop) }
        do throws(EngineError) {
            try await withTones { stream in
                try await stream.play(source, if: isWanted)
                // It was ended while the ringer was being opened.
                if stream.isQuiet { self.closeTonesSoon() }
            }
        } catch {
            await source.close(timebase, loop)
            throw error
        }
    }

    /// Counts a ring that begins or ends; answers its number.
    @discardableResult
    private func countRing() -> UInt64 {
        state.withLock { state in
            state.ringCount += 1
            return state.ringCount
        }
    }

    /// Ends the ring, and closes the ringer in a moment when nobody holds it.
    func stopRinging() async throws(EngineError) {
        countRing()
        try await EngineError.wrappingAsync {
            try await toneChanges.withLock { try await state.withLock { $0.tones }?.stopRinging() }
        }
    }

    /// Uses another card for rings.
    func setRinger(_ card: any SoundCard) async throws(EngineError) {
        try await EngineError.wrappingAsync {
            try await toneChanges.withLock {
                try await state.withLock { $0.tones }?.move(to: [card])
                cards.ringer = card
            }
        }
    }

    private func openTones() async throws(EngineError) -> ToneStream {
        if let open = state.withLock({ $0.tones }) { return open }
        let stream = ToneStream(format: CallEngine.cardFormat, timebase, cards, keyTimes)
        stream.whenQuiet { [weak self] in self?.closeTonesSoon() }
        // The engine's own card may come later; events tell.
        try await stream.open([cards.ringer], isRequired: false)
        let isKept = state.withLock { state in
            if !state.hasEnded { state.tones = stream }
            return !state.hasEnded
        }
        guard isKept else {
            await stream.stop()
            throw endedError
        }
        return stream
    }

    /// Virtual time knows no moment after which nobody moves it: there the ringer stays open.
    private func closeTonesSoon() {
        guard !timebase.isVirtual else { return }
        Task.detached { [weak self] in
            do { try await Task.sleep(for: Self.ringerLinger) } catch { return }
            await self?.closeUnusedTones()
        }
    }

    private func closeUnusedTones() async {
        await toneChanges.withLock {
            let unused = state.withLock { state -> ToneStream? in
                guard state.toneHolders == 0, let tones = state.tones, tones.isQuiet else { return nil }
                state.tones = nil
                return tones
            }
            await unused?.stop()
        }
    }

    // MARK: Other streams

    /// A stream on cards that must open.
    func makeToneStream(on cards: [any SoundCard], format: AudioFormat) async throws(EngineError) -> ToneStream {
        let stream = ToneStream(format: format, timebase, self.cards, KeyTimes())
        try await stream.open(cards, isRequired: true)
        let isKept = state.withLock { state in
            guard !state.hasEnded else { return false }
            state.otherTones.removeAll(where: \.hasEnded)
            state.otherTones.append(stream)
            return true
        }
        guard isKept else {
            await stream.stop()
            throw endedError
        }
        return stream
    }

    var endedError: EngineError { .state(.engineEnded, "The engine has been shut down. Make another.") }
}

extension MediaLoop {
    /// Sends a key to `tones`, for which there must be a place.
    ///
    /// - Throws: `EngineError` when too many keys wait, or the thread does not run.
    func play(_ command: ToneFilter.Command, on tones: ToneFilter) throws(EngineError) {
        guard tones.places.take(1) else {
            throw .state(.queueFull, "More keys wait to be played than fit. Play them in parts.")
        }
        do throws(EngineError) {
            try send(command, to: tones)
        } catch {
            tones.places.give(1)
            throw error
        }
    }
}
