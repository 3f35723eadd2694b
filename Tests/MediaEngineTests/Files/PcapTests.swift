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
        let (path, bytes) = try Self.written { writer in
            let drained = try tap.drain(into: writer)
            #expect(drained == accepted)
            let isRecorded = tap.record([77].span, from: Self.two, to: Self.one, at: .zero)
            let again = try tap.drain(into: writer)
            #expect(isRecorded && again == 1)
        }
        defer { try? FileManager.default.removeItem(atPath: path) }
        let payloads = try PcapReader(bytes: bytes).map(\.payload)
        #expect(payloads.dropLast().map(\.first) == (0..<accepted).map { UInt8($0) })
        #expect(payloads.last == [77])
    }

    @Test func `a path that cannot be written is refused with the remedy`() {
        let error = #expect(throws: PcapError.self) {
            try PcapWriter(path: "/nonexistent/x.pcap", unixNanosecondsAtZero: 0)
        }
        #expect(error?.code == .system && error?.message.contains("/nonexistent/x.pcap") == true)
    }

    @Test func `other files are refused by name`() {
        #expect(throws: PcapError.self) { try PcapReader(bytes: []) }
        let pcapng = #expect(throws: PcapError.self) { try PcapReader(bytes: bytes("0a0d0d0a 48000000 4d3c2b1a")) }
        #expect(pcapng?.code == .nextGeneration)
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
