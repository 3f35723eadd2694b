import MediaEngine
import SDP

/// A captured stream, run through the receiving path in virtual time.
struct CaptureReplay {
    /// What of the capture is heard, and as what.
    struct Choice {
        let stream: CapturedStreams.Stream
        let payloadType: UInt8
        let codec: CodecDescription
        /// The codec's name with rate and channels, as the registry finds it.
        let codecName: String
        /// Why it is that codec.
        let reason: String
        let ptime: Duration
    }

    /// What was heard.
    struct Result {
        let report: CallReport
        let trace: TraceFile
    }

    /// The capture's path.
    let path: String
    /// The streams in the capture.
    let capture: CapturedStreams
    /// The one that is heard.
    let choice: Choice
    /// Packets of the capture that were no whole UDP datagram.
    let skippedCount: Int
    /// Whether the file ends inside a packet.
    let isCutShort: Bool
    private let link: CapturedLink
    private let registry: PluginRegistry

    /// Reads the capture at `path` and chooses a stream: that of `ssrc`, or the one with the most packets.
    ///
    /// - Throws: `PcapError`, `CodecError`, or `ToolFailure` when there is no such stream.
    init(path: String, ssrc: UInt32?, codec: String?, payloadType: UInt8?, registry: PluginRegistry) throws {
        var reader = try Self.reader(path)
        let found = CapturedStreams(IteratorSequence(AnyIterator { reader.next() }))
        (skippedCount, isCutShort) = (reader.skippedCount, reader.isCutShort)
        self.path = path
        self.registry = registry
        capture = found
        let stream = try Self.stream(in: found, ssrc: ssrc, path: path)
        let datagrams = try Self.reader(path).filter { CapturedStreams.contains(stream, $0) }
        link = CapturedLink(datagrams, from: .zero + .milliseconds(20))
        let type = payloadType ?? found.payloadType(of: stream)
        guard stream.payloadTypes[type] != nil || found.redPayloadType(of: stream) != nil else {
            let there = stream.payloadTypes.keys.sorted().map(String.init).joined(separator: ", ")
            throw ToolFailure(
                "The stream \(Self.hexadecimal(stream.ssrc)) has no payload type \(type). It has: \(there)."
            )
        }
        let (name, reason) = Self.codecName(codec, type, found, registry)
        let description = try registry.codec(named: name).description
        choice = Choice(
            stream: stream,
            payloadType: type,
            codec: description,
            codecName: name,
            reason: reason,
            ptime: Self.ptime(of: datagrams, payloadType: type, codec: description)
        )
    }

    /// Runs the stream, once, into the WAV file `output` and the trace file `trace` where they are named.
    ///
    /// - Throws: `EngineError`, `TraceFileError` or `ToolFailure`.
    func run(output: String?, trace: String?) async throws -> Result {
        var settings = CallEngineConfiguration.virtual()
        settings.registry = registry
        return try await CallEngine.session(settings) { engine in
            try await run(engine, output: output, trace: trace)
        }
    }

    private func run(_ engine: CallEngine, output: String?, trace: String?) async throws -> Result {
        var configuration = CallConfiguration(network: .link(link, local: choice.stream.destination))
        configuration.name = "replay"
        configuration.source = .silence
        configuration.sink = output.map { .playout($0) } ?? .none
        configuration.agreement = agreement
        configuration.stream.encoder.channelCount = choice.codec.format.channelCount
        configuration.stream.tracesPlayout = true
        let call = try await engine.makeCall(configuration)
        let recorder = try TraceRecorder(
            call,
            codec: choice.codec,
            ptime: choice.ptime,
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
            codec: choice.codec.name,
            mode: "replay",
            seconds: (engine.now - .zero).roundedSeconds,
            legs: [call.report()],
            ticks: CallReport.Ticks(engine.tickStatistics)
        )
        let heard = try recorder.finish(report.legs[0], at: engine.now)
        try await call.end()
        return Result(report: report, trace: heard)
    }

    /// What the sender of the stream would have had an agreement on.
    private var agreement: MediaAgreement {
        var agreement = MediaAgreement()
        agreement.codec = AgreedCodec(choice.codecName, payloadType: choice.payloadType)
        let events = capture.telephoneEventPayloadType(of: choice.stream)
        agreement.telephoneEvents = events == choice.payloadType ? nil : AgreedEvents(payloadType: events)
        agreement.redPayloadType = capture.redPayloadType(of: choice.stream)
        agreement.direction = .receiveOnly
        return agreement
    }

