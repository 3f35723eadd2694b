import MediaEngine
import Testing

@Suite struct SessionDescriptionTests {
    /// Written by FFmpeg 5.1 with `-c:a libopus -f rtp -sdp_file`.
    static let fromFFmpeg = """
        v=0
        o=- 0 0 IN IP4 127.0.0.1
        s=No Name
        c=IN IP4 127.0.0.1
        t=0 0
        a=tool:libavformat LIBAVFORMAT_VERSION
        m=audio 19000 RTP/AVP 97
        b=AS:64
        a=rtpmap:97 opus/48000/2

        """

    /// The answer of RFC 4317, section 2.2, with a telephone-event line as section 2.3 has it.
    static let fromRFC = """
        v=0
        o=bob 2808844564 2808844565 IN IP4 host.biloxi.example.com
        s=
        c=IN IP4 host.biloxi.example.com
        t=0 0
        a=inactive
        m=video 53000 RTP/AVP 32
        c=IN IP4 10.9.9.9
        a=rtpmap:32 MPV/90000
        m=audio 49174 RTP/AVP 0 97 101
        a=rtpmap:97 iLBC/8000
        a=rtpmap:101 telephone-event/8000
        a=fmtp:101 0-15
        a=ptime:20
        a=rtcp:53020
        a=sendonly
        m=audio 1 RTP/AVP 8

        """

    @Test func `what FFmpeg writes is read`() throws {
        let description = try SessionDescription(parsing: Self.fromFFmpeg)
        #expect(description.host == "127.0.0.1" && description.port == 19000)
        #expect(description.effectiveControlPort == 19001)
        let opus = PayloadFormat(payloadType: 97, encodingName: "opus", clockRate: 48000, channelCount: 2)
        #expect(description.formats == [opus])
        #expect(description.direction == .sendReceive && description.packetTime == nil)
    }

    @Test(arguments: ["\n", "\r\n", "\r"]) func `the first audio is read, whatever ends the lines`(end: String) throws {
        let description = try SessionDescription(parsing: Self.fromRFC.split(separator: "\n").joined(separator: end))
        #expect(description.host == "host.biloxi.example.com" && description.port == 49174)
        #expect(description.formats.map(\.encodingName) == ["PCMU", "iLBC", "telephone-event"])
        #expect(description.format(named: "TELEPHONE-EVENT")?.parameters == "0-15")
        #expect(description.packetTime == 20 && description.effectiveControlPort == 53020)
        #expect(description.direction == .sendOnly && description.sessionVersion == 2_808_844_565)
    }

