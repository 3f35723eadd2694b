import ArgumentParser
import MediaEngine

/// Runs a captured RTP stream through the receiving path.
struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Hears a captured RTP stream (pcap) as this engine would have heard it.",
        discussion: """
            The packets of one stream reach a call in virtual time, each at its capture time, so the same capture gives \
            the same sound and the same report. The codec follows from --codec, from session descriptions in the \
            capture, or from the payload type; else Opus is tried. Of several streams the one with the most packets is \
            heard; all are listed.

            EXAMPLES
              media-tool replay call.pcap --output heard.wav
              media-tool replay call.pcap --ssrc 0x1A2B3C4D --codec PCMA --json
              media-tool replay call.pcap --trace call.json
            """
    )

    @Argument(help: "The capture, as tcpdump -w writes it.", completion: .file(extensions: ["pcap"]))
    var file: String

    @Option(
        help: ArgumentHelp("The WAV file for what is heard.", valueName: "file"),
        completion: .file(extensions: ["wav"])
    )
    var output: String?

    @OptionGroup var selection: StreamSelection

    @Option(
        help: ArgumentHelp("A JSON file with a row for each 20 ms of playout; see `report`.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var trace: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        var files = FileArguments()
        files.read("the capture", file)
        try files.write("--output", output)
        try files.write("--trace", trace)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let replay = try selection.replay(file)
        if !common.json { for note in replay.notes { StandardError.write("Note: \(note)\n") } }
        let result = try await replay.run(output: output, trace: trace)
        let analysis = GapAnalysis(result.trace)
        common.show(json(replay, result, analysis), text: text(replay, result, analysis))
    }

    private func json(_ replay: CaptureReplay, _ result: CaptureReplay.Result, _ analysis: GapAnalysis) -> JSONValue {
        [
            "file": .string(file),
            "streams": .array(replay.capture.streams.map { Self.json($0, replay) }),
            "datagrams": .integer(replay.capture.datagramCount),
            "otherDatagrams": .integer(replay.capture.otherCount),
            "skippedPackets": .integer(replay.skippedCount),
            "cutShort": .bool(replay.isCutShort),
            "codec": .string(replay.choice.codec.name),
            "codecFrom": .string(replay.choice.reason),
            "payloadType": .integer(Int(replay.choice.payloadType)),
            "seconds": .number(result.report.seconds),
            "output": JSONValue(output),
            "trace": JSONValue(trace),
            "notes": JSONValue(replay.notes),
            "report": result.report.legs[0].json,
            "gaps": analysis.json,
        ]
    }

    private static func json(_ stream: CapturedStreams.Stream, _ replay: CaptureReplay) -> JSONValue {
        [
            "ssrc": .string(CaptureReplay.hexadecimal(stream.ssrc)),
            "source": .string(stream.source.description),
            "destination": .string(stream.destination.description),
            "packets": .integer(stream.packetCount),
            "payloadType": .integer(Int(replay.capture.payloadType(of: stream))),
            "seconds": .number(stream.duration.roundedSeconds),
            "chosen": .bool(stream == replay.choice.stream),
        ]
    }

    private func text(_ replay: CaptureReplay, _ result: CaptureReplay.Result, _ analysis: GapAnalysis) -> String {
        let rows = replay.capture.streams.prefix(50).map { stream in
            [
                stream == replay.choice.stream ? "*" : "", CaptureReplay.hexadecimal(stream.ssrc),
                stream.source.description, stream.destination.description, "\(stream.packetCount)",
                "\(replay.capture.payloadType(of: stream))", "\(stream.duration.roundedSeconds)",
            ]
        }
        let heading = ["", "SSRC", "FROM", "TO", "PACKETS", "TYPE", "SECONDS"]
        return Table.text([heading] + rows) + "\n"
            + "\(replay.choice.codec.name) (by \(replay.choice.reason)), \(result.report.seconds) s\n"
            + result.report.table.split(separator: "\n").dropFirst().map { $0 + "\n" }.joined() + "\n"
            + analysis.text
    }
}

/// Which stream of a capture is meant, and what it is.
struct StreamSelection: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The capture's codec. Default: as the capture, or the payload type, says.",
            valueName: "name"
        ),
        completion: .list(["opus", "G722", "PCMU", "PCMA", "L16", "GSM", "G729"])
    )
    var codec: String?

    @Option(help: ArgumentHelp("The payload type of the sound, 0 to 127.", valueName: "n"))
    var payloadType: UInt8?

    @Option(
        help: ArgumentHelp("The stream to hear, decimal or 0x and hexadecimal.", valueName: "ssrc"),
        transform: Self.ssrc
    )
    var ssrc: UInt32?

    func validate() throws {
        try Quantity.check("--payload-type", payloadType, in: 0...127)
    }

    /// Whether anything was asked for.
    var isEmpty: Bool { codec == nil && payloadType == nil && ssrc == nil }

    /// The stream of the capture at `path`.
    func replay(_ path: String) throws -> CaptureReplay {
        try CaptureReplay(
            path: path,
            ssrc: ssrc,
            codec: codec,
            payloadType: payloadType,
            registry: PluginRegistry.standard()
        )
    }

    @Sendable private static func ssrc(_ text: String) throws -> UInt32 {
        let isHexadecimal = text.lowercased().hasPrefix("0x")
        guard let value = isHexadecimal ? UInt32(text.dropFirst(2), radix: 16) : UInt32(text) else {
            throw ValidationError("The value '\(text)' of '--ssrc' is no SSRC. Give a number such as 0x1A2B3C4D.")
        }
        return value
    }
}

extension GapAnalysis {
    /// The gaps with the keys that scripts rely on.
    var json: JSONValue {
        [
            "count": .integer(gaps.count),
            "totalMs": .milliseconds(totalDuration),
            "list": .array(
                gaps.map { gap in
                    [
                        "startMs": .milliseconds(gap.start),
                        "lengthMs": .milliseconds(gap.duration),
                        "cause": .string(gap.cause.rawValue),
                    ]
                }
            ),
        ]
    }

    /// The gaps as a table, of very many the first.
    var text: String {
        guard !gaps.isEmpty else { return "no audible gap\n" }
        let rows = gaps.prefix(100).map { gap in
            ["\(gap.start.roundedSeconds)", "\(Int(gap.duration.milliseconds.rounded()))", gap.cause.title]
        }
        let more = gaps.count > rows.count ? "and \(gaps.count - rows.count) more\n" : ""
        let total = Int(totalDuration.milliseconds.rounded())
        return "\(gaps.count) audible gap\(gaps.count == 1 ? "" : "s"), \(total) ms\n"
            + Table.text([["AT S", "LENGTH MS", "CAUSE"]] + rows) + more
    }
}
