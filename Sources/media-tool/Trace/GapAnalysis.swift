import MediaEngine

/// Finds out why a call was choppy: every audible gap in a trace, with its cause.
///
/// A gap is sound that was invented, left silent or cut out while somebody spoke, 20 ms of it or more; pieces at most
/// 40 ms apart are one gap. Invented sound in a pause is no gap, since nobody hears it; nor is what stood in for silence that
/// the sender left out: its time stamps went on with the clock, by more than what packets that are missing beside it held.
/// Pure: rows in, gaps out.
struct GapAnalysis: Sendable, Hashable {
    /// The gaps, in the order of time.
    let gaps: [AudibleGap]

    private static let speechLevel: Float = -50
    private static let silenceLevel: Float = -100
    private static let speechReach = 4
    private static let mergeReach = 2
    /// 20 ms, less what rounding to samples may take away.
    private static let shortest: Float = 19
    /// A late packet is looked for that long after the gap.
    private static let lateReach = 50
    /// Packets heard before and after a gap are looked for over so many rows, 10 s.
    private static let numberReach = 500
    private static let driftRows = 250...1500
    private static let driftMinimum: Float = 10

    /// The gaps in `trace`.
    init(_ trace: TraceFile) {
        self.init(rows: trace.rows, events: trace.events, ptimeMs: trace.ptimeMs)
    }

    /// The gaps in `rows`.
    ///
    /// - Parameters:
    ///   - rows: Rows of 20 ms, the first one's time being the zero of what is found.
    ///   - events: What happened beside them. Without any of kind `lost`, packets that were missing and did not come
    ///     late count as lost.
    ///   - ptimeMs: Audio per packet.
    init(rows: [PlayoutTraceRow], events: [TraceEvent] = [], ptimeMs: Double = 20) {
        guard let origin = rows.first?.time else {
            gaps = []
            return
        }
        let rows = rows.map(Self.bounded)
        let events = events.filter { 0...1e12 ~= $0.timeMs && -1_000_000...1_000_000 ~= $0.amount }
        let evidence = Evidence(rows: rows, events: events, ptime: Float(min(max(ptimeMs, 1), 1000)))
        var found: [AudibleGap] = []
        let pieces = evidence.pieces()
        for (index, piece) in pieces.enumerated() {
            let next = index + 1 < pieces.count ? pieces[index + 1].rows.lowerBound : rows.count
            guard piece.missing >= Self.shortest, evidence.isSpeech(around: piece.rows) else { continue }
            found.append(
                AudibleGap(
                    start: rows[piece.rows.lowerBound].time - origin,
                    duration: .microseconds(Int64(piece.missing * 1000)),
                    cause: evidence.cause(of: piece.rows, before: next),
                    lastHeard: evidence.lastNumber(before: piece.rows.lowerBound),
                    nextHeard: evidence.nextNumber(after: piece.rows.upperBound)
                )
            )
        }
        gaps = (found + evidence.xrunGaps(beside: found.filter { $0.cause == .xrun })).sorted { $0.start < $1.start }
    }

    /// How many gaps there are of each cause, and how long they are together, the worst first.
    var summary: [(cause: AudibleGap.Cause, count: Int, duration: Duration)] {
        AudibleGap.Cause.allCases.compactMap { cause in
            let those = gaps.filter { $0.cause == cause }
            guard !those.isEmpty else { return nil }
            return (cause, those.count, those.reduce(.zero) { $0 + $1.duration })
        }.sorted { $0.duration > $1.duration }
    }

    /// All gaps together.
    var totalDuration: Duration { gaps.reduce(.zero) { $0 + $1.duration } }

    /// A day, in milliseconds.
    private static let longestPause: Float = 86_400_000

    /// The row with values that can be: rows may come from a file.
    private static func bounded(_ row: PlayoutTraceRow) -> PlayoutTraceRow {
        var row = row
        row.concealed = row.concealed.isFinite ? min(max(row.concealed, 0), 1000) : 0
        row.playoutDelay = row.playoutDelay.isFinite ? min(max(row.playoutDelay, 0), 60_000) : 0
        row.stretched = row.stretched.isFinite ? min(max(row.stretched, -1000), 1000) : 0
        row.paused = row.paused.isFinite ? min(max(row.paused, 0), longestPause) : 0
        return row
    }

    /// For each row whether it is silence that the sender left out.
    static func pauses(in rows: [PlayoutTraceRow]) -> [Bool] {
        Evidence.pauses(in: rows.map(bounded), rowLength: Float(PlayoutTrace.rowDuration.milliseconds))
    }

