import Testing

@testable import SDP

/// Offers of programs that are in use, and what a phone of ours makes of them.
@Suite struct PeerOfferTests {
    private static func phone(
        _ formats: [PayloadFormat] = .phone,
        _ change: (inout MediaConfiguration) -> Void = { _ in }
    ) -> OfferAnswer {
        OfferAnswer(.audio(formats, change))
    }

    /// linphonec 5.1.65, calling through Kamailio.
    static let linphone = """
        v=0
        o=alice 3666 1623 IN IP4 127.0.0.1
        s=Talk
        c=IN IP4 127.0.0.1
        t=0 0
        a=rtcp-xr:rcvr-rtt=all:10000 stat-summary=loss,dup,jitt,TTL voip-metrics
        m=audio 27000 RTP/AVP 96 97 98 0 8 18 99 100 101
        a=rtpmap:96 opus/48000/2
        a=fmtp:96 useinbandfec=1
        a=rtpmap:97 speex/16000
        a=fmtp:97 vbr=on
        a=rtpmap:98 speex/8000
        a=fmtp:98 vbr=on
        a=fmtp:18 annexb=yes
        a=rtpmap:99 telephone-event/48000
        a=rtpmap:100 telephone-event/16000
        a=rtpmap:101 telephone-event/8000
        a=rtcp-fb:* trr-int 1000
        a=rtcp-fb:* ccm tmmbr
        """

