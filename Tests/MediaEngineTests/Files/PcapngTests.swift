import Foundation
@testable import MediaEngine
@testable import RTP
import TestSupport
import Testing

/// Captures of the newer kind, laid out by hand after draft-ietf-opsawg-pcapng, and one that dumpcap wrote.
@Suite struct PcapngTests {
    /// Writes blocks in one byte order.
    private struct Layout {
        let isLittleEndian: Bool
        private(set) var bytes: [UInt8] = []

        init(isLittleEndian: Bool) {
            self.isLittleEndian = isLittleEndian
        }

        func word(_ value: UInt32) -> [UInt8] {
            withUnsafeBytes(of: isLittleEndian ? value.littleEndian : value.bigEndian) { Array($0) }
        }

        func half(_ value: UInt16) -> [UInt8] {
            withUnsafeBytes(of: isLittleEndian ? value.littleEndian : value.bigEndian) { Array($0) }
        }

        mutating func block(_ type: UInt32, _ body: [UInt8]) {
            let padded = body + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
            let length = word(UInt32(padded.count + 12))
            bytes += word(type) + length + padded + length
        }

        mutating func section() {
            block(0x0A0D_0D0A, word(0x1A2B_3C4D) + half(1) + half(0) + word(.max) + word(.max))
        }

        mutating func interface(_ linkType: UInt16, snapLength: UInt32 = 0, options: [UInt8] = []) {
            block(1, half(linkType) + half(0) + word(snapLength) + options)
        }

        func option(_ code: UInt16, _ value: [UInt8]) -> [UInt8] {
            half(code) + half(UInt16(value.count)) + value + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
        }

        mutating func packet(_ interface: UInt32, ticks: UInt64, _ packet: [UInt8]) {
            let time = word(UInt32(ticks >> 32)) + word(UInt32(truncatingIfNeeded: ticks))
            block(6, word(interface) + time + word(UInt32(packet.count)) + word(UInt32(packet.count)) + packet)
        }
    }

    /// IPv4 and UDP, from 127.0.0.1:5000 to 127.0.0.2:6000, with two bytes.
    private static let raw = bytes("4500001e 00000000 4011 0000 7f000001 7f000002 1388 1770 000a 0000 abcd")

    private static func datagrams(_ file: [UInt8]) throws -> ([CapturedDatagram], PcapReader) {
        var reader = try PcapReader(bytes: file)
        var found: [CapturedDatagram] = []
        while let datagram = reader.next() { found.append(datagram) }
        return (found, reader)
    }

    @Test(arguments: [true, false]) func `either byte order is read`(isLittleEndian: Bool) throws {
        var layout = Layout(isLittleEndian: isLittleEndian)
        layout.section()
        layout.interface(101)
        layout.packet(0, ticks: 1_700_000_000_000_123, Self.raw)
        // Name resolution, and a type that nobody knows.
        layout.block(4, layout.word(0))
        layout.block(0x8000_1234, [1, 2, 3])
        layout.packet(0, ticks: 1_700_000_000_020_123, Self.raw)
        let (found, reader) = try Self.datagrams(layout.bytes)
        #expect(found.map(\.payload) == [[0xAB, 0xCD], [0xAB, 0xCD]])
        #expect(found.first?.source == SocketAddress(ipv4: 0x7F00_0001, port: 5000))
        #expect(found.map(\.unixNanoseconds) == [1_700_000_000_000_123_000, 1_700_000_000_020_123_000])
        #expect(reader.damage == nil && reader.skippedCount == 0)
    }

    // Resolution, ticks, nanoseconds: powers of 10, powers of 2, and a time that no 64 bits hold.
    @Test(
        arguments: [
            (6, 1_000_001, 1_000_001_000), (9, 5, 5), (0, 7, 7_000_000_000), (3, 20, 20_000_000), (12, 1_500_000, 1500),
            (127, 9, 0), (0x80, 3, 3_000_000_000), (0x8A, 1024, 1_000_000_000), (0xA0, 1 << 33, 2_000_000_000),
            (0xFF, UInt64.max, 0), (0, UInt64.max, Int64.max),
        ] as [(UInt8, UInt64, Int64)]
    )
    func `time counts in the interface's unit`(resolution: UInt8, ticks: UInt64, nanoseconds: Int64) throws {
        var layout = Layout(isLittleEndian: true)
        layout.section()
        // A comment stands before it, with a length that is no multiple of four.
        layout.interface(101, options: layout.option(1, [0x61]) + layout.option(9, [resolution]) + layout.option(0, []))
        layout.packet(0, ticks: ticks, Self.raw)
        #expect(try Self.datagrams(layout.bytes).0.map(\.unixNanoseconds) == [nanoseconds])
    }

    @Test(arguments: [true, false]) func `an interface's time may have an offset`(isLittleEndian: Bool) throws {
        var layout = Layout(isLittleEndian: isLittleEndian)
        let tenSeconds: UInt64 = 10
        let offset = withUnsafeBytes(of: isLittleEndian ? tenSeconds.littleEndian : tenSeconds.bigEndian) { Array($0) }
        layout.section()
        layout.interface(101, options: layout.option(14, offset))
        layout.packet(0, ticks: 1_000_000, Self.raw)
        #expect(try Self.datagrams(layout.bytes).0.map(\.unixNanoseconds) == [11_000_000_000])
    }

