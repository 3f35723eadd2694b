import CallBasics

/// Capture: a tick needs a whole block, and a card moves by periods of its own. The flow begins when enough frames for a
/// tick and a little more are there, and from then on that level is held.
///
/// Frames that an xrun has lost are replaced by as many of silence, frames that come too late are left out, and what
/// exceeds a few blocks is dropped.
extension CardFilter {
    /// Fills `block` from `card`, or answers false.
    func record(
        _ block: AudioBlock,
        from card: any CardEndpoint,
        _ follows: Bool,
        _ io: borrowing FilterIO
    ) -> Bool {
        let available = card.frameCount(at: io.time)
        watchForStall(moved: available > lastAvailable, at: io.time)
        guard !isGone else { return false }
        lastAvailable = available
        counters.latencyFrames = available
        let look = card.isClocked ? io.time + io.lateness : io.time
        let passed = clock.advance(to: io.time, look: look, tickDuration: io.tickDuration)
        var need = follows ? resampler.inputFrameCount(forOutput: block.frameCount) : block.frameCount
        // A card that moves in small steps may be half a block late; one that moves in long steps, a whole step.
        let reserve = max(card.periodFrameCount > block.frameCount ? card.periodFrameCount : 0, block.frameCount / 2)
        guard isFlowing || begin(available, need &+ reserve, card, io) else { return false }

        clock.alignment.move(by: passed.frames)
        clock.alignment.skip(passed.skipped &* need)
        if available >= need {
            if !clock.alignment.confirm(actual: available, at: io.time) { clock.accept(level: available) }
            if follows, clock.alignment.isCalm {
                let level = Double(available) - lateFrames(at: look, io)
                follow(frames: movedCount &+ Int64(available), level: level, look: look, io)
                // At another rate a block may take a frame more.
                need = resampler.inputFrameCount(forOutput: block.frameCount)
            }
        }
        defer { clock.alignment.move(by: Double(-need)) }
        // What is there for ticks that a stall has delayed, and that are made up for, is theirs.
        let owed = card.isClocked ? Int(lateFrames(at: look, io)) : 0
        if !leaveOut(available, need, reserve &+ owed, card, io) { return false }
        var samples = block.mutableSamples
        guard follows else {
            return samples.withUnsafeMutableBufferPointer { fill($0, need, from: card, io) }
        }
        guard need &* channelCount <= scratch.count else { return false }
        let input = UnsafeMutableBufferPointer(rebasing: scratch[..<(need &* channelCount)])
        guard fill(input, need, from: card, io) else { return false }
        return resampler.process(UnsafeBufferPointer(input).span, into: &samples).produced == block.frameCount
    }

    /// Lets the flow begin once `wanted` frames are there.
    private func begin(_ available: Int, _ wanted: Int, _ card: any CardEndpoint, _ io: borrowing FilterIO) -> Bool {
        guard available >= wanted else {
            // A card in trouble says so when it is read, and may show nothing available.
            if available <= 0 { _ = read(UnsafeMutableBufferPointer(rebasing: scratch[..<channelCount]), card, io) }
            return false
        }
        isFlowing = true
        clock.accept(level: available)
        clock.noteBreak()
        return true
    }

    /// Throws away frames whose time has passed, and whatever would make the latency grow; answers false when the card
    /// turned out to be gone.
    private func leaveOut(
        _ available: Int,
        _ need: Int,
        _ reserve: Int,
        _ card: any CardEndpoint,
        _ io: borrowing FilterIO
    ) -> Bool {
        var remaining = available
        let limit = reserve &+ max(3 &* need, 2 &* card.periodFrameCount)
        let surplus = clock.alignment.correction < 0 ? min(-clock.alignment.correction, available &- need) : 0
        if surplus > 0 {
            let dropped = discard(surplus, card, io)
            clock.alignment.correct(-dropped)
            remaining &-= dropped
        }
        guard isFlowing, remaining &+ clock.alignment.correction > limit else { return !isGone }
        let dropped = discard(remaining &- reserve &- need, card, io)
        guard isFlowing else { return !isGone }
        clock.accept(level: remaining &- dropped)
        return true
    }

    private func discard(_ count: Int, _ card: any CardEndpoint, _ io: borrowing FilterIO) -> Int {
        var dropped = 0
        while dropped < count {
            let part = min(count &- dropped, scratch.count / channelCount)
            let read = read(UnsafeMutableBufferPointer(rebasing: scratch[..<(part &* channelCount)]), card, io)
            guard read > 0 else { break }
            dropped &+= read
        }
        counters.framesLost &+= dropped
        return dropped
    }

    /// Fills `target` with silence for frames that were lost, then with frames of the card, then with silence for
    /// frames that have not come; answers false when the flow must begin anew.
    private func fill(
        _ target: UnsafeMutableBufferPointer<Int16>,
        _ need: Int,
        from card: any CardEndpoint,
        _ io: borrowing FilterIO
    ) -> Bool {
        guard !isGone else { return false }
        var filled = putSilence(target, 0, need)
        if filled < need {
            // While too little is there, nothing is taken, so that a block is whole or silent; but a card in trouble
            // says so only when it is read.
            let rest = need &- filled
            let isEnough = lastAvailable >= rest
            if isEnough || lastAvailable <= 0 {
                let part = UnsafeMutableBufferPointer(rebasing: target[(filled &* channelCount)...])
                let read = read(part, card, io)
                guard isFlowing else { return false }
                filled &+= read
                count(frames: read)
                // After an xrun the correction is known only now.
                filled &+= putSilence(target, filled, need)
            }
        }
        if filled < need {
            counters.shortages &+= 1
            clock.alignment.disturb()
            clock.noteBreak()
            UnsafeMutableBufferPointer(rebasing: target[(filled &* channelCount)...]).update(repeating: 0)
        }
        return true
    }

    /// Puts silence in place of lost frames from frame `start` on, and answers how many.
    private func putSilence(_ target: UnsafeMutableBufferPointer<Int16>, _ start: Int, _ end: Int) -> Int {
        let count = min(max(clock.alignment.correction, 0), end &- start)
        guard count > 0 else { return 0 }
        let part = target[(start &* channelCount)..<((start &+ count) &* channelCount)]
        UnsafeMutableBufferPointer(rebasing: part).update(repeating: 0)
        clock.alignment.correct(count)
        counters.framesInserted &+= count
        return count
    }

    /// Reads frames into `target`, and meets whatever is wrong with the card.
    private func read(
        _ target: UnsafeMutableBufferPointer<Int16>,
        _ card: any CardEndpoint,
        _ io: borrowing FilterIO
    ) -> Int {
        var samples = target.mutableSpan
        let transfer = card.read(into: &samples, at: io.time)
        movedCount &+= Int64(transfer.frameCount)
        lastAvailable &-= transfer.frameCount
        note(transfer)
        switch transfer.condition {
        case .running:
            return transfer.frameCount
        case .gone:
            isGone = true
            isFlowing = false
            return transfer.frameCount
        case .xrun, .suspended:
            break
        }
        lastAvailable = 0
        clock.noteBreak()
        if !clock.alignment.repair(actual: 0, at: io.time) { isFlowing = false }
        return transfer.frameCount
    }
}