    @Test func `linphonec: our numbers give way to its own`() throws {
        var session = Self.phone()
        let answer = try session.answer(Self.linphone)
        #expect(
            answer.section(0) == [
                "m=audio 40000 RTP/AVP 96 0 8 99 101", "a=rtpmap:96 opus/48000/2", "a=fmtp:96 useinbandfec=1",
                "a=rtpmap:0 PCMU/8000",
                "a=rtpmap:8 PCMA/8000", "a=rtpmap:99 telephone-event/48000", "a=fmtp:99 0-15",
                "a=rtpmap:101 telephone-event/8000",
                "a=fmtp:101 0-15", "a=sendrecv",
            ]
        )
        let audio = try #require(session.agreed?.audio)
        #expect(audio.sending.telephoneEvents.names == ["99 telephone-event/48000", "101 telephone-event/8000"])
        #expect(audio.remote == .init(host: "127.0.0.1", port: 27000) && audio.remoteControl?.port == 27001)
        // Its hold repeats all of the offer with one line more, and a higher version.
        let before = session.agreed
        let held = Self.linphone.replacing("1623", with: "1624").replacing(
            "a=rtcp-fb:* trr",
            with: "a=sendonly\na=rtcp-fb:* trr"
        )
        #expect(try session.answer(held).media[0].direction == .receiveOnly)
        #expect(session.agreed?.changes(since: before) == [0: [.direction, .hold]])
        let resumed = try session.answer(Self.linphone.replacing("1623", with: "1625"))
        #expect(resumed.media[0].direction == .sendReceive && session.agreed?.changes(since: before) == [:])
    }

    @Test func `linphonec: secured by SDES it is refused without keys, and taken where they are configured`() throws {
        let offer =
            Self.linphone.replacing("RTP/AVP", with: "RTP/SAVP")
            + "\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:4hJUmnEoub9sPm50Jh/HnI6v2oeWJNfZ8nU4ER4g"
        var plain = Self.phone()
        let description = try SessionDescription(parsing: offer)
        try plain.receiveOffer(description)
        #expect(failure { () throws(SDPError) in try plain.makeAnswer() }?.code == .notAcceptable)
        var secured = Self.phone {
            $0.protocols = [.rtpSAVP]
            $0.attributes = [SDPAttribute("crypto", "1 AES_CM_128_HMAC_SHA1_80 inline:own")]
        }
        #expect(try secured.answer(offer).media[0].transport == .rtpSAVP)
        #expect(secured.agreed?.audio?.remoteSecurity.cryptoLines.first?.suite == "AES_CM_128_HMAC_SHA1_80")
    }

    /// baresip 1.0.0.
    static let baresip = """
        v=0
        o=- 2154042004 1757826901 IN IP4 127.0.0.1
        s=-
        c=IN IP4 127.0.0.1
        t=0 0
        a=tool:baresip 1.0.0
        m=audio 26062 RTP/AVP 96 0 8 101
        a=rtpmap:96 opus/48000/2
        a=fmtp:96 stereo=1;sprop-stereo=1;maxaveragebitrate=28000;useinbandfec=1
        a=rtpmap:0 PCMU/8000
        a=rtpmap:8 PCMA/8000
        a=rtpmap:101 telephone-event/8000
        a=fmtp:101 0-15
        a=sendrecv
        a=label:1
        a=rtcp-rsize
        a=ssrc:310059930 cname:sip:bob@sip.test
        a=minptime:20
        a=ptime:20
        """

    @Test func `baresip: events at 8000 Hz serve Opus, too`() throws {
        var session = Self.phone([.opus(), .events(100, 48000), .events(101)])
        let answer = try session.answer(Self.baresip)
        #expect(answer.media[0].formatNames == ["96", "101"])
        let audio = try #require(session.agreed?.audio)
        #expect(audio.packetTime == 20 && audio.sending.codecs[0].parameter("maxaveragebitrate") == "28000")
        #expect(
            audio.sending.telephoneEvents.map(\.clockRate) == [8000]
                && audio.receiving.codecs[0].parameters == "useinbandfec=1"
        )
    }

    @Test func `baresip: its answer takes one codec, and a hold changes nothing else`() throws {
        var session = Self.phone()
        _ = try session.makeOffer()
        let answer = """
            v=0
            o=- 2304445896 1701684124 IN IP4 127.0.0.1
            s=-
            c=IN IP4 127.0.0.1
            t=0 0
            a=tool:baresip 1.0.0
            m=audio 26096 RTP/AVP 96 101
            a=rtpmap:96 opus/48000/2
            a=fmtp:96 stereo=1;sprop-stereo=1;maxaveragebitrate=28000;useinbandfec=1
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-15
            a=sendrecv
            a=label:1
            a=ssrc:130113983 cname:sip:bob@sip.test
            a=minptime:20
            a=ptime:20
            """
        let before = try session.receiveAnswer(SessionDescription(parsing: answer))
        #expect(
            before.audio?.sending.codecs.map(\.payloadType) == [96]
                && before.audio?.sending.telephoneEvents.map(\.payloadType) == [101]
        )
        session.configuration.hold = .withMusic
        let hold = try session.makeOffer(.agreedFormats)
        #expect(hold.media[0].formats == before.local.media[0].formats)
        let held = try session.receiveAnswer(
            SessionDescription(parsing: answer.replacing("sendrecv", with: "recvonly"))
        )
        #expect(held.changes(since: before) == [0: [.direction, .hold]])
    }

    @Test func `SIPp: a plain scenario`() throws {
        var session = Self.phone()
        let answer = try session.answer(
            """
            v=0
            o=sipp 1 1 IN IP4 127.0.0.1
            s=-
            c=IN IP4 127.0.0.1
            t=0 0
            m=audio 28000 RTP/AVP 0 101
            a=rtpmap:0 PCMU/8000
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-15
            a=ptime:20
            a=sendrecv
            """
        )
        #expect(answer.media[0].formatNames == ["0", "101"])
    }

    @Test func `Asterisk: 17 events, of which we know 16`() throws {
        var session = Self.phone()
        let answer = try session.answer(
            """
            v=0
            o=- 1591671912 1591671912 IN IP4 192.0.2.7
            s=Asterisk
            c=IN IP4 192.0.2.7
            t=0 0
            m=audio 19404 RTP/AVP 107 0 8 3 9 101
            a=rtpmap:107 opus/48000/2
            a=fmtp:107 useinbandfec=1
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=rtpmap:3 GSM/8000
            a=rtpmap:9 G722/8000
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-16
            a=ptime:20
            a=maxptime:20
            a=sendrecv
            """
        )
        #expect(
            answer.media[0].formatNames == ["107", "0", "8", "101"]
                && answer.media[0].formats.last?.parameters == "0-15"
        )
        #expect(session.agreed?.audio?.maximumPacketTime == 20)
    }

    @Test func `Mobicents: names in lower case, and one event type twice`() throws {
        var session = Self.phone()
        let answer = try session.answer(
            """
            v=0
            o=- 1448892712200 1 IN IP4 192.168.1.1
            s=Mobicents Media Server
            c=IN IP4 192.168.1.1
            t=0 0
            m=audio 37402 RTP/AVP 8 0 3 18 97 102 101 126
            c=IN IP4 192.168.1.1
            a=sendrecv
            a=rtcp:37403 IN IP4 192.168.1.1
            a=ptime:20
            a=rtpmap:102 ilbc/8000
            a=rtpmap:0 pcmu/8000
            a=rtpmap:101 telephone-event/8000
            a=rtpmap:18 g729/8000
            a=rtpmap:3 gsm/8000
            a=rtpmap:97 l16/8000
            a=rtpmap:8 pcma/8000
            a=rtpmap:126 telephone-event/8000
            """
        )
        #expect(answer.media[0].formatNames == ["8", "0", "101"])
    }

    /// Written by FFmpeg 5.1.9 with `-c:a libopus -f rtp -sdp_file`, and with `-c:a pcm_mulaw`.
    @Test func `FFmpeg: what it sends is described, and can be answered`() throws {
        let head =
            "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=No Name\nc=IN IP4 127.0.0.1\nt=0 0\na=tool:libavformat LIBAVFORMAT_VERSION\n"
        var session = Self.phone()
        let opus = head + "m=audio 19000 RTP/AVP 97\nb=AS:64\na=rtpmap:97 opus/48000/2\n"
        #expect(try session.answer(opus).media[0].formats.names == ["97 opus/48000"])
        #expect(session.agreed?.audio?.maximumBitRate == 64_000)
        #expect(try session.answer(head + "m=audio 19000 RTP/AVP 0\nb=AS:64\n").media[0].formatNames == ["0"])
    }

    /// In the form that GStreamer's SDP library gives its caps.
    @Test func `GStreamer: names in upper case`() throws {
        var session = Self.phone()
        let answer = try session.answer(
            """
            v=0
            o=- 1188340656180883 1 IN IP4 127.0.0.1
            s=Session streamed with GStreamer
            i=rtsp-server
            t=0 0
            a=tool:GStreamer
            a=type:broadcast
            m=audio 5004 RTP/AVPF 96
            c=IN IP4 127.0.0.1
            a=rtpmap:96 OPUS/48000/2
            a=fmtp:96 sprop-stereo=0;sprop-maxcapturerate=48000
            """
        )
        #expect(answer.section(0).prefix(2) == ["m=audio 40000 RTP/AVPF 96", "a=rtpmap:96 opus/48000/2"])
    }

    /// Chromium, audio and video; the video is cut short.
    static let chromium = """
        v=0
        o=- 4611731400430051336 2 IN IP4 127.0.0.1
        s=-
        t=0 0
        a=group:BUNDLE 0 1
        a=extmap-allow-mixed
        a=msid-semantic: WMS 4fe2
        m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
        c=IN IP4 0.0.0.0
        a=rtcp:9 IN IP4 0.0.0.0
        a=ice-ufrag:Xk3p
        a=ice-pwd:QwF10tt2WbFUlb7nWDAf0jiJ
        a=ice-options:trickle
        a=fingerprint:sha-256 C3:30:F8:AF:FB:35:DB:1B:85:4A:A3:A5:69:CF:68:B8:AB:AE:4A:3F:AC:97:B5:2F:96:9F:71:FF:91:F9:94:BA
        a=setup:actpass
        a=mid:0
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=sendrecv
        a=msid:4fe2 a1
        a=rtcp-mux
        a=rtcp-rsize
        a=rtpmap:111 opus/48000/2
        a=rtcp-fb:111 transport-cc
        a=fmtp:111 minptime=10;useinbandfec=1
        a=rtpmap:63 red/48000/2
        a=fmtp:63 111/111
        a=rtpmap:9 G722/8000
        a=rtpmap:0 PCMU/8000
        a=rtpmap:8 PCMA/8000
        a=rtpmap:13 CN/8000
        a=rtpmap:110 telephone-event/48000
        a=rtpmap:126 telephone-event/8000
        a=ssrc:1234 cname:x
        m=video 9 UDP/TLS/RTP/SAVPF 96 97
        c=IN IP4 0.0.0.0
        a=mid:1
        a=rtpmap:96 VP8/90000
        a=rtpmap:97 rtx/90000
        a=fmtp:97 apt=96
        """

    @Test func `Chromium: refused by a plain phone, taken where DTLS is configured, video off`() throws {
        var plain = Self.phone()
        try plain.receiveOffer(SessionDescription(parsing: Self.chromium))
        let error = failure { () throws(SDPError) in try plain.makeAnswer() }
        #expect(error?.code == .notAcceptable && error?.message.contains("UDP/TLS/RTP/SAVPF") ?? false)

        let red = PayloadFormat(redundant: .opus(), payloadType: 63)
        var session = Self.phone([.opus(), red, .pcmu, .noise, .events(100, 48000), .events(101)]) {
            $0.protocols = [.dtlsSAVPF]
            $0.attributes = [
                SDPAttribute("mid", "0"), SDPAttribute("setup", "active"), SDPAttribute("fingerprint", "sha-256 00"),
            ]
        }
        let answer = try session.answer(Self.chromium)
        #expect(answer.section(0)[0] == "m=audio 40000 UDP/TLS/RTP/SAVPF 111 63 0 13 110 126")
        #expect(answer.section(1) == ["m=video 0 UDP/TLS/RTP/SAVPF 96"])
        let audio = try #require(session.agreed?.audio)
        #expect(audio.isMultiplexed && audio.remote == nil && audio.direction == .sendReceive && !audio.isHeldRemotely)
        #expect(
            audio.sending.redundancy.map(\.parameters) == ["111/111"]
                && audio.sending.comfortNoise.map(\.payloadType) == [13]
        )
        #expect(
            audio.remoteSecurity.iceCredentials?.userFragment == "Xk3p"
                && audio.remoteSecurity.setupRole == .activeOrPassive
        )
        #expect(audio.localSecurity.setupRole == .active && audio.remoteSecurity.mediaIdentifier == "0")
    }
}
