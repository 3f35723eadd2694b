import MediaEngine
import SDP

/// A captured stream, run through the receiving path in virtual time where it is sound.
struct CaptureReplay {
    /// A stream of the capture, and what is known of it without hearing it.
    struct Entry: Sendable {
        let stream: CapturedStreams.Stream
        /// The payload type of its sound.
        let payloadType: UInt8
        let survey: StreamSurvey
        let content: StreamContent
        /// What its payload type stands for, by name; nil where nobody knows.
        let codec: String?
    }

    /// What was heard.
    struct Result {
        let report: CallReport
        let trace: TraceFile
        /// How far it was heard when a signal ended it; nil when it was heard to its end.
        let endedAt: Duration?

        /// What should be said of it, a sentence each.
        var notes: [String] {
            guard let endedAt else { return [] }
            return ["A signal ended the run: the first \(endedAt.roundedSeconds) s were heard, and not the rest."]
        }
    }

    /// Which stream is to be heard.
    enum Choice: Sendable {
        /// The one with the most packets that is no picture.
        case best
        /// The one of that SSRC; of several, the one with the most packets.
        case ssrc(UInt32)
        /// That very one.
        case stream(CapturedStreams.Key)
    }

    /// What the capture is called: its path, or standard input.
    let name: String
    /// The streams in the capture.
    let capture: CapturedStreams
    /// The same with what is known of each, in their order.
    let entries: [Entry]
    /// Which of them is heard.
    let chosenIndex: Int
    /// Packets of the capture that were no whole UDP datagram.
    var skippedCount: Int { reader.skippedCount }
    /// Whether the file ends inside a packet.
    var isCutShort: Bool { reader.isCutShort }

    /// The stream that is heard.
    var chosen: Entry { entries[chosenIndex] }

    private let choice: Choice
    /// Whether a signal ended the reading.
    private let isInterrupted: Bool
    /// At its end.
    private let reader: PcapReader
    private let link: CapturedLink
    private let registry: PluginRegistry

    /// Reads the capture at `path`, once or not at all when its `content` is given, and chooses a stream.
    ///
    /// - Throws: `CodecError`, or `ToolFailure` when there is no such stream, or no capture.
    init(
        path: String,
        content: InputContent?,
        choice: Choice,
        codec: String?,
        payloadType: UInt8?,
        registry: PluginRegistry
    ) throws {
        let name = InputPath.name(of: path)
        let content = try content ?? .read(InputPath.path(of: path), limit: PcapReader.maximumByteCount)
        let beginning = try Self.reader(name, content.bytes)
        var reader = beginning
        let found = CapturedStreams(IteratorSequence(AnyIterator { reader.next() }))
        let surveys = found.surveys(beginning)
        self.name = name
        self.choice = choice
        self.registry = registry
        isInterrupted = content.isInterrupted
        self.reader = reader
        capture = found
        let index = try Self.index(in: found, choice, name, Self.remarks(reader))
        chosenIndex = index
        let stream = found.streams[index]
        let clockRate = surveys[index].clockRate
        link = CapturedLink(
            beginning.filter { CapturedStreams.contains(stream, $0) },
            from: .zero + Self.lead,
            step: { CapturedStreams.timestampStep($0, $1, clockRate: clockRate) }
        )
        if let payloadType { try Self.check(payloadType, of: stream, in: found) }
        entries = try found.streams.indices.map { place in
            try Self.entry(
                found,
                place,
                surveys[place],
                payloadType: place == index ? payloadType : nil,
                codec: place == index ? codec : nil,
                registry
            )
        }
    }

    /// Runs the stream, once, into the WAV file `output` and the trace file `trace` where they are named.
    ///
    /// - Throws: `EngineError`, `TraceFileError`, or `ToolFailure`, also when it is no sound.
    func run(output: String?, trace: String?) async throws -> Result {
        guard case .sound(let sound) = chosen.content else {
            throw ToolFailure(
                "The stream \(Self.hexadecimal(chosen.stream.ssrc)) of \(name) cannot be heard. "
                    + (chosen.content.notHeard ?? "").printable
            )
        }
        var settings = CallEngineConfiguration.virtual()
        settings.registry = registry
        return try await CallEngine.session(settings) { engine in
            try await run(sound, engine, output: output, trace: trace)
        }
    }

