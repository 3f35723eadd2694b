import CallBasics

/// Gathers what a playout does into the rows of a trace.
///
/// Thread: media; nothing allocates.
struct PlayoutTracer {
    private let trace: PlayoutTrace
    private var row = PlayoutTraceRow()
    private var before = PlayoutStatistics()
    private var begin: MediaTime?
    private var energy: Int64 = 0
    private var sampleCount = 0
    private var longestArrivalDelay: Float?

    init(_ trace: PlayoutTrace) {
        self.trace = trace
    }

    /// A packet arrived `delay` ns after the fastest one of late.
    mutating func noteArrival(_ delay: Int64) {
        let milliseconds = Float(delay) / 1e6
        longestArrivalDelay = max(longestArrivalDelay ?? milliseconds, milliseconds)
    }

    /// Takes the block that is heard from `now` on, and the counters behind it.
    mutating func add(
        _ block: Span<Int16>,
        format: AudioFormat,
        statistics: PlayoutStatistics,
        at now: MediaTime
    ) {
        if begin == nil {
            begin = now
            row = PlayoutTraceRow()
            row.time = now
            energy = 0
            sampleCount = 0
        }
        energy &+= measure(block).energy
        sampleCount &+= block.count
        let length = format.duration(ofFrames: sampleCount / format.channelCount)
        guard length >= PlayoutTrace.rowDuration else { return }
        close(statistics, milliseconds: Float(1000) / Float(Playout.timelineRate), format)
        trace.append(row)
        before = statistics
        begin = nil
    }

    private mutating func close(_ after: PlayoutStatistics, milliseconds: Float, _ format: AudioFormat) {
        row.arrivalDelay = longestArrivalDelay
        longestArrivalDelay = nil
        let (new, old) = (after.buffer, before.buffer)
        func count(_ new: Int, _ old: Int) -> UInt16 { UInt16(clamping: new &- old) }
        row.arrivedCount = count(after.insertedCount, before.insertedCount)
        row.lateCount = count(new.lateCount, old.lateCount)
        row.discardedCount = count(new.discardedCount, old.discardedCount)
        row.recoveredCount = count(after.recoveredCount, before.recoveredCount)
        row.missingCount = count(new.missingCount, old.missingCount)
        row.undecodableCount = count(new.undecodableCount, old.undecodableCount)
        row.markedCount = count(after.markedCount, before.markedCount)
        row.codecChangeCount = count(after.codecChangeCount, before.codecChangeCount)
        row.jumpCount = count(after.leapCount &+ new.restartCount, before.leapCount &+ old.restartCount)
        row.sequenceNumber = new.playedCount == old.playedCount ? nil : after.lastPlaySequenceNumber
        row.targetDelay = Float(new.targetDelayNanoseconds) / 1e6
        row.playoutDelay = Float(new.playoutDelayNanoseconds) / 1e6
        let inventedFrameCount = after.inventedFrameCount &- before.inventedFrameCount
        row.concealed = Float(inventedFrameCount) * 1000 / Float(format.sampleRate)
        let accelerated = Float(new.acceleratedDuration &- old.acceleratedDuration) * milliseconds
        let expanded = Float(new.expandedDuration &- old.expandedDuration) * milliseconds
        row.stretched = expanded - accelerated
        row.paused = Float(new.pausedDuration &- old.pausedDuration) * milliseconds
        if sampleCount > 0, energy > 0 {
            let meanSquare = Double(energy) / Double(sampleCount) / (32768 * 32768)
            row.level = Float(Decibels(amplitude: (2 * meanSquare).squareRoot()).value)
        }
        row.operation = operation(after)
    }

    private func operation(_ after: PlayoutStatistics) -> PlayoutOperation {
        if row.recoveredCount > 0 { return .recover }
        let comfort = after.comfortFrameCount &- before.comfortFrameCount
        if after.inventedFrameCount &- before.inventedFrameCount > comfort { return .conceal }
        if comfort > 0 { return .comfort }
        if row.stretched < 0 { return .accelerate }
        if row.stretched > 0 { return .expand }
        return after.playedFrameCount > before.playedFrameCount ? .play : .idle
    }
}
