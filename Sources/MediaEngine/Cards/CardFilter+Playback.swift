import CallBasics

/// Playback: time in which the card was silent, in an xrun, is left out of the sound, or put in where the card begins with
/// more silence than it had before. What the card does not take is dropped and counted.
extension CardFilter {
    /// Plays `block` at the pace of the card.
    func play(_ block: AudioBlock, on card: any CardEndpoint, _ follows: Bool, _ io: borrowing FilterIO) {
        let look = card.isClocked ? io.time + io.lateness : io.time
        let passed = clock.advance(to: io.time, look: look, tickDuration: io.tickDuration)
        clock.alignment.move(by: -passed.frames)
        clock.alignment.skip(passed.skipped &* block.frameCount)
        var condition = insertSilence(block.frameCount, card, io)
        let frameCount: Int
        if follows {
            var samples = scratch.mutableSpan
            frameCount = resampler.process(block.samples, into: &samples).produced
        } else {
            frameCount = block.frameCount
        }
        clock.alignment.move(by: Double(frameCount))
        let skipped = min(max(-clock.alignment.correction, 0), frameCount)
        if skipped > 0 {
            clock.alignment.correct(-skipped)
            counters.framesLost &+= skipped
        }
        var accepted = 0
        if skipped < frameCount, condition != .gone {
            let range = (skipped &* channelCount)..<(frameCount &* channelCount)
            let transfer =
                follows
                ? card.write(scratch.span.extracting(range), at: io.time)
                : card.write(block.samples.extracting(range), at: io.time)
            accepted = transfer.frameCount
            count(transfer, of: frameCount &- skipped, io)
            if transfer.condition != .running { condition = transfer.condition }
        }
        guard condition != .gone else { return isGone = true }
        let queued = card.frameCount(at: io.time)
        counters.latencyFrames = queued
        align(queued, condition, isWhole: accepted == frameCount &- skipped, io)
        guard follows, condition == .running, clock.alignment.isCalm else { return }
        let level = Double(queued &- frameCount) + lateFrames(at: look, io)
        follow(frames: movedCount &- Int64(queued), level: level, look: look, io)
    }

    /// Brings what follows to its place, given the frames that the card has queued after this block.
    private func align(_ queued: Int, _ condition: CardTransfer.Condition, isWhole: Bool, _ io: borrowing FilterIO) {
        if condition == .xrun || condition == .suspended {
            clock.noteBreak()
            if !clock.alignment.repair(actual: queued, at: io.time) { clock.accept(level: queued) }
        } else if !clock.alignment.isKnown {
            clock.accept(level: queued)
        } else if isWhole {
            if !clock.alignment.confirm(actual: queued, at: io.time) { clock.accept(level: queued) }
        } else {
            counters.shortages &+= 1
            clock.noteBreak()
            clock.alignment.disturb()
        }
    }

    /// Puts silence in front of the block where sound is missing, as far as the card has room for both.
    private func insertSilence(
        _ blockCount: Int,
        _ card: any CardEndpoint,
        _ io: borrowing FilterIO
    ) -> CardTransfer.Condition {
        guard clock.alignment.correction > 0 else { return .running }
        let queued = card.frameCount(at: io.time)
        // A card that has run dry begins with silence of its own, and is seen to after that.
        guard queued > 0 else { return .running }
        let room = card.bufferFrameCount &- queued &- blockCount
        let count = min(clock.alignment.correction, room, scratch.count / channelCount)
        guard count > 0 else { return .running }
        let silence = UnsafeMutableBufferPointer(rebasing: scratch[..<(count &* channelCount)])
        silence.update(repeating: 0)
        let transfer = card.write(UnsafeBufferPointer(silence).span, at: io.time)
        movedCount &+= Int64(transfer.frameCount)
        counters.framesInserted &+= transfer.frameCount
        clock.alignment.correct(transfer.frameCount)
        if transfer.condition != .running { note(transfer) }
        return transfer.condition
    }

    private func count(_ transfer: CardTransfer, of frameCount: Int, _ io: borrowing FilterIO) {
        count(frames: transfer.frameCount)
        movedCount &+= Int64(transfer.frameCount)
        if transfer.condition == .gone {
            counters.framesWithoutCard &+= frameCount
            return
        }
        counters.framesLost &+= frameCount &- transfer.frameCount
        note(transfer)
        watchForStall(moved: transfer.frameCount > 0, at: io.time)
    }
}
