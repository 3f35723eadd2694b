internal import CallBasics
import ArgumentParser
import Glibc
import MediaEngine

/// Makes a page of a trace, a capture, a story or a recorded call with an agent.
struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Makes a page (HTML) of a trace, a capture, a story or a call with an agent.",
        discussion: """
            The file is a trace that `loopback --trace`, `receive --trace` or `replay --trace` has written, or a capture \
            (pcap or pcapng), which is replayed first, both directions of the call where both are there: that of --ssrc \
            first, else the one that sounds worse. The page has plots and figures, is one file, and loads nothing \
            from elsewhere. Its first line is the verdict. Every audible gap, at most the 200 longest, is listed with its cause (lost, late, sender \
            stalled, drift, xrun, discarded, or unknown), its time of day where the trace knows it, and a display filter \
            that shows its packets in Wireshark.

            Of a story that `sip call --story` has written it draws a ladder: who sent what to whom, and what went wrong first. With --story it \
            stands above the plots of the same call's capture or trace, and the plots tell where on it they begin.

            Of what `agent serve --record` and `agent call --record` have written (the JSON, with the sound beside it) it draws what was said, cut \
            and interrupted on one time line, and tells how long the agent took to answer.

            EXAMPLES
              media-tool loopback --virtual --loss 5 --jitter 60 --trace call.json
              media-tool report call.json --output call.html
              media-tool report story.json --output story.html
              media-tool report call.pcap --story story.json --output call.html
              media-tool report calls/4e8d6c1a-….json --output talk.html
              media-tool report call.pcap --ssrc 0x1A2B3C4D --output call.html --json
            """
    )

    @Argument(
        help: "The trace, the capture, the story, or the JSON of a recorded call. \(InputPath.help)",
        completion: .file(extensions: ["json", "pcap", "pcapng"])
    )
    var file: String

    @Option(
        help: ArgumentHelp("The page to write.", valueName: "file"),
        completion: .file(extensions: ["html"])
    )
    var output: String

    @Option(
        help: ArgumentHelp(
            "The story of the same call, to be drawn above its plots. \(InputPath.help)",
            valueName: "file"
        ),
        completion: .file(extensions: ["json"])
    )
    var story: String?

    @OptionGroup var selection: StreamSelection
    @OptionGroup var common: CommonOptions

    func validate() throws {
        var files = FileArguments()
        try files.read("the file", InputPath.path(of: file))
        try files.read("--story", story.map(InputPath.path))
        try files.write("--output", output)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        // Read once: it may be a pipe.
        let content = try InputContent.read(InputPath.path(of: file), limit: TraceFile.maximumByteCount)
        let title = InputPath.name(of: file).split(separator: "/").last.map(String.init) ?? file
        guard !Story.isLikely(content.bytes) else { return try draw(content.bytes, title) }
        guard !TalkRecord.isLikely(content.bytes) else { return try drawTalk(content.bytes, title) }
        let told = try story.map { path in
            try parse(InputContent.read(InputPath.path(of: path), limit: TraceFile.maximumByteCount).bytes, of: path)
        }
        let legs = try await heard(content)
        let page = told.map { LadderPage(title: title, story: $0, legs: legs).html }
        try TextFile.write(page ?? ReportPage(title: title, legs: legs).html, to: output)
        let first = legs[0]
        common.show(
            [
                "file": .string(file),
                "output": .string(output),
                "codec": .string(first.trace.codec),
                "seconds": .number(first.trace.duration.roundedSeconds),
                "rows": .integer(first.trace.rows.count),
                "notes": JSONValue(first.notes),
                "gaps": first.analysis.json,
                "directions": .array(legs.map(\.json)),
                "story": told.map { .object($0.summary) } ?? .null,
            ],
            text: "\(output): " + (told.map { "\($0.word)\n" } ?? "") + legs.map(\.text).joined()
        )
    }

    private func parse(_ bytes: [UInt8], of path: String) throws -> Story {
        do { return try Story(parsing: bytes) } catch {
            throw ToolFailure("\(InputPath.name(of: path)) cannot be read. \(error)")
        }
    }

    /// Refuses what only a call's sound has.
    private func checkAlone(_ what: String) throws {
        let name = InputPath.name(of: file)
        guard story == nil else {
            throw ToolFailure("\(name) is \(what), which has no plots to draw a story above. Leave out --story.")
        }
        guard selection.isEmpty else {
            throw ToolFailure("\(name) is \(what), which has no stream. Leave out --codec, --payload-type and --ssrc.")
        }
    }

    /// Makes the page of a story.
    private func draw(_ bytes: [UInt8], _ title: String) throws {
        try checkAlone("a story")
        let told = try parse(bytes, of: file)
        try TextFile.write(LadderPage(title: title, story: told).html, to: output)
        common.show(
            .object([("file", .string(file)), ("output", .string(output))] + told.summary),
            text: "\(output): \(told.word)\n"
        )
    }

    /// Makes the page of a recorded call with an agent.
    private func drawTalk(_ bytes: [UInt8], _ title: String) throws {
        try checkAlone("a call with an agent")
        let name = InputPath.name(of: file)
        let record: TalkRecord
        do { record = try TalkRecord(parsing: bytes) } catch { throw ToolFailure("\(name) cannot be read. \(error)") }
        let path = InputPath.path(of: file)
        let sound = path.hasSuffix(".json") ? "\(path.dropLast(5)).wav" : nil
        var files = FileArguments()
        try files.read("the call's sound", sound)
        try files.write("--output", output)
        let levels = try sound.flatMap { access($0, R_OK) == 0 ? try TalkLevels(path: $0) : nil }
        let page = TalkPage(title: title, record: record, levels: levels)
        try TextFile.write(page.html, to: output)
        let answers = record.answers
        common.show(
            [
                "file": .string(file), "output": .string(output), "kind": "agent",
                "seconds": .number(Self.rounded(page.duration)), "events": .integer(record.events.count),
                "answers": [
                    "count": .integer(answers?.count ?? 0),
                    "medianSeconds": JSONValue(answers.map { Self.rounded($0.median) }),
                    "longestSeconds": JSONValue(answers.map { Self.rounded($0.longest) }),
                ],
                "interruptions": .integer(record.count("agentPaused")),
                "resumptions": .integer(record.count("agentResumed")), "clears": .integer(record.count("cleared")),
            ],
            text: "\(output): \(page.summary.joined(separator: "; "))\n"
        )
    }

    /// To ms.
    private static func rounded(_ seconds: Double) -> Double { (seconds * 1000).rounded() / 1000 }

    /// What was heard: of a trace one direction, of a capture both where both are there.
    private func heard(_ content: InputContent) async throws -> [ReportLeg] {
        let (bytes, name) = (content.bytes, InputPath.name(of: file))
        guard !bytes.isEmpty else { throw ToolFailure("\(name) is empty. Give a trace or a capture.") }
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || 0x09...0x0D ~= $0 }
        guard bytes.prefix(64).first(where: { !isBlank($0) }) == UInt8(ascii: "{") else {
            return try await CaptureDirections.heard(selection, file, content)
        }
        guard selection.isEmpty else {
            throw ToolFailure("\(name) is a trace, which has one stream. Leave out --codec, --payload-type and --ssrc.")
        }
        do throws(TraceFileError) {
            let trace = try TraceFile(parsing: bytes)
            return [ReportLeg(trace, GapAnalysis(trace), notes: [])]
        } catch {
            throw ToolFailure("\(name) cannot be read. \(error.message)")
        }
    }
}

