import NIOCore

@testable import LocalMessaging
@testable import MediaEngine
@testable import RTP
@testable import SDP

/// What is fuzzed: one line each, by the name that Scripts/fuzz and the folders in Seeds have.
///
/// A parser may refuse bytes by throwing; it may not trap, hang, or read beyond them. `precondition` here says what
/// must hold of what it accepts.
enum Parsers {
    static let all: [(name: String, run: @Sendable (Span<UInt8>) throws -> Void)] = [
        ("rtp", rtp),
        ("rtcp", rtcp),
        ("extended-report", extendedReport),
        ("red", red),
        ("telephone-event", telephoneEvent),
        ("wav", wav),
        ("pcap", pcap),
        ("session-description", sessionDescription),
        ("message-frames", messageFrames),
        ("message-values", messageValues),
        ("sip-message", sipMessage),
        ("sip-stream", sipStream),
        ("sip-uri", sipURI),
        ("sip-agent", sipAgent),
        ("sip-summary", sipSummary),
        ("sip-push", sipPush),
        ("sip-cpim", sipCPIM),
        ("sip-receipt", sipReceipt),
        ("sip-list", sipList),
        ("sip-conference", sipConference),
        ("dns-answer", dnsAnswer),
        ("stun", stun),
        ("turn-stream", turnStream),
        ("ice-agent", iceAgent),
        ("srtp", srtp),
        ("keying-lines", keyingLines),
        ("agent-messages", agentMessages),
    ]

    private static let sipMessage = SIPParsers.message
    private static let sipStream = SIPParsers.stream
    private static let sipURI = SIPParsers.uri
    private static let sipAgent = SIPParsers.agent
    private static let sipSummary = SIPParsers.summary
    private static let sipPush = SIPParsers.push
    private static let sipCPIM = SIPParsers.cpim
    private static let sipReceipt = SIPParsers.receipt
    private static let sipList = SIPParsers.list
    private static let sipConference = SIPParsers.conference
    private static let dnsAnswer = SIPParsers.dnsAnswer

    private static let stun = SecurityParsers.stun
    private static let turnStream = SecurityParsers.turnStream
    private static let iceAgent = SecurityParsers.iceAgent
    private static let srtp = SecurityParsers.srtp
    private static let keyingLines = SecurityParsers.description

    private static let agentMessages = AgentParsers.messages

    private static func rtp(_ bytes: Span<UInt8>) throws {
        let packet = try RTPPacket(parsing: bytes)
        let payload = packet.payload(in: bytes)
        precondition(payload.count + packet.paddingByteCount <= bytes.count)
        precondition(packet.payloadRange.upperBound <= bytes.count)
    }

    private static func rtcp(_ bytes: Span<UInt8>) throws {
        for allowsReducedSize in [false, true] {
            guard var compound = try? RTCPCompound(parsing: bytes, allowsReducedSize: allowsReducedSize) else {
                continue
            }
            var count = 0
            while compound.next(in: bytes) != nil { count += 1 }
            precondition(4 * (count + compound.malformedCount) <= bytes.count)
        }
    }

    private static func extendedReport(_ bytes: Span<UInt8>) throws {
        var report = try RTCPExtendedReport(parsing: bytes)
        var count = 0
        while let block = report.next(in: bytes) {
            count += 1
            guard case .lossRLE(let losses) = block, let runs = losses.runs(in: bytes) else { continue }
            precondition(runs.packetCount == Int(losses.endSequence &- losses.beginSequence))
            precondition(runs.lostCount <= runs.packetCount && runs.longestRun <= runs.lostCount)
            precondition(runs.runCount <= runs.lostCount)
        }
        precondition(4 * count <= bytes.count)
    }

    private static func red(_ bytes: Span<UInt8>) throws {
        let payload = try REDPayload(parsing: bytes)
        var byteCount = payload.primary.byteCount
        for index in 0..<payload.redundantCount { byteCount += payload.redundant(index).byteCount }
        precondition(byteCount < bytes.count)
    }

