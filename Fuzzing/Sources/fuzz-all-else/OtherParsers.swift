import FuzzDriver
import NIOCore

@testable import LocalMessaging
@testable import MediaEngine
@testable import SIP
@testable import SIPTransport

/// What is fuzzed of all that needs more than RTP, SDP and SIP.
@main enum OtherParsers {
    static let all: [FuzzedParser] = [
        ("wav", wav),
        ("pcap", pcap),
        ("message-frames", messageFrames),
        ("message-values", messageValues),
        ("dns-answer", dnsAnswer),
        ("stun", SecurityParsers.stun),
        ("turn-stream", SecurityParsers.turnStream),
        ("ice-agent", SecurityParsers.iceAgent),
        ("srtp", SecurityParsers.srtp),
        ("keying-lines", SecurityParsers.description),
        ("agent-messages", AgentParsers.messages),
    ]

    static func main() { fuzz(all) }

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

    /// Whatever comes is an answer of some kind, with no more records than bytes.
    private static func dnsAnswer(_ bytes: Span<UInt8>) {
        if case .records(let records) = DNSMessage.answer(in: array(bytes)) {
            precondition(records.count <= bytes.count)
        }
    }
}