    /// The rows from the first packet's sound to the last one's; nil where nothing was played.
    static func played(in rows: [PlayoutTraceRow]) -> ClosedRange<Int>? {
        guard let first = rows.firstIndex(where: \.isPlayed), let last = rows.lastIndex(where: \.isPlayed)
        else { return nil }
        return first...last
    }

    // MARK: Evidence

    private struct Piece {
        var rows: ClosedRange<Int>
        var missing: Float
    }

    private struct Evidence {
        let rows: [PlayoutTraceRow]
        /// Both in the order of time, so that those at a gap are found without looking at all.
        private let lost: [TraceEvent]
        private let xruns: [TraceEvent]
        let ptime: Float
        let rowLength = Float(PlayoutTrace.rowDuration.milliseconds)
        /// For each row whether it is silence of the sender.
        private let isPause: [Bool]

        init(rows: [PlayoutTraceRow], events: [TraceEvent], ptime: Float) {
            (self.rows, self.ptime) = (rows, ptime)
            let ordered = events.sorted { $0.timeMs < $1.timeMs }
            lost = ordered.filter { $0.kind == .lost }
            xruns = ordered.filter { $0.kind == .xrun }
            isPause = Self.pauses(in: rows, rowLength: rowLength)
        }

        /// Rows from the first packet's sound to the last one's.
        var played: ClosedRange<Int>? { GapAnalysis.played(in: rows) }

        /// Stretches in which sound was missing, those merged that are next to each other.
        func pieces() -> [Piece] {
            guard let played else { return [] }
            var pieces: [Piece] = []
            for index in played {
                let missing = missingSound(index)
                guard missing >= 1 else { continue }
                if let last = pieces.last, index - last.rows.upperBound <= GapAnalysis.mergeReach + 1 {
                    pieces[pieces.count - 1].rows = last.rows.lowerBound...index
                    pieces[pieces.count - 1].missing += missing
                } else {
                    pieces.append(Piece(rows: index...index, missing: missing))
                }
            }
            return pieces
        }

        private func missingSound(_ index: Int) -> Float {
            let row = rows[index]
            let discarded = Float(row.discardedCount) * ptime
            guard !isPause[index] else { return discarded }
            // Comfort noise stands where the sender was silent: nobody misses anything, but what there is no decoder for.
            let undecoded = min(Float(row.undecodableCount) * ptime, rowLength)
            let invented = row.operation == .comfort ? undecoded : row.concealed
            let silent = row.operation == .idle ? rowLength : 0
            return max(invented, silent) + discarded
        }

        /// The rows that turned out to be silence of the sender when it was heard again: those straight before the row that says
        /// so, as far back as the pause was long.
        ///
        /// Where the delay has grown since, the sound after the pause came so much later.
        static func pauses(in rows: [PlayoutTraceRow], rowLength: Float) -> [Bool] {
            var isPause = [Bool](repeating: false, count: rows.count)
            for (index, row) in rows.enumerated() where row.paused > 0 {
                var rest = row.paused
                var isStretched = true
                var before = index - 1
                // What belongs to an earlier pause is none of this one, however long that says it was.
                while before >= 0, isQuiet(before, rows), !isPause[before], rest >= rowLength / 2 {
                    if rows[before].operation == .comfort { isStretched = false }
                    isPause[before] = true
                    rest -= rowLength
                    before -= 1
                }
                guard isStretched, before >= 0 else { continue }
                var growth = row.playoutDelay - rows[before].playoutDelay
                while before >= 0, isQuiet(before, rows), !isPause[before], growth >= rowLength / 2 {
                    isPause[before] = true
                    growth -= rowLength
                    before -= 1
                }
            }
            return isPause
        }

        /// Whether row `index` has no sound out of a packet, or but the last frames of what was invented and has faded out.
        private static func isQuiet(_ index: Int, _ rows: [PlayoutTraceRow]) -> Bool {
            guard rows[index].isPlayed else { return true }
            guard index > 0, rows[index - 1].operation == .conceal, rows[index].arrivedCount == 0 else { return false }
            return max(rows[index].level, rows[index - 1].level) <= GapAnalysis.silenceLevel
        }

        /// Whether somebody spoke just before, in or just after `range`.
        func isSpeech(around range: ClosedRange<Int>) -> Bool {
            let first = max(0, range.lowerBound - GapAnalysis.speechReach)
            let last = min(rows.count - 1, range.upperBound + GapAnalysis.speechReach)
            return rows[first...last].contains { $0.level > GapAnalysis.speechLevel }
        }

