import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// Messages of TURN in a stream of bytes.
@Suite(.tags(.rfc)) struct TURNStreamTests {
    private static let messages: [[UInt8]] = {
        let transaction = STUNMessage.Transaction(high: 1, low: 2)
        var writer = STUNWriter(.request, .allocate, transaction)
        writer.append(.requestedTransport, [17, 0, 0, 0])
        let request = writer.finish(withFingerprint: false)
        return [request] + (0...9).map { ChannelData.wrapped([UInt8](repeating: 7, count: $0), 0x4001) } + [request]
    }()

    /// All that can be read of pieces.
    private static func read(_ pieces: [[UInt8]]) throws -> [[UInt8]] {
        var (stream, read): (TURNStream, [[UInt8]]) = (TURNStream(), [])
        for piece in pieces {
            stream.append(piece)
            while let message = try stream.next() { read.append(message) }
        }
        return read
    }

    @Test func `what is written is read, however it is cut`() throws {
        let bytes = try Self.messages.flatMap { try #require(TURNStream.framed($0)) }
        #expect(bytes.count % 4 == 0)
        for size in 1...bytes.count {
            let pieces = stride(from: 0, to: bytes.count, by: size).map {
                Array(bytes[$0..<min($0 + size, bytes.count)])
            }
            #expect(try Self.read(pieces) == Self.messages, "pieces of \(size)")
        }
    }

    @Test func `channel data is padded to whole words, and read without that`() {
        #expect(TURNStream.framed([0x40, 1, 0, 1, 9]) == [0x40, 1, 0, 1, 9, 0, 0, 0])
        #expect(TURNStream.framed([0x40, 1, 0, 4, 9, 9, 9, 9]) == [0x40, 1, 0, 4, 9, 9, 9, 9])
    }

    @Test(
        arguments: [
            [], [0x40], [0x40, 1, 0], [0x40, 1, 0, 2, 9], [0x40, 1, 0, 0, 9], [0, 1, 0, 0], [0x80, 0, 0, 0],
            [0x50, 0, 0, 0],
        ] as [[UInt8]]
    )
    func `what is no whole message is not written`(_ bytes: [UInt8]) {
        #expect(TURNStream.framed(bytes) == nil)
    }

    @Test(
        arguments: [
            [0x80, 0, 0, 0], [0x50, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0, 1, 0, 3], [0, 1, 0xFF, 0xFC],
            [0x40, 0, 0xFF, 0xF0],
        ] as [[UInt8]]
    )
    func `what begins no message, or one that is too long for a datagram, ends the stream`(_ bytes: [UInt8]) {
        #expect(throws: TURNError.malformed) { try Self.read([bytes]) }
        #expect(throws: TURNError.malformed) { try Self.read([Self.messages[1], bytes]) }
    }
}