    /// What should be said of the capture beside the report, a sentence each.
    var notes: [String] {
        var notes: [String] = []
        if isCutShort { notes.append("\(path) is cut off or damaged inside a packet; what is before that is heard.") }
        if skippedCount > 0 { notes.append("\(skippedCount) packets of \(path) are no whole UDP datagrams.") }
        if link.cutPauseCount > 0 {
            notes.append("\(link.cutPauseCount) pauses in \(path) are longer than a minute, and are cut to one.")
        }
        if link.backwardCount > 0 {
            notes.append("\(link.backwardCount) packets of \(path) are older than the one before and count like it.")
        }
        if choice.reason == Self.guess {
            notes.append(
                "Nothing says what payload type \(choice.payloadType) is; \(choice.codec.name) is a guess. "
                    + "Name it with --codec."
            )
        }
        return notes
    }

    // MARK: The choice

    private static func reader(_ path: String) throws -> PcapReader {
        do throws(PcapError) { return try PcapReader(path: path) } catch {
            throw error.code == .system ? error as any Error : ToolFailure("\(path) cannot be read. \(error.message)")
        }
    }

    private static let guess = "guess"

    static func hexadecimal(_ ssrc: UInt32) -> String {
        let digits = String(ssrc, radix: 16, uppercase: true)
        return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func stream(
        in capture: CapturedStreams,
        ssrc: UInt32?,
        path: String
    ) throws -> CapturedStreams.Stream {
        guard let largest = capture.streams.first else {
            throw ToolFailure(
                "\(path) has no RTP stream: \(capture.datagramCount) UDP datagrams, none of a stream. "
                    + "Capture the ports of a call."
            )
        }
        guard let ssrc else { return largest }
        guard let stream = capture.streams.first(where: { $0.ssrc == ssrc }) else {
            let there = capture.streams.prefix(20).map { hexadecimal($0.ssrc) }.joined(separator: ", ")
            throw ToolFailure("\(path) has no stream of SSRC \(hexadecimal(ssrc)). It has: \(there).")
        }
        return stream
    }

    private static func codecName(
        _ asked: String?,
        _ payloadType: UInt8,
        _ capture: CapturedStreams,
        _ registry: PluginRegistry
    ) -> (name: String, reason: String) {
        if let asked { return (asked, "option") }
        if let format = capture.formats[payloadType] {
            let channels = format.channelCount > 1 ? "/\(format.channelCount)" : ""
            return ("\(format.encodingName)/\(format.clockRate)\(channels)", "session description")
        }
        if let codec = registry.codec(staticPayloadType: payloadType) {
            return (codec.description.rtpmap, "payload type")
        }
        if let format = PayloadFormat(staticPayloadType: payloadType) { return (format.encodingName, "payload type") }
        return ("opus", guess)
    }

    /// The step of timestamps from packet to packet that is seen most.
    private static func ptime(
        of datagrams: [CapturedDatagram],
        payloadType: UInt8,
        codec: CodecDescription
    ) -> Duration {
        var steps: [UInt32: Int] = [:]
        var last: RTPHeader?
        for datagram in datagrams.prefix(2000) {
            guard let header = header(datagram), header.payloadType == payloadType else { continue }
            if let last, header.sequenceNumber == last.sequenceNumber &+ 1 {
                steps[header.timestamp &- last.timestamp, default: 0] += 1
            }
            last = header
        }
        guard let step = steps.max(by: { ($0.value, $1.key) < ($1.value, $0.key) })?.key else {
            return codec.defaultPtime
        }
        let ptime = Duration.nanoseconds(Int64(step) * 1_000_000_000 / Int64(codec.clockRate))
        return (Duration.milliseconds(1)...Duration.milliseconds(200)).contains(ptime) ? ptime : codec.defaultPtime
    }

    private static func header(_ datagram: CapturedDatagram) -> RTPHeader? {
        do throws(RTPError) { return try RTPPacket(parsing: datagram.payload.span).header } catch { return nil }
    }
}