        func isSpeech(at milliseconds: Double) -> Bool {
            let index = row(at: milliseconds)
            return isSpeech(around: index...index)
        }

        /// The row of that time.
        func row(at milliseconds: Double) -> Int {
            Int(min(max(milliseconds / Double(rowLength), 0), Double(rows.count - 1)))
        }

        /// The number of the packet that was heard last before row `index`; a packet lasts a few rows at most.
        func lastNumber(before index: Int) -> UInt16? {
            rows[max(0, index - GapAnalysis.numberReach)..<index].last { $0.sequenceNumber != nil }?.sequenceNumber
        }

        /// The number of the packet that was heard first after row `index`.
        func nextNumber(after index: Int) -> UInt16? {
            let rest = rows[min(index + 1, rows.count)..<min(index + GapAnalysis.numberReach, rows.count)]
            return rest.first { $0.sequenceNumber != nil }?.sequenceNumber
        }

        /// What was not heard because the card ran empty, beside the gaps that are `known` to come from that.
        func xrunGaps(beside known: [AudibleGap]) -> [AudibleGap] {
            let reach = Duration.milliseconds(60)
            var found: [AudibleGap] = []
            var next = 0
            for event in xruns where event.amount >= Int(GapAnalysis.shortest) && isSpeech(at: event.timeMs) {
                let start = Duration.microseconds(Int64(event.timeMs * 1000))
                while next < known.count, known[next].start + known[next].duration + reach < start { next += 1 }
                let candidates = [next < known.count ? known[next] : nil, found.last].compactMap(\.self)
                let isKnown = candidates.contains { gap in
                    gap.start <= start + reach && start <= gap.start + gap.duration + reach
                }
                guard !isKnown else { continue }
                let row = row(at: event.timeMs)
                found.append(
                    AudibleGap(
                        start: start,
                        duration: .milliseconds(event.amount),
                        cause: .xrun,
                        lastHeard: lastNumber(before: row),
                        nextHeard: nextNumber(after: row)
                    )
                )
            }
            return found
        }

        /// Why sound was missing in `range`, with late packets looked for up to row `next`.
        func cause(of range: ClosedRange<Int>, before next: Int) -> AudibleGap.Cause {
            if !events(xruns, range, before: 60, after: 60).isEmpty { return .xrun }
            // What is missing is known once the packet after it is played.
            let seen = max(0, range.lowerBound - 1)...min(rows.count - 1, range.upperBound + GapAnalysis.mergeReach)
            let missing = max(0, sum(seen) { $0.missingCount } - sum(seen) { $0.recoveredCount })
            let discarded = sum(range) { $0.discardedCount }
            let undecoded = sum(seen) { $0.undecodableCount }
            let limit = min(rows.count, max(next, range.upperBound + 1), range.upperBound + 1 + GapAnalysis.lateReach)
            let late = sum(range.lowerBound...(limit - 1)) { $0.lateCount }
            let lost = lostCount(range, missing: missing, late: late)
            if discarded > 0, discarded >= missing { return .discarded }
            if Float(undecoded) * ptime * 2 >= Float(range.count) * rowLength { return .noDecoder }
            // A sender that stood still, or a network that did, leaves no number out.
            let unheard = unheardCount(range)
            if unheard > 0, Float(unheard) * ptime * 2 >= Float(range.count) * rowLength {
                return late * 2 >= unheard ? .late : .lost
            }
            let (quiet, end) = longestQuiet(range)
            if quiet >= max(3 * ptime, 60), quiet * 2 >= Float(range.count) * rowLength {
                if late > 0, late * 2 >= missing { return .late }
                if surplus(from: end) * 2 >= quiet { return .late }
                return Float(lost) * ptime * 2 >= quiet ? .lost : .senderStalled
            }
            if lost <= late, isRunningDry(range) { return .drift }
            guard lost + late > 0 else { return .unknown }
            return late >= lost ? .late : .lost
        }

        /// How many packets of those between the ones that were heard last before and first after `range` were not heard, by their
        /// numbers; 0 where these do not tell.
        private func unheardCount(_ range: ClosedRange<Int>) -> Int {
            guard let last = lastNumber(before: range.lowerBound), let next = nextNumber(after: range.upperBound)
            else { return 0 }
            // A row tells the number of its last packet alone.
            let perRow = max(Int(rowLength / ptime), 1)
            let heard = Set(rows[range].compactMap(\.sequenceNumber)).subtracting([last, next]).count
            let count = Int(next &- last) - 1 - heard * perRow - (perRow - 1)
            // Further apart than the time between them are numbers of different sequences.
            let longest = Float(range.count) * rowLength * 2 + 200
            return Float(count) * ptime <= longest ? max(count, 0) : 0
        }