    /// The bytes are packets of nine: marker, time in ticks, sequence number, time stamp, payload.
    private static func telephoneEvent(_ bytes: Span<UInt8>) throws {
        var receiver = TelephoneEventReceiver()
        var now = MediaTime.zero
        var openCount = 0
        func take() {
            while let report = receiver.next() {
                openCount += report.kind == .started ? 1 : -1
                precondition((0...2).contains(openCount))
            }
        }
        var offset = 0
        while offset < bytes.count {
            let packet = bytes.extracting(offset..<min(offset + 9, bytes.count))
            offset += 9
            now = now + .milliseconds(Int64(packet[0] & 0x7F) * 10)
            let header = RTPHeader(
                isMarked: packet[0] & 0x80 != 0,
                payloadType: 101,
                sequenceNumber: packet.count > 1 ? UInt16(packet[1]) : 0,
                timestamp: packet.count > 4 ? UInt32(packet[2]) << 24 | UInt32(packet[3]) << 8 | UInt32(packet[4]) : 0,
                ssrc: 1
            )
            receiver.receive(
                header,
                payload: packet.extracting(min(5, packet.count)..<packet.count),
                clockRate: header.sequenceNumber & 1 == 0 ? 8000 : 48000,
                arrival: now
            )
            take()
        }
        receiver.reset()
        take()
        precondition(openCount == 0)
    }

    private static func wav(_ bytes: Span<UInt8>) throws {
        let reader = try WAVReader(bytes: array(bytes))
        precondition(reader.format.channelCount > 0 && reader.format.sampleRate > 0)
        var block = [Int16](repeating: 0, count: 64 * reader.format.channelCount)
        for pass in 0..<2 {
            var frameCount = 0
            while true {
                var target = block.mutableSpan
                let count = try reader.read(into: &target)
                guard count > 0 else { break }
                frameCount += count
                precondition(frameCount <= 8 * bytes.count)
            }
            if pass == 0 { try reader.rewind() }
        }
    }

    /// Classic captures and pcapng; the first bytes say which.
    private static func pcap(_ bytes: Span<UInt8>) throws {
        var reader = try PcapReader(bytes: array(bytes))
        var byteCount = 0
        while let datagram = reader.next() {
            byteCount += datagram.payload.count
            precondition(datagram.unixNanoseconds >= 0)
        }
        precondition(byteCount <= bytes.count)
        precondition(reader.tcpCount + reader.fragmentCount <= reader.skippedCount)
    }