    private func run(
        _ sound: StreamContent.Sound,
        _ engine: CallEngine,
        output: String?,
        trace: String?
    ) async throws -> Result {
        var configuration = CallConfiguration(network: .link(link, local: chosen.stream.destination))
        configuration.name = "replay"
        configuration.source = .silence
        configuration.sink = output.map { .playout($0) } ?? .none
        configuration.agreement = agreement(sound)
        configuration.stream.encoder.channelCount = sound.codec.format.channelCount
        configuration.stream.tracesPlayout = true
        let call = try await engine.makeCall(configuration)
        let recorder = try TraceRecorder(
            call,
            codec: sound.codec,
            ptime: sound.ptime,
            unixNanosecondsAtZero: unixNanosecondsAtZero,
            cutEnds: link.cutEnds,
            path: trace,
            keepsRows: true
        )
        var progress = ProgressLine(total: (link.end - engine.now).roundedSeconds)
        let end = link.end + .seconds(1)
        while engine.now < end, !Interruption.hasCome {
            try engine.advance(by: .milliseconds(20))
            try recorder.poll(at: engine.now)
            progress.show((engine.now - .zero).roundedSeconds)
        }
        progress.clear()
        let report = CallReport(
            codec: sound.codec.name,
            mode: .replay,
            seconds: (engine.now - .zero).roundedSeconds,
            legs: [call.report()],
            ticks: engine.tickReport
        )
        let reported = receiverReports(clockRate: sound.codec.clockRate)
        let heard = try recorder.finish(report.legs[0], receiverReports: reported, at: engine.now)
        let endedAt = engine.now < end ? engine.now - MediaTime.zero : nil
        try await call.end()
        return Result(report: report, trace: heard, endedAt: endedAt)
    }

    /// What the receiver of the stream reports of it by RTCP; nil where it reports nothing.
    func receiverReports(clockRate: Int?) -> JSONValue? {
        capture.reports.report(of: chosen.stream.ssrc, from: chosen.stream.source)?.json(clockRate: clockRate)
    }

    /// The sound that goes back between the same two addresses, if there is any: of several streams the one that lasts longest
    /// beside the chosen one, then the one with the most packets.
    var opposite: Entry? {
        let candidates = entries.filter { other in
            switch other.content {
            case .sound: break
            // The codec that was asked for is that of both sides.
            case .unknown: guard other.payloadType == chosen.payloadType else { return false }
            case .keys, .encrypted, .undecodable: return false
            }
            return other.stream.source == chosen.stream.destination && other.stream.destination == chosen.stream.source
        }
        func rank(_ entry: Entry) -> (Int64, Int) {
            (entry.stream.overlap(with: chosen.stream).components.seconds, entry.stream.packetCount)
        }
        return candidates.max { rank($0) < rank($1) }
    }

    /// The streams that are neither heard here nor `other`, in a sentence; nil where there are none.
    func rest(besides other: Entry?) -> String? {
        let rest = entries.filter { $0.stream.key != chosen.stream.key && $0.stream.key != other?.stream.key }
        guard !rest.isEmpty else { return nil }
        let names = rest.prefix(Self.longestList).map { entry in
            let kind = entry.encryption == nil ? entry.codec ?? "unknown" : "encrypted"
            return "\(Self.hexadecimal(entry.stream.ssrc)) (\(kind))"
        }
        let more = rest.count > names.count ? " and \(rest.count - names.count) others" : ""
        let all = names.joined(separator: ", ") + more
        return "The capture has \(English.count(rest.count, "more stream")): \(all). Choose one by --ssrc.".printable
    }

    private static let longestList = 10

    /// The engine runs for so long before the first packet comes.
    private static let lead = Duration.milliseconds(20)

