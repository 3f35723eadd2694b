import Testing

@testable import SDP

@Suite struct MediaDescriptionTests {
    /// The media of a session with the given lines.
    private func media(_ text: String) throws -> [MediaDescription] { try SessionDescription(parsing: text).media }

    @Test(arguments: [
        ("m=audio 49170 RTP/AVP 0 8", "audio", 49170, 1, MediaProtocol.rtpAVP, ["0", "8"]),
        ("m=Video 51372/2 rtp/avpf 31", "video", 51372, 2, .rtpAVPF, ["31"]),
        ("m=audio  1\tRTP/SAVP  0 ", "audio", 1, 1, .rtpSAVP, ["0"]),
        ("m=audio 9 RTP/SAVPF 111", "audio", 9, 1, .rtpSAVPF, ["111"]),
        ("m=audio 9 UDP/TLS/RTP/SAVP 111", "audio", 9, 1, .dtlsSAVP, ["111"]),
        ("m=audio 9 UDP/TLS/RTP/SAVPF 111", "audio", 9, 1, .dtlsSAVPF, ["111"]),
        ("m=image 54111 TCP t38", "image", 54111, 1, .tcp, ["t38"]),
        ("m=message 7394 TCP/TLS *", "message", 7394, 1, .tcpTLS, ["*"]),
        ("m=image 4000 udptl t38", "image", 4000, 1, .udptl, ["t38"]),
        (
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "application", 9, 1, .other("UDP/DTLS/SCTP"),
            ["webrtc-datachannel"]
        ),
        ("m=x-new 1 X/Y z", "x-new", 1, 1, .other("X/Y"), ["z"]),
        ("m=video 0 RTP/AVP", "video", 0, 1, .rtpAVP, []),
    ])
    func `an m= line has its fields`(
        line: String,
        kind: String,
        port: UInt16,
        count: Int,
        transport: MediaProtocol,
        formats: [String]
    ) throws {
        let medium = try #require(try media(line).first)
        #expect(medium.kind == kind && medium.port == port && medium.portCount == count)
        #expect(medium.transport == transport && medium.formatNames == formats && medium.isWellFormed)
        #expect(medium.transport.name.isNamed(medium.transportName))
    }

    @Test(arguments: [
        "m=", "m=audio", "m=audio 1", "m=audio 1 RTP/AVP", "m=audio x RTP/AVP 0", "m=audio 65536 RTP/AVP 0",
        "m=audio -1 RTP/AVP 0", "m=au\u{1}dio 1 RTP/AVP 0", "m=audio 1 RTP/AVP \u{E9}",
    ])
    func `an m= line that lacks a field, or has characters that it may not have, is known`(line: String) throws {
        let medium = try #require(try media(line).first)
        #expect(!medium.isWellFormed)
    }

