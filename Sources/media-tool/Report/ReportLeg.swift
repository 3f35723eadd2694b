import MediaEngine

/// One direction of a call on the page: how it sounded, where it was choppy and why, and its plots and figures.
struct ReportLeg {
    /// The rows, up to the last one that was played: what a replay runs on is no part of the call.
    let trace: TraceFile
    /// The gaps in them.
    let analysis: GapAnalysis
    /// Sentences about the source.
    var notes: [String]
    let figures: ReportFigures

    private static let longestNoteList = 50

    /// The direction that `trace` is of.
    init(_ trace: TraceFile, _ analysis: GapAnalysis, notes: [String]) {
        var trace = trace
        if let played = GapAnalysis.played(in: trace.rows) { trace.rows.removeSubrange((played.upperBound + 1)...) }
        self.trace = trace
        self.analysis = analysis
        self.notes = notes
        figures = ReportFigures(trace)
    }

    /// How it sounded.
    var verdict: Verdict { Verdict(score: figures.score?.value, gapShare: gapShare, isPlayed: trace.isPlayed) }

    private var gapShare: Double { analysis.totalDuration.milliseconds / 1000 / seconds }

    /// Whether it sounded worse than `other`; where nothing was heard, it could not be worse.
    func isWorse(than other: ReportLeg) -> Bool {
        guard let grade = verdict.grade, let otherGrade = other.verdict.grade else {
            return !trace.isPlayed && other.trace.isPlayed
        }
        guard grade == otherGrade else { return grade > otherGrade }
        let (score, otherScore) = (figures.score?.value ?? 5, other.figures.score?.value ?? 5)
        return score == otherScore ? gapShare > other.gapShare : score < otherScore
    }

    /// The verdict in a few words: how it sounded, its mean opinion score, what was lost.
    var summary: [String] {
        var words = [verdict.word]
        if let score = figures.score { words.append("MOS \(HTMLText.number(score.value))") }
        if let loss = figures.lossPercent {
            words.append("\(HTMLText.number((loss * 10).rounded() / 10)) % lost")
        }
        return words
    }

    var seconds: Double { max(trace.duration.milliseconds / 1000, 0.02) }

    /// The direction as a section with the verdict in its first line.
    ///
    /// - Parameters:
    ///   - heading: The element of the verdict.
    ///   - file: The name of the file, to be told below the verdict.
    ///   - more: Facts behind those of the direction itself.
    /// - Returns: The element.
    func html(heading: String, file: String?, facts more: [String] = []) -> String {
        let start = trace.stream.startUnixMs.map { " data-start=\"\($0)\"" } ?? ""
        let name = file.map { "<p class=\"file\">\(HTMLText.escaped($0))</p>\n" } ?? ""
        // Where nothing was played there is neither a gap nor anything to draw.
        let sound = trace.isPlayed ? ReportGaps(self).html + ReportPlots(self).html : ""
        return "<section\(start)>\n<\(heading) class=\"verdict\">\(firstLine(more))</\(heading)>\n" + name + noteList
            + sound + ReportTables(figures).html + "</section>\n"
    }

    // MARK: Words

    private func firstLine(_ more: [String]) -> String {
        let word = "<b\(verdict.grade.map { " class=\"\($0)\"" } ?? "")>\(verdict.word)</b>"
        return word + (facts + more).map { " · <span>\(HTMLText.escaped($0))</span>" }.joined()
    }

    private var facts: [String] {
        var facts = Array(summary.dropFirst())
        func number(_ value: Double) -> String { HTMLText.number((value * 10).rounded() / 10) }
        if let delay = figures.number("quality one way delay ms") {
            facts.append("\(number(delay)) ms mouth to ear")
        } else if let delay = figures.number("playout delay ms") {
            facts.append("\(number(delay)) ms playout delay")
        }
        facts.append("\(trace.codec), \(HTMLText.number(trace.ptimeMs)) ms")
        let stream = trace.stream
        if let source = stream.source, let destination = stream.destination {
            facts.append("\(source) → \(destination)")
        } else if let address = stream.source.map({ "from \($0)" }) ?? stream.destination.map({ "to \($0)" }) {
            facts.append(address)
        }
        if let ssrc = stream.ssrc { facts.append("SSRC \(CaptureReplay.hexadecimal(ssrc))") }
        if let start = stream.startUnixMs {
            let time = UTCTime(unixMilliseconds: start)
            facts.append("\(time.date) \(time.time.prefix(8)) UTC")
        }
        facts.append(HTMLText.time(seconds))
        return facts
    }

    private var noteList: String {
        var all = Array(notes.prefix(Self.longestNoteList))
        if trace.droppedRows > 0 {
            all.append(
                "\(English.count(trace.droppedRows, "row")) of the trace \(trace.droppedRows == 1 ? "was" : "were") lost: "
                    + "the machine was too busy to write."
            )
        }
        if trace.rows.isEmpty { all.append("The trace has no rows: nothing was played.") }
        guard !all.isEmpty else { return "" }
        return "<ul class=\"notes\">" + all.map { "<li>\(HTMLText.escaped($0))</li>" }.joined() + "</ul>\n"
    }
}