    /// Before this, in 1980, nobody captured RTP: a capture of virtual time begins in 1970.
    private static let firstPlausibleNanoseconds: Int64 = 315_532_800_000_000_000

    /// The capture's time at the zero of virtual time; nil where pauses were cut, after which it would be wrong, or where it is no
    /// time of day.
    private var unixNanosecondsAtZero: Int64? {
        let first = chosen.stream.firstNanoseconds
        return link.cutPauseCount > 0 || first < Self.firstPlausibleNanoseconds ? nil : first &- Self.lead.nanoseconds
    }

    /// What the sender of the stream would have had an agreement on.
    private func agreement(_ sound: StreamContent.Sound) -> MediaAgreement {
        var agreement = MediaAgreement()
        agreement.codec = AgreedCodec(sound.codecName, payloadType: chosen.payloadType)
        agreement.acceptedCodecs = sound.others
        let events = capture.telephoneEventPayloadType(of: chosen.stream)
        let isTaken = events == chosen.payloadType || sound.others.contains { $0.payloadType == events }
        agreement.telephoneEvents = isTaken ? nil : AgreedEvents(payloadType: events)
        agreement.redPayloadType = capture.redPayloadType(of: chosen.stream)
        agreement.direction = .receiveOnly
        return agreement
    }

    // MARK: Notes

    /// What should be said of the capture beside the report, a sentence each.
    var notes: [String] {
        var notes = Self.remarks(reader)
        if isInterrupted { notes.append("A signal ended the reading of \(name); what came before it is read.") }
        if let damage = reader.damage {
            notes.append("\(name) is cut off or damaged; what is before that is read. \(damage)")
        }
        if let ambiguity { notes.append(ambiguity) }
        if link.cutPauseCount > 0 {
            let pauses = English.count(link.cutPauseCount, "pause")
            let are = link.cutPauseCount == 1 ? "is" : "are"
            notes.append("\(pauses) in \(name) \(are) longer than an hour, and \(are) cut short.")
        }
        if link.backwardCount > 0 {
            let packets = English.count(link.backwardCount, "packet")
            let (are, count) = link.backwardCount == 1 ? ("is", "counts") : ("are", "count")
            notes.append("\(packets) of \(name) \(are) older than the one before and \(count) like it.")
        }
        if case .sound(let sound) = chosen.content {
            notes += unheardNotes(sound)
            if sound.saidBy == StreamContent.Source.guess {
                notes.append(
                    "Nothing says what payload type \(chosen.payloadType) is; \(sound.codec.name) is a guess. "
                        + "Name it with --codec."
                )
            }
        }
        return notes.map(\.printable)
    }

    /// That the SSRC that was asked for is that of several streams, and what can be done; nil where it is not.
    private var ambiguity: String? {
        guard case .ssrc(let ssrc) = choice else { return nil }
        let count = entries.count { $0.stream.ssrc == ssrc }
        guard count > 1 else { return nil }
        let (source, destination) = (chosen.stream.source, chosen.stream.destination)
        return "\(count) streams have SSRC \(Self.hexadecimal(ssrc)): the one with the most packets is taken, "
            + "\(source) to \(destination). For another one, give a capture that has it alone, as by: "
            + "tcpdump -r CAPTURE -w OTHER not src port \(source.port)"
    }

    /// Packets that are told of and not read, a sentence each.
    private static func remarks(_ reader: PcapReader) -> [String] {
        var remarks: [String] = []
        func remark(_ count: Int, _ noun: String, one: String, many: String) {
            guard count > 0 else { return }
            remarks.append("\(English.count(count, noun)) \(count == 1 ? one : many)")
        }
        remark(
            reader.skippedCount - reader.tcpCount - reader.fragmentCount,
            "packet",
            one: "is no whole UDP datagram.",
            many: "are no whole UDP datagrams."
        )
        remark(reader.tcpCount, "packet", one: "is TCP, which is not read.", many: "are TCP, which is not read.")
        remark(
            reader.sipOverTCPCount,
            "SIP message",
            one: "travels over TCP and is not read: what it says of codecs and keys is not known.",
            many: "travel over TCP and are not read: what they say of codecs and keys is not known."
        )
        remark(
            reader.fragmentCount,
            "packet",
            one: "is a fragment of another, and not put together.",
            many: "are fragments of others, which are not put together."
        )
        if !reader.unreadLinkTypes.isEmpty {
            let types = reader.unreadLinkTypes.sorted().prefix(10).map(String.init).joined(separator: ", ")
            remarks.append("Packets of link type \(types) are not read.")
        }
        remark(
            reader.untimedCount,
            "packet",
            one: "has no time, and counts as captured with the one before.",
            many: "have no time, and count as captured with the one before."
        )
        return remarks
    }

