import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite(.tags(.rfc)) struct REDPayloadTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let title: String
        let header: [UInt8]
        /// Payload type, timestamp offset and byte count of each redundant block.
        let blocks: [[Int]]
        let primaryType: UInt8
        let primaryByteCount: Int
        var testDescription: String { title }

        /// The header, then each block's content filled with its number.
        var bytes: [UInt8] {
            header + blocks.enumerated().flatMap { [UInt8](repeating: UInt8($0), count: $1[2]) }
                + [UInt8](repeating: 0xEE, count: primaryByteCount)
        }
    }

    static let rows = [
        // The fields of RFC 2198, section 4: DVI4 of 84 bytes, with LPC of 14 bytes 20 ms older.
        Row(
            title: "the RFC's example",
            header: [0x87, 0x02, 0x80, 0x0E, 0x05],
            blocks: [[7, 160, 14]],
            primaryType: 5,
            primaryByteCount: 84
        ),
        Row(title: "no redundant block", header: [0x60], blocks: [], primaryType: 96, primaryByteCount: 40),
        Row(
            title: "two generations of Opus",
            header: [0xE0, 0x1E, 0x00, 0x28, 0xE0, 0x0F, 0x00, 0x3C, 0x60],
            blocks: [[96, 1920, 40], [96, 960, 60]],
            primaryType: 96,
            primaryByteCount: 50
        ),
        Row(
            title: "the largest numbers",
            header: [0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            blocks: [[127, 16383, 1023]],
            primaryType: 127,
            primaryByteCount: 0
        ),
        Row(
            title: "empty blocks",
            header: [0x80, 0x00, 0x00, 0x00, 0x80, 0x00, 0x04, 0x00, 0x00],
            blocks: [[0, 0, 0], [0, 1, 0]],
            primaryType: 0,
            primaryByteCount: 0
        ),
    ]

    @Test(arguments: rows) func `blocks lie where their headers say`(row: Row) throws {
        let bytes = row.bytes
        let payload = try REDPayload(parsing: bytes.span)
        #expect(payload.redundantCount == row.blocks.count)
        for (index, expected) in row.blocks.enumerated() {
            let block = payload.redundant(index)
            #expect([Int(block.payloadType), Int(block.timestampOffset), block.byteCount] == expected)
            let content = block.content(in: bytes.span)
            #expect(content.count == expected[2])
            for position in content.indices { #expect(content[position] == UInt8(index)) }
        }
        #expect(payload.primary.payloadType == row.primaryType)
        let own = payload.primary.content(in: bytes.span)
        #expect(own.count == row.primaryByteCount)
        for position in own.indices { #expect(own[position] == 0xEE) }
    }

    @Test(arguments: rows) func `every truncation into headers and copies is refused`(row: Row) {
        let bytes = row.bytes
        let least = bytes.count - row.primaryByteCount
        for count in 0..<least {
            #expect(throws: RTPError.self) { try REDPayload(parsing: bytes.span.extracting(first: count)) }
        }
        for count in least...bytes.count {
            #expect(throws: Never.self) { try REDPayload(parsing: bytes.span.extracting(first: count)) }
        }
    }

    @Test func `nine redundant blocks are refused, eight are read`() throws {
        let empty: [UInt8] = [0x80, 0, 4, 0]
        let eight: [UInt8] = (0..<8).flatMap { _ in empty } + [0]
        #expect(try REDPayload(parsing: eight.span).redundantCount == 8)
        let nine = empty + eight
        let error = #expect(throws: RTPError.self) { try REDPayload(parsing: nine.span) }
        #expect(error?.code == .tooManyBlocks)
    }

    @Test func `random bytes never trap, and what is read lies inside them`() {
        var generator = SeededGenerator(seed: 2198)
        for _ in 0..<20_000 {
            let bytes = (0..<Int(generator.next() % 80)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            guard let payload = try? REDPayload(parsing: bytes.span) else { continue }
            var end = 0
            for index in 0..<payload.redundantCount {
                let block = payload.redundant(index)
                #expect(block.content(in: bytes.span).count == block.byteCount)
                end = block.offset + block.byteCount
            }
            #expect(payload.primary.offset >= end)
            #expect(payload.primary.offset + payload.primary.byteCount == bytes.count)
        }
    }
}