    @Test func `the address is the medium's, else the session's, and the first of several`() throws {
        let text = """
            c=IN IP4 192.0.2.1
            m=audio 1 RTP/AVP 0
            m=audio 2 RTP/AVP 0
            c=TN RFC2543 +1-201-406-4090
            c=IN IP4 224.2.1.1/127/3
            c=IN IP4 224.2.1.2/127
            m=audio 3 RTP/AVP 0
            c=in ip6 FF15::101/3
            m=audio 4 RTP/AVP 0
            c=IN IP4 host.example.com
            m=audio 5 RTP/AVP 0
            c=IN IP7 x
            c=IN IP4
            c=IN IP4 /1
            """
        #expect(
            try media(text).map(\.host) == ["192.0.2.1", "224.2.1.1", "FF15::101", "host.example.com", "192.0.2.1"]
        )
        #expect(try media("m=audio 1 RTP/AVP 0").first?.host == nil)
    }

    @Test func `the direction is the medium's, else the session's, else both ways`() throws {
        let text = """
            a=inactive
            m=audio 1 RTP/AVP 0
            a=SendOnly
            a=recvonly
            m=audio 2 RTP/AVP 0
            a=sendonlyx
            a=x-sendonly
            """
        #expect(try media(text).map(\.direction) == [.sendOnly, .inactive])
        for direction in MediaDirection.allCases {
            #expect(try media("m=audio 1 RTP/AVP 0\na=\(direction.rawValue)").first?.direction == direction)
        }
        #expect(try media("m=audio 1 RTP/AVP 0").first?.direction == .sendReceive)
    }

    @Test(
        arguments: [
            ("20", 20), ("1.33", 2), ("20.0", 20), ("0.125", 1), (" 30 ", 30), ("0", nil), ("0.0", nil), ("-20", nil),
            ("x", nil),
            ("", nil), ("10001", nil), ("1.x", nil), ("99999999999999999999", nil),
        ] as [(String, Int?)]
    )
    func `packet times are whole milliseconds, rounded up`(text: String, expected: Int?) throws {
        let medium = try #require(try media("m=audio 1 RTP/AVP 0\na=ptime:\(text)\na=maxptime:\(text)").first)
        #expect(medium.packetTime == expected && medium.maximumPacketTime == expected)
    }

    @Test(arguments: [
        ("", "192.0.2.1", 5001), ("a=rtcp:53020", "192.0.2.1", 53020),
        ("a=rtcp:53020 IN IP4 126.16.64.4", "126.16.64.4", 53020),
        ("a=rtcp:53020 IN IP6 2001:db8::1", "2001:db8::1", 53020), ("a=rtcp:x", "192.0.2.1", 5001),
        ("a=rtcp:1 IN IP7 X", "192.0.2.1", 1),
    ])
    func `RTCP goes to the port that is given, else to the next`(line: String, host: String, port: UInt16) throws {
        let medium = try #require(try media("c=IN IP4 192.0.2.1\nm=audio 5000 RTP/AVP 0\n\(line)").first)
        #expect(medium.controlAddress == (host, port) && !medium.isMultiplexed)
    }

    @Test func `no port follows the last one`() throws {
        let medium = try #require(try media("c=IN IP4 192.0.2.1\nm=audio 65535 RTP/AVP 0\na=rtcp-mux").first)
        #expect(medium.controlAddress.port == 0 && medium.isMultiplexed)
    }

    @Test func `bandwidth is the medium's, else the session's`() throws {
        let media = try media(
            "b=CT:512\nb=AS:64\nm=audio 1 RTP/AVP 0\nb=TIAS:50780\nb=RR:800\nb=RS:2400\nb=X:y\nm=audio 2 RTP/AVP 0\nb=X:y"
        )
        #expect(media[0].maximumBitRate == 50780 && media[1].maximumBitRate == 64_000)
        #expect(media[0].bandwidth("RR") == 800 && media[0].bandwidth("RS") == 2400 && media[0].bandwidth("ct") == 512)
        #expect(media[0].bandwidth("X") == nil && media[1].bandwidth("TIAS") == nil)
    }

    /// RFC 3551, tables 4 and 5.
    static let staticTypes: [(UInt8, String)] = [
        (0, "PCMU/8000/1"), (3, "GSM/8000/1"), (4, "G723/8000/1"), (5, "DVI4/8000/1"), (6, "DVI4/16000/1"),
        (7, "LPC/8000/1"), (8, "PCMA/8000/1"), (9, "G722/8000/1"), (10, "L16/44100/2"), (11, "L16/44100/1"),
        (12, "QCELP/8000/1"), (13, "CN/8000/1"), (14, "MPA/90000/1"), (15, "G728/8000/1"), (16, "DVI4/11025/1"),
        (17, "DVI4/22050/1"), (18, "G729/8000/1"), (25, "CelB/90000/1"), (26, "JPEG/90000/1"), (28, "nv/90000/1"),
        (31, "H261/90000/1"), (32, "MPV/90000/1"), (33, "MP2T/90000/1"), (34, "H263/90000/1"),
    ]

    @Test func `static types need no description, and there are no others`() {
        let found = (UInt8(0)...255).compactMap { number in
            PayloadFormat(staticPayloadType: number).map {
                (number, "\($0.encodingName)/\($0.clockRate)/\($0.channelCount)")
            }
        }
        #expect(found.map(\.0) == Self.staticTypes.map(\.0) && found.map(\.1) == Self.staticTypes.map(\.1))
    }

    @Test func `formats are those described or known, in the order of the m= line, each number once`() throws {
        let medium = try #require(
            try media(
                """
                m=audio 1 RTP/AVP 97 0 0 8 98 99 300 x 128 9 13 100 101 102
                a=rtpmap:97 OPUS/48000/2
                a=rtpmap:97 other/8000
                a=fmtp:97 useinbandfec=1; stereo=1
                a=fmtp:97 second
                a=rtpmap:8 PCMA/8000/1
                a=rtpmap:9 G722/16000
                a=rtpmap:98 broken
                a=rtpmap:99 zero/0
                a=rtpmap:100 L16/44100/x
                a=rtpmap:101 L16 / 8000 / 2
                a=rtpmap:102 telephone-event/8000
                a=fmtp:102
                a=rtpmap:127 unused/8000
                """
            ).first
        )
        let names = [
            "97 OPUS/48000", "0 PCMU/8000", "8 PCMA/8000", "9 G722/8000", "13 CN/8000", "100 L16/44100",
            "102 telephone-event/8000",
        ]
        #expect(medium.formats.names == names)
        #expect(
            medium.formats.first?.parameters == "useinbandfec=1; stereo=1" && medium.formats.first?.channelCount == 2
        )
        #expect(medium.formats.first?.parameter("STEREO") == "1" && medium.formats.first?.parameter("cbr") == nil)
        #expect(medium.formats.last?.parameters == nil)
    }

    @Test func `what does not travel by RTP has no payload formats`() throws {
        #expect(try media("m=application 9 UDP/DTLS/SCTP 0").first?.formats == [])
        #expect(try media("m=audio 9 X/RTP/Y 0").first?.formats.names == ["0 PCMU/8000"])
    }

    @Test func `redundant audio names what it repeats`() {
        let red = PayloadFormat(redundant: .opus(111), payloadType: 63)
        #expect(
            red.parameters == "111/111" && red.repeats(.opus(111)) && !red.repeats(.opus(96)) && !red.repeats(.pcmu)
        )
        var any = red
        any.parameters = nil
        #expect(any.repeats(.opus(96)) && !PayloadFormat.pcmu.repeats(.pcmu))
    }

    @Test func `streams, sources, feedback and extensions have their views`() throws {
        let medium = try #require(
            try media(
                """
                a=extmap:9 urn:session
                m=audio 9 UDP/TLS/RTP/SAVPF 111
                a=msid:stream track
                a=msid:-
                a=msid:
                a=ssrc:2233075910 cname:a b:c
                a=ssrc:4294967296 cname:x
                a=ssrc:1 flag
                a=rtcp-fb:111 transport-cc
                a=rtcp-fb:* nack pli
                a=rtcp-fb:128 nack
                a=extmap:1/sendonly urn:ietf:params:rtp-hdrext:ssrc-audio-level vad=on
                a=extmap:x urn:y
                """
            ).first
        )
        #expect(
            medium.streamIdentifiers.map(\.stream) == ["stream", "-"]
                && medium.streamIdentifiers.map(\.track) == ["track", nil]
        )
        #expect(medium.sources.map(\.ssrc) == [2_233_075_910, 1])
        #expect(medium.sources.map(\.attribute) == [SDPAttribute("cname", "a b:c"), SDPAttribute("flag")])
        #expect(
            medium.feedback.map(\.payloadType) == [111, nil]
                && medium.feedback.map(\.feedback) == ["transport-cc", "nack pli"]
        )
        #expect(
            medium.headerExtensions.map(\.number) == [9, 1]
                && medium.headerExtensions.map(\.direction) == [nil, .sendOnly]
        )
        #expect(medium.headerExtensions[1].attributes == "vad=on")
    }
}