    /// What is read is written alike; taken as an offer and as an answer it is answered by one description of ours.
    private static func sessionDescription(_ bytes: Span<UInt8>) throws {
        let description = try SessionDescription(parsing: bytes)
        var written: [UInt8] = []
        description.serialize(into: &written)
        precondition((try? SessionDescription(parsing: written.span)) == description)
        let formats: [PayloadFormat] = [
            PayloadFormat(payloadType: 96, encodingName: "opus", clockRate: 48000, channelCount: 2),
            PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000),
            PayloadFormat(payloadType: 97, encodingName: "iLBC", clockRate: 8000, parameters: "mode=20"),
            PayloadFormat(payloadType: 13, encodingName: "CN", clockRate: 8000),
            PayloadFormat(payloadType: 101, encodingName: "telephone-event", clockRate: 8000, parameters: "0-15"),
            PayloadFormat(payloadType: 121, encodingName: "red", clockRate: 8000, parameters: "0/0"),
        ]
        var medium = MediaConfiguration(port: 40000, formats: formats)
        medium.protocols = [.rtpAVP, .rtpAVPF, .rtpSAVP, .rtpSAVPF, .dtlsSAVP, .dtlsSAVPF]
        let configuration = SessionConfiguration(address: "192.0.2.1", media: [medium])
        var answering = OfferAnswer(configuration: configuration, sessionID: 1)
        try? answering.receiveOffer(description)
        if let answer = try? answering.makeAnswer() {
            precondition(answer.media.count == description.media.count)
            precondition((try? SessionDescription(parsing: answer.description)) == answer)
            guard let again = try? answering.makeOffer(.agreedFormats) else { preconditionFailure("it cannot offer") }
            precondition(again.media.map(\.kind) == answer.media.map(\.kind))
        }
        var offering = OfferAnswer(configuration: configuration, sessionID: 1)
        guard (try? offering.makeOffer()) != nil else { preconditionFailure("it cannot offer") }
        _ = try? offering.receiveAnswer(description)
        for medium in description.media { _ = (medium.formats, medium.host, medium.direction, medium.attributes) }
    }

    /// The first byte is the size of the pieces in which the rest arrives; at once or in pieces, the frames are the same.
    private static func messageFrames(_ bytes: Span<UInt8>) throws {
        guard bytes.count > 1 else { return }
        let stream = ByteBuffer(bytes: array(bytes.extracting(1..<bytes.count)))
        let whole = frames(of: [stream])
        var rest = stream
        var pieces: [ByteBuffer] = []
        while rest.readableBytes > 0 {
            let count = min(max(1, Int(bytes[0])), rest.readableBytes)
            if let piece = rest.readSlice(length: count) { pieces.append(piece) }
        }
        precondition(frames(of: pieces) == whole)
    }

    private static func frames(of chunks: [ByteBuffer]) -> [String] {
        var parser = FrameParser(maximumByteCount: 1024)
        var frames: [String] = []
        do throws(FrameParser.Failure) {
            for chunk in chunks {
                parser.append(chunk)
                while let frame = try parser.next() {
                    precondition(Frame.headerByteCount...1024 ~= frame.length)
                    let bytes = [frame.payload, frame.blob].map { Array($0.readableBytesView) }
                    let type = frame.type?.description ?? ""
                    frames.append(
                        "\(frame.kind) \(frame.correlation) \(type) \(frame.topic) \(bytes) \(frame.fileCount)"
                    )
                }
            }
        } catch {
            frames.append(error.description)
        }
        return frames
    }

    /// One of each shape that `Codable` has.
    private struct Values: Codable {
        enum Shape: Codable {
            case point
            case circle(radius: Double)
            indirect case group([Shape])
        }

        let integers: [Int8]?
        let large: [UInt64]?
        let fractions: [Float?]?
        let text: String?
        let bytes: [UInt8]?
        let shapes: [Shape]?
        let byName: [String: Int]?
        let byNumber: [Int: String]?
    }

    /// What decodes is encoded to bytes that decode.
    private static func messageValues(_ bytes: Span<UInt8>) throws {
        var configuration = MessagingConfiguration()
        (configuration.maximumDepth, configuration.maximumValueCount) = (8, 100)
        let (payload, bounds) = (ByteBuffer(bytes: array(bytes)), MessageBounds(configuration))
        func decode<Value: Codable>(_ type: Value.Type) {
            guard let value = try? MessageCoding.decode(type, from: payload, within: bounds) else { return }
            guard let again = try? MessageCoding.encode(value) else { preconditionFailure("it cannot be encoded") }
            precondition((try? MessageCoding.decode(type, from: again, within: bounds)) != nil)
        }
        decode(Values.self)
        decode([Values].self)
        decode([[Int]].self)
        decode([UInt8].self)
        decode(Double.self)
        decode(RemoteFailure.self)
        let introduction = try MessageCoding.decode(Handshake.Introduction.self, from: payload, within: bounds)
        precondition(introduction.accepts.count <= 100)
    }

    static func array(_ bytes: Span<UInt8>) -> [UInt8] {
        bytes.withUnsafeBufferPointer { Array($0) }
    }
}