extension Story {
    /// What it comes to, with the keys that scripts rely on.
    fileprivate var summary: [(String, JSONValue)] {
        [
            ("kind", .string(kind)), ("steps", .integer(steps.count)), ("status", JSONValue(outcome?.status)),
            ("because", JSONValue(outcome?.because)),
        ]
    }

    /// How it ended.
    fileprivate var word: String {
        (outcome?.status ?? "unfinished") + (outcome?.because.map { ", because of: \($0)" } ?? "")
    }
}

extension ReportLeg {
    /// The direction with the keys that scripts rely on.
    fileprivate var json: JSONValue {
        [
            "source": JSONValue(trace.stream.source),
            "destination": JSONValue(trace.stream.destination),
            "ssrc": JSONValue(trace.stream.ssrc.map(CaptureReplay.hexadecimal)),
            "codec": .string(trace.codec),
            "seconds": .number(trace.duration.roundedSeconds),
            "verdict": JSONValue(verdict.grade?.rawValue),
            "mos": JSONValue(figures.score?.value),
            "lossPercent": JSONValue(figures.lossPercent),
            "notes": JSONValue(notes),
            "gaps": analysis.json,
        ]
    }

    /// The direction in words, with its gaps.
    fileprivate var text: String {
        let stream = trace.stream
        let addresses = stream.source.flatMap { source in stream.destination.map { ", \(source) to \($0)" } } ?? ""
        return summary.joined(separator: ", ") + "\n"
            + "\(trace.duration.roundedSeconds) s of \(trace.codec)\(addresses)\n"
            + (trace.isPlayed ? analysis.text : "")
    }
}
