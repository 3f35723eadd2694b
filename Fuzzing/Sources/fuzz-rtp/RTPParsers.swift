import CallBasics
import FuzzDriver

@testable import RTP
@testable import SDP

/// What is fuzzed of packets and session descriptions.
@main enum RTPParsers {
    static let all: [FuzzedParser] = [
        ("rtp", rtp),
        ("rtcp", rtcp),
        ("extended-report", extendedReport),
        ("red", red),
        ("telephone-event", telephoneEvent),
        ("session-description", sessionDescription),
    ]

    static func main() { fuzz(all) }

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
}
