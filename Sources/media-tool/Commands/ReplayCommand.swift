import ArgumentParser
import MediaEngine

/// Runs a captured RTP stream through the receiving path.
struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Hears a captured RTP stream as this engine would have heard it.",
        discussion: """
            The packets of one stream reach a call in virtual time, each at its capture time, so the same capture gives \
            the same sound and the same report. The codec follows from --codec, from session descriptions in the \
            capture, or from the payload type; else Opus is tried, if lengths fit. Of several streams the one with the \
            most packets is heard; all are listed. What is encrypted, or has no decoder, is counted and not heard.

            EXAMPLES
              media-tool replay call.pcap --output heard.wav
              media-tool replay call.pcapng --ssrc 0x1A2B3C4D --codec PCMA --json
              tcpdump -i any -w - udp | media-tool replay - --trace call.json
            """
    )

    @Argument(
        help: "The capture: pcap or pcapng, as tcpdump and Wireshark write it. \(InputPath.help)",
        completion: .file(extensions: ["pcap", "pcapng"])
    )
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
        try files.read("the capture", InputPath.path(of: file))
        try files.write("--output", output)
        try files.write("--trace", trace)
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let replay = try selection.replay(file)
        if !common.json { for note in replay.notes { StandardError.write("Note: \(note)\n") } }
        guard replay.chosen.content.notHeard == nil else {
            common.show(json(replay, nil), text: text(replay, nil))
            // Who wants a file is told that there is none.
            if output != nil || trace != nil { _ = try await replay.run(output: output, trace: trace) }
            return
        }
        let heard = try await replay.run(output: output, trace: trace)
        if !common.json { for note in heard.notes { StandardError.write("Note: \(note)\n") } }
        common.show(json(replay, heard), text: text(replay, heard))
    }

    private func json(_ replay: CaptureReplay, _ heard: CaptureReplay.Result?) -> JSONValue {
        let chosen = replay.chosen
        return [
            "file": .string(file),
            "streams": .array(
                replay.entries.enumerated().map { $0.element.json(isChosen: $0.offset == replay.chosenIndex) }
            ),
            "datagrams": .integer(replay.capture.datagramCount),
            "otherDatagrams": .integer(replay.capture.otherCount),
            "skippedPackets": .integer(replay.skippedCount),
            "cutShort": .bool(replay.isCutShort),
            "codec": JSONValue(chosen.codec),
            "codecFrom": JSONValue(chosen.content.codec?.saidBy),
            "payloadType": .integer(Int(chosen.payloadType)),
            "encrypted": JSONValue(chosen.encryption),
            "notHeard": JSONValue(chosen.content.notHeard),
            "dtmf": JSONValue(chosen.keys),
            "seconds": .number(heard?.report.seconds ?? chosen.stream.duration.roundedSeconds),
            "output": JSONValue(heard == nil ? nil : output),
            "trace": JSONValue(heard == nil ? nil : trace),
            "notes": JSONValue(replay.notes + (heard?.notes ?? [])),
            "report": heard?.report.legs[0].json ?? .null,
            "receiverReports": replay.receiverReports(clockRate: chosen.survey.clockRate) ?? .null,
            "gaps": heard.map { GapAnalysis($0.trace).json } ?? .null,
        ]
    }

    private func text(_ replay: CaptureReplay, _ heard: CaptureReplay.Result?) -> String {
        let rows = replay.entries.prefix(50).enumerated().map { index, entry in
            entry.row(isChosen: index == replay.chosenIndex)
        }
        let list = Table.text([CaptureReplay.Entry.heading] + rows) + "\n"
        guard let heard else { return list + replay.chosen.text }
        let codec = replay.chosen.content.codec.map { "\($0.name) (by \($0.saidBy))" } ?? ""
        return list + "\(codec), \(heard.report.seconds) s\n"
            + heard.report.table.split(separator: "\n").dropFirst().map { $0 + "\n" }.joined() + "\n"
            + (heard.trace.isPlayed ? GapAnalysis(heard.trace).text : "nothing was heard\n")
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

    /// The stream of the capture at `path`, whose `content` is given where it has been read.
    func replay(_ path: String, content: InputContent? = nil) throws -> CaptureReplay {
        try CaptureReplay(
            path: path,
            content: content,
            choice: ssrc.map(CaptureReplay.Choice.ssrc) ?? .best,
            codec: codec,
            payloadType: payloadType,
            registry: PluginRegistry.standard()
        )
    }

    /// The stream that goes back, in the codec that was asked for if it has the same payload type.
    func replay(
        _ path: String,
        content: InputContent,
        opposite: CaptureReplay.Entry,
        of other: CaptureReplay
    ) throws -> CaptureReplay {
        let isAlike = opposite.payloadType == other.chosen.payloadType
        return try CaptureReplay(
            path: path,
            content: content,
            choice: .stream(opposite.stream.key),
            codec: isAlike ? codec : nil,
            payloadType: nil,
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

extension CaptureReplay.Entry {
    /// What says that the stream is encrypted; nil where nothing does.
    var encryption: String? {
        if case .encrypted(let sign) = content { sign.text } else { nil }
    }

    /// The keys of its telephone events; nil where those cannot be read.
    var keys: String? { encryption == nil ? survey.keys : nil }

    /// The stream with the keys that scripts rely on.
    fileprivate func json(isChosen: Bool) -> JSONValue {
        [
            "ssrc": .string(CaptureReplay.hexadecimal(stream.ssrc)),
            "source": .string(stream.source.description),
            "destination": .string(stream.destination.description),
            "packets": .integer(stream.packetCount),
            "payloadType": .integer(Int(payloadType)),
            "codec": JSONValue(codec),
            "clockRate": survey.clockRate.map { .integer($0) } ?? .null,
            "encrypted": JSONValue(encryption),
            "lost": .integer(Int(clamping: survey.reception.lostCount)),
            "duplicate": .integer(Int(clamping: survey.reception.duplicateCount)),
            "reordered": .integer(Int(clamping: survey.reception.reorderedCount)),
            "restarts": .integer(Int(clamping: survey.reception.restartCount)),
            "jitterMs": survey.jitter.map { .milliseconds($0) } ?? .null,
            "packetMs": survey.packetTime.map { .milliseconds($0) } ?? .null,
            "dtmf": JSONValue(keys),
            "seconds": .number(stream.duration.roundedSeconds),
            "chosen": .bool(isChosen),
        ]
    }

    fileprivate static let heading = [
        "", "SSRC", "FROM", "TO", "PACKETS", "LOST", "JITTER MS", "TYPE", "CODEC", "SECONDS",
    ]

    fileprivate func row(isChosen: Bool) -> [String] {
        [
            isChosen ? "*" : "", CaptureReplay.hexadecimal(stream.ssrc), stream.source.description,
            stream.destination.description, "\(stream.packetCount)", "\(survey.reception.lostCount)",
            Self.number(survey.jitter), "\(payloadType)",
            (codec ?? "unknown").printable + (encryption == nil ? "" : ", encrypted"),
            "\(stream.duration.roundedSeconds)",
        ]
    }

    /// What is told of a stream that is not heard.
    fileprivate var text: String {
        let rows = [
            ["packets", "\(stream.packetCount)"], ["lost", "\(survey.reception.lostCount)"],
            ["duplicate", "\(survey.reception.duplicateCount)"], ["reordered", "\(survey.reception.reorderedCount)"],
            ["jitter ms", Self.number(survey.jitter)], ["packet ms", Self.number(survey.packetTime)],
            ["keys", keys.map { $0.isEmpty ? "none" : $0 } ?? "unknown"],
        ]
        let name = (codec ?? "payload type \(payloadType)").printable
        let reason = (content.notHeard ?? "").printable
        return "\(name), \(stream.duration.roundedSeconds) s. \(reason)\n" + Table.text(rows)
    }

    private static func number(_ duration: Duration?) -> String {
        duration.map { "\(($0.milliseconds * 100).rounded() / 100)" } ?? "unknown"
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
                        "lastHeard": gap.lastHeard.map { .integer(Int($0)) } ?? .null,
                        "nextHeard": gap.nextHeard.map { .integer(Int($0)) } ?? .null,
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
        return "\(English.count(gaps.count, "audible gap")), \(total) ms\n"
            + Table.text([["AT S", "LENGTH MS", "CAUSE"]] + rows) + more
    }
}