        private func lostCount(_ range: ClosedRange<Int>, missing: Int, late: Int) -> Int {
            guard !self.lost.isEmpty else { return max(0, missing - late) }
            let reach = Double(rows[range.lowerBound].playoutDelay) + 300
            return max(0, events(self.lost, range, before: reach, after: 500).reduce(0) { $0 + $1.amount })
        }

        /// Those of `events` that lie at `range`.
        private func events(
            _ events: [TraceEvent],
            _ range: ClosedRange<Int>,
            before: Double,
            after: Double
        ) -> ArraySlice<TraceEvent> {
            let start = (rows[range.lowerBound].time - rows[0].time).milliseconds - before
            let end = (rows[range.upperBound].time - rows[0].time).milliseconds + Double(rowLength) + after
            let first = Self.index(in: events) { $0.timeMs >= start }
            return events[first..<max(first, Self.index(in: events) { $0.timeMs > end })]
        }

        /// The place of the first of `events`, which are in the order of time, for which `isBehind` holds.
        private static func index(in events: [TraceEvent], where isBehind: (TraceEvent) -> Bool) -> Int {
            var (low, high) = (0, events.count)
            while low < high {
                let middle = (low + high) / 2
                if isBehind(events[middle]) { high = middle } else { low = middle + 1 }
            }
            return low
        }

        /// By how much more sound than time came just after row `index`: what had been held back comes in a burst.
        private func surplus(from index: Int) -> Float {
            let after = index...min(rows.count - 1, index + 4)
            return Float(sum(after) { $0.arrivedCount }) * ptime - Float(after.count) * rowLength
        }

        /// The longest time without any packet that reaches into `range`, by as much as the buffer held back, and the
        /// row after it.
        private func longestQuiet(_ range: ClosedRange<Int>) -> (length: Float, end: Int) {
            let delay = max(rows[range.lowerBound].playoutDelay, rows[max(0, range.lowerBound - 3)].playoutDelay)
            let reach = Int((min(delay, 2000) + 60) / rowLength) + 1
            var longest = 0
            var current = 0
            var end = range.lowerBound
            // A run that began earlier counts from its beginning.
            var index = max(0, range.lowerBound - reach)
            while index > 0, rows[index].arrivedCount == 0, range.lowerBound - index < 500 { index -= 1 }
            while index <= min(rows.count - 1, range.upperBound + 1) {
                current = rows[index].arrivedCount == 0 ? current + 1 : 0
                index += 1
                guard current > longest else { continue }
                longest = current
                end = min(index, rows.count - 1)
            }
            return (Float(longest) * rowLength, end)
        }

        /// Whether what waits became less and less over seconds, though nothing was shortened.
        private func isRunningDry(_ range: ClosedRange<Int>) -> Bool {
            guard let played else { return false }
            let start = max(played.lowerBound, range.lowerBound - GapAnalysis.driftRows.upperBound)
            let count = range.lowerBound - start
            guard count >= GapAnalysis.driftRows.lowerBound else { return false }
            let blockCount = 5
            let means = (0..<blockCount).map { block in
                let part = rows[(start + block * count / blockCount)..<(start + (block + 1) * count / blockCount)]
                return part.reduce(0) { $0 + $1.playoutDelay } / Float(part.count)
            }
            let steps = zip(means, means.dropFirst()).map { $0 - $1 }
            let fall = means[0] - means[blockCount - 1]
            guard fall >= GapAnalysis.driftMinimum, steps.allSatisfy({ $0 > 0 && $0 < fall * 0.6 }) else {
                return false
            }
            let shortened = -rows[start..<range.lowerBound].reduce(0) { $0 + min($1.stretched, 0) }
            return shortened < fall / 2
        }

        private func sum(_ range: ClosedRange<Int>, _ value: (PlayoutTraceRow) -> UInt16) -> Int {
            rows[range].reduce(0) { $0 + Int(value($1)) }
        }
    }
}

extension PlayoutTraceRow {
    /// Whether the row has sound out of a packet.
    var isPlayed: Bool {
        switch operation {
        case .play, .recover, .accelerate, .expand: true
        case .idle, .conceal, .comfort: false
        }
    }
}