    /// Types of the stream that have no decoder: that sound never comes.
    private func unheardNotes(_ sound: StreamContent.Sound) -> [String] {
        capture.otherSoundTypes(of: chosen.stream, than: chosen.payloadType).compactMap { type in
            guard !sound.others.contains(where: { $0.payloadType == type }) else { return nil }
            let name = capture.format(type, of: chosen.stream).map { " (\($0.format.encodingName))" } ?? ""
            let count = chosen.stream.payloadTypes[type] ?? 0
            return "\(English.count(count, "packet")) \(count == 1 ? "has" : "have") payload type \(type)\(name), "
                + "for which there is no decoder: that sound is missing from what is heard."
        }
    }

    // MARK: The choice

    private static func reader(_ name: String, _ bytes: [UInt8]) throws -> PcapReader {
        do throws(PcapError) {
            return try PcapReader(bytes: bytes)
        } catch {
            throw ToolFailure("\(name) cannot be read. \(error.message)")
        }
    }

    static func hexadecimal(_ ssrc: UInt32) -> String {
        let digits = String(ssrc, radix: 16, uppercase: true)
        return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func entry(
        _ capture: CapturedStreams,
        _ index: Int,
        _ survey: StreamSurvey,
        payloadType: UInt8?,
        codec: String?,
        _ registry: PluginRegistry
    ) throws -> Entry {
        let stream = capture.streams[index]
        let type = payloadType ?? capture.payloadType(of: stream)
        let content = try StreamContent(of: stream, in: capture, survey, payloadType: type, asked: codec, registry)
        let name = content.codec?.name ?? capture.format(type, of: stream)?.format.encodingName
        return Entry(stream: stream, payloadType: type, survey: survey, content: content, codec: name)
    }

    private static func index(
        in capture: CapturedStreams,
        _ choice: Choice,
        _ name: String,
        _ remarks: [String]
    ) throws -> Int {
        guard !capture.streams.isEmpty else {
            throw ToolFailure(
                "\(name) has no RTP stream: \(English.count(capture.datagramCount, "UDP datagram")), none of a stream. "
                    + (remarks + ["Capture the ports of a call."]).joined(separator: " ")
            )
        }
        let wanted: UInt32
        switch choice {
        case .best: return capture.streams.firstIndex { !capture.isVideo($0) } ?? 0
        case .ssrc(let ssrc):
            if let index = capture.streams.firstIndex(where: { $0.ssrc == ssrc }) { return index }
            wanted = ssrc
        case .stream(let key):
            if let index = capture.streams.firstIndex(where: { $0.key == key }) { return index }
            wanted = key.ssrc
        }
        let there = capture.streams.prefix(20).map { hexadecimal($0.ssrc) }.joined(separator: ", ")
        throw ToolFailure("\(name) has no stream of SSRC \(hexadecimal(wanted)). It has: \(there).")
    }

    private static func check(
        _ payloadType: UInt8,
        of stream: CapturedStreams.Stream,
        in capture: CapturedStreams
    ) throws {
        guard stream.payloadTypes[payloadType] == nil, capture.redPayloadType(of: stream) == nil else { return }
        let there = stream.payloadTypes.keys.sorted().map(String.init).joined(separator: ", ")
        throw ToolFailure(
            "The stream \(hexadecimal(stream.ssrc)) has no payload type \(payloadType). It has: \(there)."
        )
    }
}