    @Test func `what is written is read again, and is laid out as RFC 8866 asks`() throws {
        var description = SessionDescription(
            host: "::1",
            port: 5004,
            formats: [
                PayloadFormat(
                    payloadType: 96,
                    encodingName: "opus",
                    clockRate: 48000,
                    channelCount: 2,
                    parameters: "useinbandfec=1"
                ),
                PayloadFormat(payloadType: 101, encodingName: "telephone-event", clockRate: 48000, parameters: "0-16"),
            ]
        )
        description.packetTime = 20
        description.isMultiplexed = true
        description.direction = .receiveOnly
        #expect(
            description.text.split(whereSeparator: \.isNewline) == [
                "v=0", "o=- 0 0 IN IP6 ::1", "s=media-engine", "c=IN IP6 ::1", "t=0 0", "m=audio 5004 RTP/AVP 96 101",
                "a=rtpmap:96 opus/48000/2", "a=fmtp:96 useinbandfec=1", "a=rtpmap:101 telephone-event/48000",
                "a=fmtp:101 0-16",
                "a=ptime:20", "a=rtcp-mux", "a=recvonly",
            ]
        )
        #expect(try SessionDescription(parsing: description.text) == description)
        #expect(description.effectiveControlPort == 5004)
    }

    /// Found by Scripts/fuzz: such a name was accepted, and could only be written as none.
    @Test func `names and addresses of control characters are left out`() throws {
        let named = "v=0\nc=IN IP4 192.0.2.1\nm=audio 4000 RTP/AVP 96 0\na=rtpmap:96 \u{1}\u{7F}/48000/2\n"
        let description = try SessionDescription(parsing: named)
        #expect(description.formats.map(\.payloadType) == [0])
        #expect(try SessionDescription(parsing: description.text).formats == description.formats)
        let nowhere = "v=0\nc=IN IP4 \u{2}\nm=audio 4000 RTP/AVP 0\n"
        #expect(throws: SessionDescriptionError.self) { try SessionDescription(parsing: nowhere) }
    }

    @Test func `values cannot smuggle lines in`() throws {
        var description = SessionDescription(
            host: "10.0.0.1\r\nm=audio 1 RTP/AVP 0",
            port: 5004,
            formats: [
                PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000, parameters: "x\r\na=inactive")
            ]
        )
        description.sessionName = "a\nb=c"
        #expect(try SessionDescription(parsing: description.text).direction == .sendReceive)
        #expect(description.text.split(whereSeparator: \.isNewline).count == 9)
    }

    @Test(arguments: [
        ("", SessionDescriptionError.Code.noAudio),
        ("v=0\nm=video 1 RTP/AVP 31\n", .noAudio),
        ("v=0\nm=audio x RTP/AVP 0\n", .invalidMedia),
        ("v=0\nm=audio 70000 RTP/AVP 0\n", .invalidMedia),
        ("v=0\nc=IN IP4 1.2.3.4\nm=audio 1 RTP/AVP 96\n", .invalidMedia),
        ("v=0\nm=audio 1 RTP/AVP 0\n", .noAddress),
        ("v=0\nc=IN IP4 1.2.3.4\nm=audio 1 RTP/SAVP 0\n", .unsupportedProtocol),
        (String(repeating: "a=x\n", count: 20_000), .tooLarge),
    ]) func `a defect is named with its remedy`(text: String, code: SessionDescriptionError.Code) {
        let error = #expect(throws: SessionDescriptionError.self) { try SessionDescription(parsing: text) }
        #expect(error?.code == code)
        #expect(error.map { $0.message.hasSuffix(".") } == true)
    }

    @Test func `lines that make no sense are left out`() throws {
        let description = try SessionDescription(
            parsing: """
                v=0
                c=IN
                c=IN IP4 224.2.1.1/127/3
                rubbish
                m=audio 5004/2 RTP/AVP 96 97 98 999 8 8
                a=rtpmap:96
                a=rtpmap:97 x
                a=rtpmap:98 speex/99999999999999999999
                a=rtpmap:300 x/8000
                a=fmtp:8
                a=ptime:nan
                a=ptime:1e99
                a=maxptime:-5
                a=rtcp:99999
                """
        )
        #expect(description.host == "224.2.1.1" && description.port == 5004)
        #expect(description.formats == [PayloadFormat(payloadType: 8, encodingName: "PCMA", clockRate: 8000)])
        #expect(description.packetTime == nil && description.maximumPacketTime == nil && description.controlPort == nil)
    }

    @Test func `redundant audio names what it repeats, and is found again`() throws {
        let opus = PayloadFormat(payloadType: 96, encodingName: "opus", clockRate: 48000, channelCount: 2)
        let red = PayloadFormat(redundant: opus, payloadType: 121)
        let offered = SessionDescription(host: "192.0.2.1", port: 5004, formats: [opus, red])
        #expect(offered.text.contains("a=rtpmap:121 red/48000/2\r\n"))
        #expect(offered.text.contains("a=fmtp:121 96/96\r\n"))
        let read = try SessionDescription(parsing: offered.text)
        #expect(read.redundancy(of: opus) == red)
        #expect(SessionDescription(host: "h", port: 1, formats: [opus]).redundancy(of: opus) == nil)
    }

    // RFC 2198, section 5, and what browsers and others write.
    @Test(arguments: [
        ("RED/8000/1", "0/5", true), ("red/8000", "0/0", true), ("red/8000", " 0 / 0 ", true), ("red/8000", nil, true),
        ("red/48000", "0/0", false), ("red/8000", "111/111", false), ("red/8000", "x/y//", false),
        ("redd/8000", "0/0", false),
    ]) func `redundant audio of other codecs is not taken`(map: String, parameters: String?, isTaken: Bool) throws {
        let line = parameters.map { "a=fmtp:121 \($0)\r\n" } ?? ""
        let description = try SessionDescription(
            parsing: "v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 121 0 5\r\na=rtpmap:121 \(map)\r\n" + line
        )
        let pcmu = try #require(description.format(payloadType: 0))
        #expect((description.redundancy(of: pcmu)?.payloadType == 121) == isTaken)
    }

    @Test func `no bytes trap`() {
        for valid in [Self.fromFFmpeg, Self.fromRFC] {
            forEachSpoiling(of: Array(valid.utf8)) { span in
                let text = (0..<span.count).map { span[$0] }
                _ = try? SessionDescription(parsing: text)
            }
        }
    }

    @Test(
        .enabled(if: CorpusFiles.areThere, "needs shared/corpora/fetched"),
        arguments: ["sdp-transform", "sofia-sdp", "webrtc-sdp", "pjsip-fuzz/sdp"]
    )
    func `descriptions of the corpora are read or refused, cut anywhere`(folder: String) throws {
        for file in try CorpusFiles.contents(of: folder) {
            for count in stride(from: 0, through: file.bytes.count, by: max(file.bytes.count / 400, 1)) {
                _ = try? SessionDescription(parsing: Array(file.bytes.prefix(count)))
            }
            guard let description = try? SessionDescription(parsing: file.bytes) else { continue }
            let again = try SessionDescription(parsing: description.text)
            #expect(again.formats == description.formats && again.port == description.port, "\(file.name)")
        }
    }
}
