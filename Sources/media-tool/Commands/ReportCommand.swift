import ArgumentParser
import MediaEngine

/// Makes a page of a trace or a capture.
struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Makes a page (HTML) of a trace or a capture: plots, figures, and why it was choppy.",
        discussion: """
            The file is a trace that `loopback --trace`, `receive --trace` or `replay --trace` has written, or a capture \
            (pcap), which is replayed first. The page is one file and loads nothing from elsewhere. Every audible gap is \
            listed with its cause: lost, late, sender stalled, drift, xrun, discarded, or unknown.

            EXAMPLES
              media-tool loopback --virtual --loss 5 --jitter 60 --trace call.json
              media-tool report call.json --output call.html
              media-tool report call.pcap --ssrc 0x1A2B3C4D --output call.html --json
            """
    )

    @Argument(help: "The trace or the capture.", completion: .file(extensions: ["json", "pcap"]))
    var file: String

    @Option(
        help: ArgumentHelp("The page to write.", valueName: "file"),
        completion: .file(extensions: ["html"])
    )
    var output: String

    @OptionGroup var selection: StreamSelection
    @OptionGroup var common: CommonOptions

    func validate() throws {
        var files = FileArguments()
        files.read("the trace or capture", file)
        try files.write("--output", output)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let (trace, notes) = try await heard()
        let analysis = GapAnalysis(trace)
        let title = file.split(separator: "/").last.map(String.init) ?? file
        let page = ReportPage(title: title, trace: trace, analysis: analysis, notes: notes)
        try TextFile.write(page.html, to: output)
        common.show(
            [
                "file": .string(file),
                "output": .string(output),
                "codec": .string(trace.codec),
                "seconds": .number(trace.duration.roundedSeconds),
                "rows": .integer(trace.rows.count),
                "notes": JSONValue(notes),
                "gaps": analysis.json,
            ],
            text: "\(output): \(trace.duration.roundedSeconds) s of \(trace.codec)\n" + analysis.text
        )
    }

    private func heard() async throws -> (TraceFile, [String]) {
        let start = try TextFile.read(file, limit: 64)
        guard !start.isEmpty else { throw ToolFailure("\(file) is empty. Give a trace or a capture.") }
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || 0x09...0x0D ~= $0 }
        guard start.first(where: { !isBlank($0) }) == UInt8(ascii: "{") else {
            let replay = try selection.replay(file)
            return (try await replay.run(output: nil, trace: nil).trace, replay.notes)
        }
        guard selection.isEmpty else {
            throw ToolFailure("\(file) is a trace, which has one stream. Leave out --codec, --payload-type and --ssrc.")
        }
        let bytes = try TextFile.read(file, limit: TraceFile.maximumByteCount)
        do throws(TraceFileError) { return (try TraceFile(parsing: bytes), []) } catch {
            throw ToolFailure("\(file) cannot be read. \(error.message)")
        }
    }
}
