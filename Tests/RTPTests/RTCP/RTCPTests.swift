import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite struct RTCPTests {
    // aiortc tests/rtcp_*.bin
    static let receiverReport = bytes("81c9000730b68407479437af0000000000000276000007720000000000000000")
    static let sourceDescription = bytes(
        "81ca000c6d2453ea01267b36336634353965612d343166652d343437342d396433332d3937303763396565373964317d00000000"
    )
    static let goodbye = bytes("81cb0001ae528b43")

    private func packets(_ bytes: [UInt8], allowsReducedSize: Bool = false) throws -> [RTCPCompound.Packet] {
        var compound = try RTCPCompound(parsing: bytes.span, allowsReducedSize: allowsReducedSize)
        var result: [RTCPCompound.Packet] = []
        while let packet = compound.next(in: bytes.span) { result.append(packet) }
        return result
    }

    @Test func `a compound is read in order`() throws {
        let datagram = Self.receiverReport + Self.sourceDescription + Self.goodbye
        let read = try packets(datagram)
        guard read.count == 3, case .receiverReport(let report) = read[0],
            case .sourceDescription(let description) = read[1], case .goodbye(let goodbye) = read[2]
        else {
            Issue.record("\(read)")
            return
        }
        #expect(report.ssrc == 817_267_719)
        let found = report.blocks.block(about: 1_200_895_919, in: datagram.span)
        let block = try #require(found)
        #expect(block.fractionLost == 0 && block.cumulativeLost == 0)
        #expect(block.extendedHighestSequence == 630 && block.jitter == 1906)
        #expect(report.blocks.block(1, in: datagram.span) == nil)
        #expect(description.chunkCount == 1)
        #expect(goodbye.sourceCount == 1 && goodbye.source(0, in: datagram.span) == 2_924_645_187)
    }

    @Test(arguments: [
        ("81cb0001ae528b43", RTPError.Code.invalidFirstPacket),
        ("80c90002 00000001", .invalidLength),
        ("40c90001 00000001", .unsupportedVersion),
        ("80c90001 00000001 80", .truncated),
        ("80c90001 00000001 41ca0000", .unsupportedVersion),
        ("a0c90002 00000001 00000004 80c90001 00000001", .invalidPadding),
        ("a0c90002 00000001 00000003", .invalidPadding),
        ("a0c90001 000000ff", .invalidPadding),
        ("", .truncated),
    ]) func `a compound that breaks the rules is refused`(text: String, code: RTPError.Code) {
        let error = #expect(throws: RTPError.self) { try RTCPCompound(parsing: bytes(text).span) }
        #expect(error?.code == code)
    }

    @Test(arguments: ["81c90001ae528b43", "81cb0000", "91cb0001ae528b43", "81ca00009000001b", "81ca0001 00000001"])
    func `a packet with a broken body is left out and counted`(text: String) throws {
        let datagram = bytes("80c90001 00000001") + bytes(text)
        guard var compound = try? RTCPCompound(parsing: datagram.span) else { return }
        var count = 0
        while compound.next(in: datagram.span) != nil { count += 1 }
        #expect(count == 1 && compound.malformedCount == 1)
    }

    @Test func `feedback and unknown packets are skipped`() throws {
        // aiortc tests/rtcp_psfb_pli.bin
        let read = try packets(Self.receiverReport + bytes("81ce00025450626523013fb9"))
        guard read.count == 2, case .other(let header) = read[1] else {
            Issue.record("\(read)")
            return
        }
        #expect(header.packetType == 206 && header.packetByteCount == 12)
    }

    @Test func `what is written is read again`() throws {
        var storage = [UInt8](repeating: 0xEE, count: 400)
        let block = RTCPReportBlock(
            ssrc: 5,
            fractionLost: 200,
            cumulativeLost: -3,
            extendedHighestSequence: 0x1_0005,
            jitter: 17,
            lastSenderReport: 0xAABB_CCDD,
            delaySinceLastSenderReport: 65536
        )
        let report = RTCPSenderReport(
            ssrc: 1,
            ntpTimestamp: NTPTimestamp(rawValue: 0x0102_0304_0506_0708),
            rtpTimestamp: 9,
            packetCount: 10,
            octetCount: 11
        )
        let name = Array("a@b".utf8)
        var target = storage.mutableSpan
        var count = report.serialize(with: block, into: &target)
        count += RTCPSourceDescription.serialize(ssrc: 1, canonicalName: name.span, into: &target, at: count)
        count += RTCPGoodbye.serialize(ssrc: 1, into: &target, at: count)
        let datagram = Array(storage.prefix(count))
        // Laid out by hand after RFC 3550, sections 6.4.1, 6.5 and 6.6.
        #expect(
            datagram
                == bytes(
                    """
                    81c8000c 00000001 01020304 05060708 00000009 0000000a 0000000b
                    00000005 c8fffffd 00010005 00000011 aabbccdd 00010000
                    81ca0003 00000001 01036140 62000000 81cb0001 00000001
                    """
                )
        )
        let read = try packets(datagram)
        guard case .senderReport(let again) = read[0] else {
            Issue.record("\(read)")
            return
        }
        #expect(again.blocks.block(0, in: datagram.span) == block)
        #expect(again.ntpTimestamp.compact == 0x0304_0506)
    }

    @Test(arguments: 0...9) func `names of every length end with a zero byte on a word`(length: Int) throws {
        var storage = [UInt8](repeating: 0xEE, count: 64)
        var target = storage.mutableSpan
        let name = [UInt8](repeating: 0x61, count: length)
        let count = RTCPSourceDescription.serialize(ssrc: 1, canonicalName: name.span, into: &target)
        #expect(count % 4 == 0 && storage[count - 1] == 0 && storage[count] == 0xEE)
        let description = try RTCPSourceDescription(parsing: storage.span)
        #expect(description.chunkCount == 1 && Int(storage[9]) == length)
    }

    @Test func `wall-clock time counts from 1900`() {
        #expect(NTPTimestamp(unixNanoseconds: 0).rawValue == 0x83AA_7E80_0000_0000)
        #expect(NTPTimestamp(unixNanoseconds: 1_500_000_000).rawValue == 0x83AA_7E81_8000_0000)
        #expect(NTPTimestamp(unixNanoseconds: -500_000_000).rawValue == 0x83AA_7E7F_8000_0000)
    }

    @Test func `no bytes trap`() {
        let whole = Self.receiverReport + Self.sourceDescription + Self.goodbye
        for valid in [whole, Self.sourceDescription, Self.goodbye, bytes("82cb0003 00000001 00000002 03616263")] {
            forEachSpoiling(of: valid) { read($0) }
        }
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: ["crash-rtcp", "webrtc-rtcp", "pion-rtcp-fuzz", "pjsip-fuzz/rtcp", "aiortc"]
    )
    func `corpora of crashes do not trap`(folder: String) throws {
        for file in try CorpusFiles.contents(of: folder) {
            for count in 0...file.bytes.count { read(file.bytes.span.extracting(first: count)) }
        }
    }

    private func read(_ bytes: Span<UInt8>) {
        guard var compound = try? RTCPCompound(parsing: bytes, allowsReducedSize: true) else { return }
        while let packet = compound.next(in: bytes) {
            switch packet {
            case .senderReport(let report): _ = report.blocks.block(about: 1, in: bytes)
            case .receiverReport(let report): _ = report.blocks.block(about: 1, in: bytes)
            case .sourceDescription(let description): #expect(description.chunkCount < 32)
            case .goodbye(let goodbye): _ = goodbye.contains(0, in: bytes)
            case .extendedReport(var report):
                while let block = report.next(in: bytes) {
                    if case .receiverReportDelays(let delays) = block { _ = delays.delay(about: 1, in: bytes) }
                }
            case .other(let header): #expect(header.packetByteCount <= bytes.count)
            }
        }
    }
}
