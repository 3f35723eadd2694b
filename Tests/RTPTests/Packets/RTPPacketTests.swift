import CallBasics
@testable import RTP
import TestSupport
import Testing

@Suite struct RTPPacketTests {
    /// aiortc tests/rtp_with_sdes_mid.bin: an extension of one word, profile 0xBEDE.
    static let withExtension = bytes("90ef374c4f1ba1adf3753f70bede0001900030000078800a6dc705f7")

    @Test func `the fixed header is read`() throws {
        // aiortc tests/rtp_dtmf.bin
        let packet = bytes("80e55e58efb0f6bca6a144f2018a03c0")
        let parsed = try RTPPacket(parsing: packet.span)
        #expect(parsed.header.isMarked)
        #expect(parsed.header.payloadType == 101)
        #expect(parsed.header.sequenceNumber == 24152)
        #expect(parsed.header.timestamp == 4_021_352_124)
        #expect(parsed.header.ssrc == 2_795_586_802)
        #expect(parsed.payloadRange == 12..<16)
        #expect(parsed.payload(in: packet.span)[0] == 1)
    }

    @Test func `the extension is skipped`() throws {
        let parsed = try RTPPacket(parsing: Self.withExtension.span)
        #expect(parsed.hasExtension && parsed.extensionProfile == 0xBEDE)
        #expect(parsed.extensionOffset == 16 && parsed.extensionByteCount == 4)
        #expect(parsed.payloadRange == 20..<28)
    }

    @Test func `contributing sources are counted and skipped`() throws {
        let packet = bytes("8208 0001 00000002 00000003 0000000a 0000000b ff")
        let parsed = try RTPPacket(parsing: packet.span)
        #expect(parsed.contributingSourceCount == 2)
        #expect(parsed.payloadRange == 20..<21)
    }

    @Test(arguments: [
        ("80", RTPError.Code.truncated),
        ("40000001 00000002 00000003", .unsupportedVersion),
        ("8f000001 00000002 00000003 00000004", .truncated),
        ("90000001 00000002 00000003 bede", .truncated),
        ("90000001 00000002 00000003 bede0002 00000000", .truncated),
        ("a0000001 00000002 00000003", .invalidPadding),
        ("a0000001 00000002 00000003 00", .invalidPadding),
        ("a0000001 00000002 00000003 ff03", .invalidPadding),
    ]) func `a defect is named`(text: String, code: RTPError.Code) {
        let error = #expect(throws: RTPError.self) { try RTPPacket(parsing: bytes(text).span) }
        #expect(error?.code == code)
        #expect(error.map { $0.description.count > 20 } == true)
    }

    @Test func `padding is cut off, and may be all there is`() throws {
        let some = try RTPPacket(parsing: bytes("a0000001 00000002 00000003 aa 0002").span)
        #expect(some.payloadByteCount == 1 && some.paddingByteCount == 2)
        let all = try RTPPacket(parsing: bytes("a0000001 00000002 00000003 0002").span)
        #expect(all.payloadByteCount == 0)
    }

    @Test func `what is written is read again`() throws {
        let header = RTPHeader(
            isMarked: true,
            payloadType: 96,
            sequenceNumber: 65535,
            timestamp: .max,
            ssrc: 0xDEAD_BEEF
        )
        var storage = [UInt8](repeating: 0, count: 32)
        let payload: [UInt8] = [1, 2, 3]
        var target = storage.mutableSpan
        let byteCount = header.serialize(with: payload.span, into: &target)
        #expect(byteCount == 15)
        #expect(Array(storage.prefix(12)) == bytes("80e0ffff ffffffff deadbeef"))
        let parsed = try RTPPacket(parsing: storage.span.extracting(0..<byteCount))
        #expect(parsed.header == header && parsed.payloadByteCount == 3)
    }

    @Test func `a buffer that is too short is left alone`() {
        var storage = [UInt8](repeating: 7, count: 11)
        var target = storage.mutableSpan
        let header = RTPHeader(payloadType: 0, sequenceNumber: 0, timestamp: 0, ssrc: 0)
        #expect(header.serialize(into: &target) == 0)
        #expect(storage.allSatisfy { $0 == 7 })
    }

    @Test func `no bytes trap, and every part lies inside them`() {
        for valid in [
            Self.withExtension, bytes("af000001 00000002 00000003"), bytes("a0000001 00000002 00000003 0102"),
        ] {
            forEachSpoiling(of: valid) { check($0) }
        }
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: ["crash-rtp", "webrtc-rtp", "pjsip-fuzz/rtp", "aiortc"]
    )
    func `corpora of crashes do not trap`(folder: String) throws {
        for file in try CorpusFiles.contents(of: folder) {
            check(file.bytes.span)
            for count in 0..<min(file.bytes.count, 256) { check(file.bytes.span.extracting(first: count)) }
        }
    }

    @Test func `RTP, RTCP, STUN and DTLS are told apart`() {
        #expect(DatagramKind(of: bytes("8000").span) == .rtp)
        #expect(DatagramKind(of: bytes("80e0").span) == .rtp)  // marker, payload type 96
        #expect(DatagramKind(of: bytes("80c8").span) == .rtcp)
        #expect(DatagramKind(of: bytes("81df").span) == .rtcp)
        #expect(DatagramKind(of: bytes("80bf").span) == .rtp)
        #expect(DatagramKind(of: bytes("0001").span) == .stun)
        #expect(DatagramKind(of: bytes("16fe").span) == .dtls)
        #expect(DatagramKind(of: bytes("80").span) == .unknown)
        #expect(DatagramKind(of: bytes("4000").span) == .unknown)
    }

    private func check(_ bytes: Span<UInt8>) {
        guard let packet = try? RTPPacket(parsing: bytes) else { return }
        #expect(packet.payloadRange.upperBound + packet.paddingByteCount == bytes.count)
        #expect(packet.payload(in: bytes).count == packet.payloadByteCount)
        #expect(packet.extensionOffset + packet.extensionByteCount <= bytes.count)
    }
}
