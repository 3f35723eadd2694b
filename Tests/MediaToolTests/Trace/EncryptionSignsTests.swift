import MediaEngine
import Testing

@testable import media_tool

/// What gives ciphertext away, and what does not.
@Suite struct EncryptionSignsTests {
    private func sign(_ capture: CaptureBuilder) throws -> EncryptionSigns.Sign? {
        let streams = capture.streams
        let survey = try #require(streams.surveys(capture.datagrams).first)
        return streams.encryption(of: try #require(streams.streams.first), survey)
    }

    private static let plain = "m=audio %d RTP/AVP 8\r\n"
    private static let key =
        "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:9sOd+W72ilwfNgNt0FzlGYj6YZPMqN1sJJx43UuS\r\n"
    private static let secured = "m=audio %d RTP/SAVP 8\r\n" + key
    private static let optional = "m=audio %d RTP/AVP 8\r\n" + key
    private static let dtls = "m=audio %d UDP/TLS/RTP/SAVPF 8\r\na=setup:actpass\r\n"

    // Who offers; who answers; whether that is encrypted.
    @Test(
        arguments: [
            (plain, plain, nil), (secured, secured, "RTP/SAVP with a=crypto"), (dtls, dtls, "UDP/TLS/RTP/SAVPF"),
            (optional, plain, nil), (optional, optional, "RTP/AVP with a=crypto"),
            (secured, nil, "RTP/SAVP with a=crypto"),
            (optional, nil, nil), (secured + plain, secured, "RTP/SAVP with a=crypto"), (secured + plain, plain, nil),
            (secured + plain, nil, nil), (plain, nil, nil),
        ] as [(String, String?, String?)]
    )
    func `session descriptions of both sides say it`(offer: String, answer: String?, expected: String?) throws {
        var capture = CaptureBuilder()
        capture.describe(offer.replacing("%d", with: "4000"))
        if let answer { capture.describe(answer.replacing("%d", with: "5000"), isBack: true) }
        // One octet for each unit of time, as it has to be.
        capture.stream(20, type: 8)
        #expect(try sign(capture) == expected.map { EncryptionSigns.Sign.description($0) })
    }

    @Test func `a host that was rewritten on the way is found by its port`() throws {
        var capture = CaptureBuilder()
        capture.describe(Self.secured.replacing("%d", with: "4000"), host: "192.168.7.7")
        // Longer than sound by no tag that is known.
        capture.stream(20, type: 8, byteCount: 167)
        let found = try #require(try sign(capture))
        #expect(found == .description("RTP/SAVP with a=crypto", isByPort: true))
        #expect(found.text == "RTP/SAVP with a=crypto in a session description, by its port")
    }

    @Test func `another call of the same port makes no sound encrypted`() throws {
        var capture = CaptureBuilder()
        capture.describe(Self.secured.replacing("%d", with: "4000"), host: "192.168.7.7")
        var opus = capture
        capture.stream(20, type: 8)
        #expect(try sign(capture) == nil)
        opus.describe("m=audio 5000 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\n", host: "192.168.7.8")
        var noise = opus
        for index in 0..<20 {
            let number = UInt16(index)
            let time = (UInt32(index) * 960, Int64(index) * 20)
            opus.packet(number, type: 111, timestamp: time.0, at: time.1, payload: [0x48, 1, 2, 3])
            noise.packet(number, type: 111, timestamp: time.0, at: time.1, byteCount: 70)
        }
        #expect(try sign(opus) == nil)
        #expect(try sign(noise) == nil)
        noise.describe(Self.secured.replacing("%d", with: "5000"), host: "192.168.7.9")
        opus.describe(Self.secured.replacing("%d", with: "5000"), host: "192.168.7.9")
        #expect(try sign(noise) != nil)
        #expect(try sign(opus) == nil)
    }

    @Test func `what is said of an address comes before what is said of its port`() throws {
        var capture = CaptureBuilder()
        capture.describe(Self.secured.replacing("%d", with: "4000"))
        capture.describe(Self.plain.replacing("%d", with: "5000"), host: "192.168.7.7")
        capture.stream(20, type: 8)
        #expect(try sign(capture) == .description("RTP/SAVP with a=crypto"))
    }

    @Test func `a finished DTLS handshake is a sign, a question without an answer is none`() throws {
        let hello: [UInt8] = [22, 0xFE, 0xFD] + [UInt8](repeating: 0, count: 20)
        let change: [UInt8] = [20, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
        var capture = CaptureBuilder()
        capture.stream(20, type: 8)
        capture.add(hello)
        #expect(try sign(capture) == nil)
        var answered = capture
        answered.add(hello, isBack: true)
        #expect(try sign(answered) == .dtls)
        capture.add(change)
        #expect(try sign(capture) == .dtls)
    }

    @Test func `ZRTP that confirmed its keys is a sign, its Hello is none`() throws {
        func message(_ name: String) -> [UInt8] {
            [0x10, 0, 0, 1] + Array("ZRTP".utf8) + [0, 0, 0, 1, 0x50, 0x5A, 0, 3] + Array(name.utf8) + [0, 0, 0, 0]
        }
        var capture = CaptureBuilder()
        capture.stream(20, type: 8)
        capture.add(message("Hello   "))
        capture.add(message("Hello   "), isBack: true)
        #expect(try sign(capture) == nil)
        capture.add(message("Confirm1"), isBack: true)
        #expect(try sign(capture) == .zrtp)
    }

    // Payload type, step, bytes in a packet, and the tag that they show.
    @Test(
        arguments: [
            (0, 160, 160, nil), (0, 160, 170, 10), (8, 240, 244, 4), (9, 160, 176, 16), (3, 160, 33, nil),
            (3, 160, 43, 10),
            (18, 160, 20, nil), (18, 160, 30, 10), (11, 882, 1764, nil), (11, 882, 1774, 10), (0, 160, 163, nil),
            (4, 240, 34, nil), (0, 160, 80, nil),
        ] as [(UInt8, UInt32, Int, Int?)]
    )
    func `payloads that are longer than their sound by a tag`(
        type: UInt8,
        step: UInt32,
        byteCount: Int,
        tag: Int?
    ) throws {
        var capture = CaptureBuilder()
        capture.stream(20, type: type, step: step, byteCount: byteCount)
        #expect(try sign(capture) == tag.map { EncryptionSigns.Sign.tag(byteCount: $0) })
    }

    @Test func `silence that was left out and a few odd packets hide no tag, and make none`() throws {
        for (byteCount, expected) in [(170, 10), (160, nil)] as [(Int, Int?)] {
            var capture = CaptureBuilder()
            for index in 0..<60 {
                let timestamp = UInt32(index * 160 + index / 4 * 4000)
                let size = index == 30 ? 170 : byteCount
                capture.packet(UInt16(index), type: 0, timestamp: timestamp, at: Int64(timestamp / 8), byteCount: size)
            }
            #expect(try sign(capture) == expected.map { EncryptionSigns.Sign.tag(byteCount: $0) })
        }
    }

    @Test func `descriptions and handshakes without end take no memory without end`() {
        var signs = EncryptionSigns()
        var descriptions = CaptureBuilder()
        for index in 0..<5000 {
            signs.add(
                CapturedDatagram(
                    unixNanoseconds: 0,
                    source: SocketAddress(ipv4: UInt32(index), port: 1),
                    destination: SocketAddress(ipv4: 1, port: 1),
                    payload: [20, 0xFE, 0xFD] + [UInt8](repeating: 0, count: 20)
                )
            )
            descriptions.describe("m=audio \(index + 1) RTP/SAVP 0\r\n")
        }
        func handshake(_ index: UInt32) -> EncryptionSigns.Sign? {
            signs.sign(
                from: SocketAddress(ipv4: index, port: 1),
                to: SocketAddress(ipv4: 1, port: 1),
                CapturedDescriptions(),
                isSound: false,
                tagByteCount: nil
            )
        }
        #expect(handshake(10) == .dtls && handshake(4999) == nil)
        let described = descriptions.streams.descriptions
        func encryption(_ port: UInt16) -> String? {
            described.encryption(
                from: SocketAddress(ipv4: 0x0A00_0001, port: port),
                to: SocketAddress(ipv4: 1, port: 60_000)
            )?.name
        }
        #expect(encryption(100) == "RTP/SAVP" && encryption(5000) == nil)
    }
}
