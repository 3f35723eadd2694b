import Foundation
@testable import MediaEngine
@testable import RTP
import TestSupport
import Testing

@Suite struct PcapTests {
    static let one = SocketAddress(ipv4: 0x7F00_0001, port: 5004)
    static let two = SocketAddress(ipv4: 0xC0A8_0102, port: 6000)
    static let three = SocketAddress(ipv6High: 0x2001_0DB8_0000_0000, low: 1, port: 7000)

    private static func temporaryPath() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("media-engine-\(UUID().uuidString).pcap").path
    }

    /// A capture with what `body` writes, and its bytes.
    static func written(_ body: (PcapWriter) throws -> Void) throws -> (path: String, bytes: [UInt8]) {
        let path = temporaryPath()
        let writer = try PcapWriter(path: path, unixNanosecondsAtZero: 1_700_000_000_000_000_000)
        try body(writer)
        try writer.close()
        return (path, [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
    }

    @Test func `what is written is read again`() throws {
        let (path, _) = try Self.written { writer in
            try writer.write([1, 2, 3].span, from: Self.one, to: Self.two, at: MediaTime(nanoseconds: 5_000_000))
            try writer.write([UInt8]().span, from: Self.three, to: Self.three, at: .zero)
            try writer.write([9].span, from: Self.one, to: Self.three, at: .zero)
            try writer.write([UInt8](repeating: 0, count: 65_508).span, from: Self.one, to: Self.two, at: .zero)
            #expect(writer.recordCount == 3 && writer.oversizeCount == 1)
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        var reader = try PcapReader(path: path)
        let datagrams = Array(reader)
        #expect(datagrams.map(\.payload) == [[1, 2, 3], [], [9]])
        #expect(datagrams[0].source == Self.one && datagrams[0].destination == Self.two)
        #expect(datagrams[0].unixNanoseconds == 1_700_000_000_005_000_000)
        #expect(datagrams[1].source == Self.three && datagrams[2].source == Self.one)
        while reader.next() != nil {}
        #expect(reader.skippedCount == 0 && !reader.isCutShort)
    }

    @Test func `the tap carries datagrams in order and counts what does not fit`() throws {
        let tap = PacketTap(capacity: 1024)
        var accepted = 0
        for index in 0..<20 {
            let payload = [UInt8](repeating: UInt8(index), count: 100)
            if tap.record(payload.span, from: Self.one, to: Self.two, at: MediaTime(nanoseconds: Int64(index))) {
                accepted += 1
            }
        }
        #expect(accepted > 3 && accepted < 20 && tap.droppedCount == 20 - accepted)
        var order = CaptureOrder()
        let drained = tap.drain(into: &order)
        let isRecorded = tap.record([77].span, from: Self.two, to: Self.one, at: MediaTime(nanoseconds: 100))
        let again = tap.drain(into: &order)
        #expect(drained == accepted && isRecorded && again == 1)
        let taken = order.take(at: .zero, all: true)
        #expect(taken.dropLast().map(\.bytes.first) == (0..<accepted).map { UInt8($0) })
        #expect(taken.allSatisfy { $0.bytes.count == ($0.bytes == [77] ? 1 : 100) })
        #expect(taken.last?.bytes == [77] && taken.last?.source == Self.two && taken.last?.destination == Self.one)
        #expect(taken.first?.source == Self.one && taken.first?.time == .zero)
    }

    @Test func `a path that cannot be written is refused with the remedy`() {
        let error = #expect(throws: PcapError.self) {
            try PcapWriter(path: "/nonexistent/x.pcap", unixNanosecondsAtZero: 0)
        }
        #expect(error?.code == .system && error?.message.contains("/nonexistent/x.pcap") == true)
    }

    @Test func `other files are refused by name`() {
        #expect(throws: PcapError.self) { try PcapReader(bytes: []) }
        let text = #expect(throws: PcapError.self) { try PcapReader(bytes: Array("no capture".utf8)) }
        #expect(text?.code == .notACapture)
        let usb = bytes("d4c3b2a1 02000400 00000000 00000000 ffff0000 dc000000")
        let error = #expect(throws: PcapError.self) { try PcapReader(bytes: usb) }
        #expect(error?.code == .unsupportedLinkType)
    }

    @Test(arguments: [
        // Ethernet with a VLAN tag, big-endian file, microseconds
        ("a1b2c3d4 00020004 00000000 00000000 0000ffff 00000001", "000000000000 000000000000 8100 0001 0800", true),
        ("d4c3b2a1 02000400 00000000 00000000 ffff0000 00000000", "02000000", false),
        ("4d3cb2a1 02000400 00000000 00000000 ffff0000 71000000", "0000 0001 0006 000000000000 0000 0800", false),
        (
            "d4c3b2a1 02000400 00000000 00000000 ffff0000 14010000", "0800 0000 00000001 0001 00 06 0000000000000000",
            false
        ),
        ("d4c3b2a1 02000400 00000000 00000000 ffff0000 65000000", "", false),
    ]) func `every link type gives the same datagram`(header: String, link: String, isBigEndian: Bool) throws {
        let packet = bytes(link) + bytes("4500001e 00000000 4011 0000 7f000001 7f000002 1388 1770 000a 0000 abcd")
        let count = withUnsafeBytes(of: isBigEndian ? UInt32(packet.count).bigEndian : UInt32(packet.count)) {
            Array($0)
        }
        let file = bytes(header) + bytes("00000000 00000000") + count + count + packet
        let datagrams = try PcapReader(bytes: file).map { $0 }
        #expect(datagrams.count == 1)
        #expect(datagrams.first?.payload == [0xAB, 0xCD])
        #expect(datagrams.first?.source == SocketAddress(ipv4: 0x7F00_0001, port: 5000))
    }

    @Test func `where a file is damaged is said`() throws {
        let header = "d4c3b2a1 02000400 00000000 00000000 ffff0000 65000000"
        for (record, text) in [
            ("00000000 00000000", "header of the record at byte 24"),
            ("00000000 00000000 ffffff0f ffffff0f 00", "byte 24 says that it has 268435455 bytes"),
            ("00000000 00000000 1e000000 1e000000 4500", "byte 24 has 30 bytes, of which 2 are there"),
        ] {
            var reader = try PcapReader(bytes: bytes(header + record))
            let datagram = reader.next()
            #expect(datagram == nil && reader.isCutShort)
            #expect(reader.damage?.contains(text) == true, "\(reader.damage ?? "")")
        }
    }

    @Test func `TCP and fragments are told apart from UDP`() throws {
        func segment(_ payload: String) -> [UInt8] {
            let tcp = bytes("9c40 13c4 00000001 00000001 5018 0200 0000 0000") + Array(payload.utf8)
            let ip = bytes("4500 0000 0000 4000 4006 0000 7f000001 7f000002")
            return ip + tcp
        }
        let fragment = bytes("4500001e 0000 2000 4011 0000 7f000001 7f000002 1388 1770 000a 0000 abcd")
        let packets = [
            segment(""), segment("SIP/2.0 200 OK\r\n"), segment("INVITE sip:bob@example.com SIP/2.0\r\nVia: x\r\n"),
            segment("GET / HTTP/1.1\r\nX: SIP/2.0\r\n"), fragment, [0x45],
        ]
        var file = bytes("a1b2c3d4 00020004 00000000 00000000 0000ffff 00000065")
        for packet in packets {
            file += bytes("00000000 00000000 000000") + [UInt8(packet.count)]
            file += bytes("000000") + [UInt8(packet.count)] + packet
        }
        var reader = try PcapReader(bytes: file)
        while reader.next() != nil { Issue.record("a packet that is no datagram was taken for one") }
        #expect(reader.skippedCount == 6 && reader.tcpCount == 4 && reader.sipOverTCPCount == 2)
        #expect(reader.fragmentCount == 1 && !reader.isCutShort)
    }

    @Test func `no bytes trap`() throws {
        let (path, valid) = try Self.written { writer in
            try writer.write([1, 2, 3].span, from: Self.one, to: Self.two, at: .zero)
            try writer.write([4].span, from: Self.three, to: Self.three, at: .zero)
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        for link in [0, 1, 101, 113] as [UInt8] {
            var file = valid
            file[20] = link
            forEachSpoiling(of: file) { span in
                guard let reader = try? PcapReader(bytes: (0..<span.count).map { span[$0] }) else { return }
                for _ in reader {}
            }
        }
    }

    // The digits stand in the files' names; SIPp's samples and a call of the Asterisk test suite.
    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: [
            ("sipp-pcap/dtmf_2833_0.pcap", "0"), ("sipp-pcap/dtmf_2833_1.pcap", "1"),
            ("sipp-pcap/dtmf_2833_2.pcap", "2"),
            ("sipp-pcap/dtmf_2833_5.pcap", "5"), ("sipp-pcap/dtmf_2833_6.pcap", "6"),
            ("sipp-pcap/dtmf_2833_7.pcap", "7"),
            ("sipp-pcap/dtmf_2833_pound.pcap", "#"), ("sipp-pcap/dtmf_2833_star.pcap", "*"),
            ("asterisk-testsuite/ulaw-2013785496.pcap", "2013785496"),
            ("asterisk-testsuite/opus-2013785496.pcap", "2013785496"),
        ]
    ) func `captured digits are those of the file's name`(file: String, digits: String) throws {
        let reader = try PcapReader(path: CorpusFiles.fetched.appendingPathComponent(file).path)
        var receivers: [UInt32: Keys] = [:]
        var found: [UInt32: String] = [:]
        for datagram in reader {
            guard let packet = try? RTPPacket(parsing: datagram.payload.span), packet.payloadByteCount == 4,
                packet.header.payloadType >= 96
            else { continue }
            let ssrc = packet.header.ssrc
            let keys = receivers[ssrc] ?? Keys()
            receivers[ssrc] = keys
            keys.receiver.receive(
                packet.header,
                payload: packet.payload(in: datagram.payload.span),
                clockRate: 8000,
                arrival: MediaTime(nanoseconds: datagram.unixNanoseconds)
            )
            while let report = keys.receiver.next() {
                guard report.kind == .started, let key = TelephoneEvent.key(of: report.code) else { continue }
                found[ssrc, default: ""].append(key)
            }
        }
        #expect(found.values.contains(digits), "\(found)")
        #expect(found.values.allSatisfy { $0 == digits })
    }

    /// A receiver for each source.
    private final class Keys {
        var receiver = TelephoneEventReceiver()
    }

    // Counts of another implementation (sippy/rtpproxy, extractaudio): packets, lost, duplicates.
    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: [
            ("c1.a.rtp", 1192, 0, 0), ("dups.a.rtp", 383, 0, 1), ("lost.a.rtp", 244, 321, 0), ("lost.o.rtp", 246, 0, 0),
        ]
    ) func `loss and duplicates are those that another implementation found`(
        file: String,
        received: Int,
        lost: Int,
        duplicate: Int
    ) throws {
        let reader = try PcapReader(path: CorpusFiles.fetched.appendingPathComponent("rtpproxy/" + file).path)
        var statistics = ReceiverStatistics(probation: 1)
        for datagram in reader {
            guard let packet = try? RTPPacket(parsing: datagram.payload.span) else { continue }
            let arrival = MediaTime(nanoseconds: datagram.unixNanoseconds)
            _ = statistics.receive(packet.header, clockRate: 8000, arrival: arrival)
        }
        #expect(statistics.receivedCount == UInt64(received + duplicate))
        #expect(statistics.lostCount == UInt64(lost))
        #expect(statistics.duplicateCount == UInt64(duplicate))
    }
}
