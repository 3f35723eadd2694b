/// Fills gaps in decoded audio with a continuation of what was heard last: waveform substitution.
///
/// Speech is nearly periodic, so the continuation repeats the last pitch period, whose length an autocorrelation over
/// the last 20 ms finds. To sound less like a buzzer, a gap draws on one period in its first 10 ms, on two in the next
/// 10 ms, and on three from then on. It is steady for 10 ms, then loses 20 % per 10 ms, and is silent from 60 ms on.
/// Seams are blended: each repetition over a quarter period, the return of real audio over a quarter period and more
/// after long gaps, 10 ms at most. Unlike the recommendation it adds no delay: where a gap begins, the continuation is
/// lifted so that its first step equals the step one period ago, and the lift fades out.
///
///     history   …………………|—period—|—period—|—period—|gap
///     gap                                        |—last—|—last two—————|—last three…
///
/// Without loss the cost is one copy of each block.
/// Shape: interleaved frames of `format`.
/// Thread: media; everything is allocated by `init`.
/// Source: in the spirit of ITU-T G.711, Appendix I.
package final class LossConcealer {
    private let channelCount: Int
    private let sampleRate: Int
    private let historyFrameCount: Int
    /// The newest audio that went out, real or concealed.
    private let history: UnsafeMutablePointer<Int16>
    /// `history` as it was when the gap began.
    private let past: UnsafeMutablePointer<Int16>
    private let coarse: UnsafeMutablePointer<Float>
    /// The resemblance at each coarse lag.
    private let scores: UnsafeMutablePointer<Float>
    /// What is added per channel, fading out, so that the gap begins without a step.
    private let lift: UnsafeMutablePointer<Float>
    private let frame: UnsafeMutablePointer<Float>

    /// Frames concealed since the last real one; 0 outside gaps.
    private var gapFrameCount = 0
    /// Frames of real audio already blended after the gap, of `mergeFrameCount`.
    private var mergedFrameCount = 0
    private var mergeFrameCount = 0
    private var period = 1
    private var overlap = 1
    private var repetition = Repetition(periodCount: 1, cursor: 0)
    private var earlierRepetition = Repetition(periodCount: 1, cursor: 0)
    /// Frames until `earlierRepetition` has given way to `repetition`.
    private var changeFrameCount = 0

    private struct Repetition {
        var periodCount: Int
        /// Frames from the beginning of the oldest repeated period.
        var cursor: Int
    }

    /// A concealer for audio of `format`.
    package init(format: AudioFormat) {
        sampleRate = format.sampleRate
        channelCount = format.channelCount
        historyFrameCount = sampleRate * 50 / 1000
        history = .allocate(capacity: historyFrameCount * channelCount)
        past = .allocate(capacity: historyFrameCount * channelCount)
        coarse = .allocate(capacity: historyFrameCount)
        scores = .allocate(capacity: historyFrameCount)
        lift = .allocate(capacity: channelCount)
        frame = .allocate(capacity: channelCount)
        history.initialize(repeating: 0, count: historyFrameCount * channelCount)
        past.initialize(repeating: 0, count: historyFrameCount * channelCount)
        coarse.initialize(repeating: 0, count: historyFrameCount)
        scores.initialize(repeating: 0, count: historyFrameCount)
        lift.initialize(repeating: 0, count: channelCount)
        frame.initialize(repeating: 0, count: channelCount)
    }

    deinit {
        history.deallocate()
        past.deallocate()
        coarse.deallocate()
        scores.deallocate()
        lift.deallocate()
        frame.deallocate()
    }

    /// Takes the first `frameCount` frames of `samples` as real audio; after a gap it blends their beginning.
    package func receive(_ samples: inout MutableSpan<Int16>, frameCount: Int) {
        let count = min(frameCount, samples.count / channelCount)
        guard count > 0 else { return }
        if gapFrameCount > 0 { merge(into: &samples, frameCount: count) }
        remember(samples, frameCount: count)
    }

    /// Writes `frameCount` frames in place of audio that did not arrive.
    package func conceal(frameCount: Int, into samples: inout MutableSpan<Int16>) {
        let count = min(frameCount, samples.count / channelCount)
        guard count > 0 else { return }
        if gapFrameCount == 0 || mergedFrameCount > 0 { beginGap() }
        for index in 0..<count {
            nextFrame()
            for channel in 0..<channelCount {
                samples[index &* channelCount &+ channel] = Int16(clamping: Int(frame[channel].rounded()))
            }
        }
        remember(samples, frameCount: count)
    }

    /// Forgets the past: the next audio belongs to another source.
    package func reset() {
        history.update(repeating: 0, count: historyFrameCount * channelCount)
        gapFrameCount = 0
        mergedFrameCount = 0
    }

    private func remember(_ samples: borrowing MutableSpan<Int16>, frameCount: Int) {
        let kept = min(frameCount, historyFrameCount)
        let keptCount = kept &* channelCount
        let olderCount = historyFrameCount &* channelCount &- keptCount
        history.update(from: history + keptCount, count: olderCount)
        let start = (frameCount &- kept) &* channelCount
        samples.withUnsafeBufferPointer { source in
            guard let base = source.baseAddress else { return }
            (history + olderCount).update(from: base + start, count: keptCount)
        }
    }

    // MARK: The gap

    private func beginGap() {
        past.update(from: history, count: historyFrameCount * channelCount)
        period = estimatePeriod()
        overlap = max(1, period / 4)
        let end = historyFrameCount &- 1
        for channel in 0..<channelCount {
            let last = past[end &* channelCount &+ channel]
            let onePeriodAgo = past[(end &- period) &* channelCount &+ channel]
            lift[channel] = Float(last) - Float(onePeriodAgo)
        }
        repetition = Repetition(periodCount: 1, cursor: 0)
        changeFrameCount = 0
        gapFrameCount = 0
        mergedFrameCount = 0
    }

    /// Puts the next frame of the continuation into `frame`.
    private func nextFrame() {
        let gain = gainNow
        guard gain > 0 else {
            for channel in 0..<channelCount { frame[channel] = 0 }
            gapFrameCount = gapFrameCount &+ 1
            return
        }
        widenRepetition()
        let liftWeight = max(0, 1 - Float(gapFrameCount) / Float(overlap))
        let earlierWeight = Float(changeFrameCount) / Float(overlap &+ 1)
        for channel in 0..<channelCount {
            var value = sample(repetition, channel)
            if changeFrameCount > 0 {
                value += earlierWeight * (sample(earlierRepetition, channel) - value)
            }
            frame[channel] = gain * (value + liftWeight * lift[channel])
        }
        advance(&repetition)
        if changeFrameCount > 0 {
            advance(&earlierRepetition)
            changeFrameCount = changeFrameCount &- 1
        }
        gapFrameCount = gapFrameCount &+ 1
    }

    /// 1 for 10 ms, then a straight line to 0 at 60 ms.
    private var gainNow: Float {
        let steady = sampleRate / 100
        guard gapFrameCount > steady else { return 1 }
        return max(0, 1 - Float(gapFrameCount &- steady) / Float(5 &* steady))
    }

    /// Starts to draw on two periods at 10 ms and on three at 20 ms, at the same phase of the pitch.
    private func widenRepetition() {
        let tick = sampleRate / 100
        guard gapFrameCount == tick || gapFrameCount == 2 &* tick else { return }
        earlierRepetition = repetition
        repetition = Repetition(
            periodCount: gapFrameCount == tick ? 2 : 3,
            cursor: repetition.cursor % period
        )
        changeFrameCount = overlap
    }

    private func advance(_ repetition: inout Repetition) {
        repetition.cursor = repetition.cursor &+ 1
        if repetition.cursor == repetition.periodCount &* period { repetition.cursor = 0 }
    }

    /// One sample of the repeated stretch, whose end is blended with what precedes its beginning, so that it joins.
    private func sample(_ repetition: Repetition, _ channel: Int) -> Float {
        let length = repetition.periodCount &* period
        let index = historyFrameCount &- length &+ repetition.cursor
        let value = Float(past[index &* channelCount &+ channel])
        let intoOverlap = repetition.cursor &- (length &- overlap) &+ 1
        guard intoOverlap > 0 else { return value }
        let before = Float(past[(index &- length) &* channelCount &+ channel])
        return value + Float(intoOverlap) / Float(overlap &+ 1) * (before - value)
    }

    // MARK: The return of real audio

    private func merge(into samples: inout MutableSpan<Int16>, frameCount: Int) {
        let tick = sampleRate / 100
        if mergedFrameCount == 0 {
            mergeFrameCount = min(tick, overlap &+ max(0, gapFrameCount &- tick) &* 2 / 5)
        }
        let count = min(frameCount, mergeFrameCount &- mergedFrameCount)
        for index in 0..<max(0, count) {
            nextFrame()
            mergedFrameCount = mergedFrameCount &+ 1
            let weight = Float(mergedFrameCount) / Float(mergeFrameCount &+ 1)
            for channel in 0..<channelCount {
                let position = index &* channelCount &+ channel
                let mixed = frame[channel] + weight * (Float(samples[position]) - frame[channel])
                samples[position] = Int16(clamping: Int(mixed.rounded()))
            }
        }
        guard mergedFrameCount >= mergeFrameCount else { return }
        gapFrameCount = 0
        mergedFrameCount = 0
    }

    // MARK: The pitch

    /// The lag between 5 and 15 ms at which the last 20 ms resemble most what went before.
    ///
    /// It searches at about 8 kHz and refines at the full rate every lag that is nearly as good as the best one: the
    /// coarse raster alone would favour the lag that happens to lie on it.
    private func estimatePeriod() -> Int {
        let step = max(1, sampleRate / 8000)
        let shortest = sampleRate / 200
        let longest = sampleRate * 15 / 1000
        let coarseWindow = sampleRate / 50 / step
        let coarseLongest = longest / step
        let coarseShortest = (shortest &+ step &- 1) / step
        fillCoarse(count: coarseWindow &+ coarseLongest, step: step)
        var bestLag = coarseShortest
        var bestScore: Float = 0
        for lag in coarseShortest...coarseLongest {
            let score = similarity(lag: lag, window: coarseWindow, end: coarseWindow &+ coarseLongest)
            scores[lag] = score
            if score > bestScore {
                bestScore = score
                bestLag = lag
            }
        }
        guard step > 1 else { return bestLag }
        var best = (lag: bestLag &* step, score: Float(0))
        for lag in coarseShortest...coarseLongest where scores[lag] >= 0.9 * bestScore {
            let isPeak =
                (lag == coarseShortest || scores[lag] >= scores[lag &- 1])
                && (lag == coarseLongest || scores[lag] >= scores[lag &+ 1])
            guard isPeak else { continue }
            for candidate in max(shortest, (lag &- 1) &* step)...min(longest, (lag &+ 1) &* step) {
                let score = fineSimilarity(lag: candidate, stride: step / 2)
                if score > best.score { best = (candidate, score) }
            }
        }
        return min(longest, max(shortest, best.lag))
    }

    /// Channel sums of `past`, `step` frames averaged into one, newest last.
    private func fillCoarse(count: Int, step: Int) {
        let start = historyFrameCount &- count &* step
        let scale = 1 / Float(step &* channelCount)
        for index in 0..<count {
            var sum: Int32 = 0
            let first = (start &+ index &* step) &* channelCount
            for position in first..<first &+ step &* channelCount { sum = sum &+ Int32(past[position]) }
            coarse[index] = Float(sum) * scale
        }
    }

    /// The correlation of the window that ends at `end` of `coarse` with the one `lag` before, normalised.
    private func similarity(lag: Int, window: Int, end: Int) -> Float {
        var product: Float = 0
        var energy: Float = 0
        for index in (end &- window)..<end {
            let earlier = coarse[index &- lag]
            product += coarse[index] * earlier
            energy += earlier * earlier
        }
        return product / max(energy, 1).squareRoot()
    }

    /// The same at the full rate on the first channel, on every `stride`-th frame.
    private func fineSimilarity(lag: Int, stride: Int) -> Float {
        var product: Float = 0
        var energy: Float = 0
        var index = historyFrameCount &- sampleRate / 50
        while index < historyFrameCount {
            let earlier = Float(past[(index &- lag) &* channelCount])
            product += Float(past[index &* channelCount]) * earlier
            energy += earlier * earlier
            index = index &+ max(1, stride)
        }
        return product / max(energy, 1).squareRoot()
    }
}