    @Test func `interfaces are told apart, and end with their section`() throws {
        var layout = Layout(isLittleEndian: true)
        layout.section()
        layout.interface(105)
        layout.interface(1)
        layout.packet(0, ticks: 0, Self.raw)
        layout.packet(1, ticks: 0, bytes("000000000000 000000000000 0800") + Self.raw)
        layout.section()
        layout.interface(101)
        layout.packet(0, ticks: 0, Self.raw)
        let (found, reader) = try Self.datagrams(layout.bytes)
        #expect(found.count == 2 && reader.skippedCount == 1 && reader.unreadLinkTypes == [105])

        layout.section()
        layout.packet(0, ticks: 0, Self.raw)
        let (_, cut) = try Self.datagrams(layout.bytes)
        #expect(cut.damage?.contains("interface 0, which is not described") == true)
    }

    @Test func `a section may have the other byte order`() throws {
        var first = Layout(isLittleEndian: true)
        var second = Layout(isLittleEndian: false)
        for ticks in [1, 2] as [UInt64] {
            first.section()
            first.interface(101)
            first.packet(0, ticks: ticks, Self.raw)
            second.section()
            second.interface(101)
            second.packet(0, ticks: ticks, Self.raw)
        }
        #expect(try Self.datagrams(first.bytes + second.bytes).0.map(\.unixNanoseconds) == [1000, 2000, 1000, 2000])
    }

    @Test func `simple packets count as captured with the one before`() throws {
        var layout = Layout(isLittleEndian: true)
        layout.section()
        layout.interface(101, snapLength: 30)
        layout.packet(0, ticks: 7, Self.raw)
        // The original was longer than what the interface keeps.
        layout.block(3, layout.word(900) + Self.raw)
        layout.block(3, layout.word(UInt32(Self.raw.count)) + Self.raw)
        let (found, reader) = try Self.datagrams(layout.bytes)
        #expect(found.map(\.unixNanoseconds) == [7000, 7000, 7000] && reader.untimedCount == 2)
    }

    @Test func `what is wrong is said with its place`() throws {
        var whole = Layout(isLittleEndian: true)
        whole.section()
        let start = whole.bytes.count
        whole.interface(101)
        let header = whole.bytes
        func damage(_ block: String) throws -> String { try Self.datagrams(header + bytes(block)).1.damage ?? "" }
        #expect(start == 28 && header.count == 48)
        #expect(try damage("0600").contains("ends in the header of the block at byte 48"))
        #expect(try damage("06000000 03000000 00000000").contains("block at byte 48 says that it has 3 bytes"))
        #expect(try damage("06000000 fcffffff 00000000").contains("which none can have"))
        #expect(try damage("06000000 40000000 00000000").contains("has 64 bytes, of which 12 are there"))
        #expect(try damage("06000000 0c000000 10000000").contains("another length at its end"))
        #expect(try damage("06000000 10000000 00000000 10000000").contains("packet at byte 48 ends in its header"))
        #expect(
            try damage("06000000 20000000 00000000 00000000 00000000 01000000 01000000 20000000")
                .contains("packet at byte 48 says 1 bytes")
        )
        #expect(try damage("03000000 0c000000 0c000000").contains("simple packet at byte 48"))
        #expect(try damage("01000000 0c000000 0c000000").contains("interface description at byte 48"))
        #expect(
            try damage("0a0d0d0a 1c000000 00000000 01000000 ffffffff ffffffff 1c000000").contains("no byte order")
        )
        #expect(
            try damage("0a0d0d0a 1c000000 4d3c2b1a 02000000 ffffffff ffffffff 1c000000").contains("version 2")
        )
    }

    @Test(arguments: [true, false]) func `no bytes trap`(isLittleEndian: Bool) throws {
        var layout = Layout(isLittleEndian: isLittleEndian)
        layout.section()
        layout.interface(1, options: layout.option(9, [0x8A]) + layout.option(14, [UInt8](repeating: 0xFF, count: 8)))
        layout.interface(101, snapLength: 4)
        layout.packet(1, ticks: .max, Self.raw)
        layout.block(3, layout.word(30) + Self.raw)
        forEachSpoiling(of: layout.bytes) { span in
            guard let reader = try? PcapReader(bytes: (0..<span.count).map { span[$0] }) else { return }
            for datagram in reader { #expect(datagram.unixNanoseconds >= 0) }
        }
    }

    // Written by dumpcap 1.10.6; the figures are tcpdump's.
    @Test(.enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"))
    func `a capture of dumpcap is read`() throws {
        let path = CorpusFiles.fetched.appendingPathComponent("asterisk-testsuite/16_bit_48khz_60_fec_rtp.pcapng").path
        var reader = try PcapReader(path: path)
        var found: [CapturedDatagram] = []
        while let datagram = reader.next() { found.append(datagram) }
        #expect(found.count == 3000 && reader.skippedCount == 0 && reader.damage == nil)
        #expect(found.first?.unixNanoseconds == 1_482_167_074_843_890_000)
        #expect(found.last?.unixNanoseconds == 1_482_167_134_826_912_000)
        #expect(found.allSatisfy { $0.source.port == 12668 && $0.destination.port == 16596 })
        #expect(found.last?.payload.count == 65)
    }
}
