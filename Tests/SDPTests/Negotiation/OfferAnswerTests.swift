import Testing

@testable import SDP

@Suite struct OfferAnswerTests {
    private static func description(_ media: String, version: Int = 1) throws -> SessionDescription {
        try SessionDescription(
            parsing: "v=0\no=- 7 \(version) IN IP4 192.0.2.2\ns=-\nc=IN IP4 192.0.2.2\nt=0 0\n\(media)"
        )
    }

    private static let pcmu = "m=audio 5000 RTP/AVP 0\n"

    @Test func `an offer is laid out as RFC 8866 asks`() throws {
        var configuration = SessionConfiguration.audio {
            $0.packetTime = 20
            $0.maximumPacketTime = 60
            $0.maximumBitRate = 64_001
            $0.controlPort = 40005
            $0.attributes = [SDPAttribute("label", "1"), SDPAttribute("flag")]
        }
        configuration.userName = "alice"
        configuration.sessionName = "A call"
        configuration.attributes = [SDPAttribute("tool", "x")]
        var session = OfferAnswer(configuration, id: 42)
        #expect(
            try session.makeOffer().texts == [
                "v=0", "o=alice 42 1 IN IP4 192.0.2.1", "s=A call", "c=IN IP4 192.0.2.1", "t=0 0", "a=tool:x",
                "m=audio 40000 RTP/AVP 96 0 8 100 101", "b=AS:65", "b=TIAS:64001",
                "a=rtpmap:96 opus/48000/2", "a=fmtp:96 useinbandfec=1", "a=rtpmap:0 PCMU/8000", "a=rtpmap:8 PCMA/8000",
                "a=rtpmap:100 telephone-event/48000", "a=fmtp:100 0-15", "a=rtpmap:101 telephone-event/8000",
                "a=fmtp:101 0-15",
                "a=ptime:20", "a=maxptime:60", "a=rtcp:40005", "a=rtcp-mux", "a=label:1", "a=flag", "a=sendrecv",
            ]
        )
    }

    @Test func `every step out of turn is refused and changes nothing`() throws {
        let offer = try Self.description(Self.pcmu)
        var session = OfferAnswer(.audio())
        func code(_ body: (inout OfferAnswer) throws(SDPError) -> Void) -> SDPFault? {
            var copy = session
            let error = failure { () throws(SDPError) in try body(&copy) }
            #expect(copy.state == session.state && copy.agreed == session.agreed)
            return error?.code
        }
        #expect(code { session throws(SDPError) in _ = try session.makeAnswer() } == .wrongState)
        #expect(code { session throws(SDPError) in _ = try session.receiveAnswer(offer) } == .wrongState)
        #expect(session.state == .stable && session.pendingOffer == nil && session.agreed == nil)
        _ = try session.makeOffer()
        #expect(session.state == .ourOffer && session.pendingOffer == nil)
        #expect(code { session throws(SDPError) in _ = try session.makeOffer() } == .wrongState)
        #expect(code { session throws(SDPError) in try session.receiveOffer(offer) } == .wrongState)
        #expect(code { session throws(SDPError) in _ = try session.makeAnswer() } == .wrongState)
        session.rollBack()
        #expect(session.state == .stable)
        try session.receiveOffer(offer)
        #expect(session.state == .theirOffer && session.pendingOffer == offer)
        #expect(code { session throws(SDPError) in _ = try session.makeOffer() } == .wrongState)
        #expect(code { session throws(SDPError) in try session.receiveOffer(offer) } == .wrongState)
        #expect(code { session throws(SDPError) in _ = try session.receiveAnswer(offer) } == .wrongState)
        session.rollBack()
        #expect(session.state == .stable && session.pendingOffer == nil && session.agreed == nil)
    }

    @Test func `the version grows by one when the description changes, and only then`() throws {
        var (first, second) = (OfferAnswer(.audio(), id: 5), OfferAnswer(.audio(address: "192.0.2.2"), id: 6))
        try first.exchange(with: &second)
        let one = try #require(first.agreed?.local.origin)
        #expect(one.version == "1" && second.agreed?.local.version == 1)
        // A session refresh: same text, same version, nothing changed on either side (RFC 4028, section 7.4).
        for _ in 0..<3 {
            #expect(try first.exchange(with: &second, .agreedFormats) == [])
            #expect(first.agreed?.local.version == 1 && second.agreed?.local.version == 1)
        }
        first.configuration.media[0].packetTime = 30
        #expect(try first.exchange(with: &second, .agreedFormats) == [.packetTime])
        #expect(first.agreed?.local.version == 2 && second.agreed?.local.version == 1)
        #expect(second.agreed?.audio?.packetTime == 30)
        // The address of the o= line stays when the address of the session changes (RFC 3264, section 8).
        first.configuration.address = "2001:db8::1"
        first.configuration.userName = "other"
        try first.exchange(with: &second, .agreedFormats)
        var expected = one
        expected.version = "3"
        #expect(first.agreed?.local.origin == expected && first.agreed?.audio?.local.host == "2001:db8::1")
        #expect(second.agreed?.audio?.remote?.host == "2001:db8::1")
        // Back to what it was: another description than the last one.
        first.configuration.address = "192.0.2.1"
        first.configuration.media[0].packetTime = nil
        try first.exchange(with: &second, .agreedFormats)
        #expect(first.agreed?.local.version == 4)
    }

    @Test func `a description that was refused uses up its version`() throws {
        var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
        try first.exchange(with: &second)
        let agreed = try #require(first.agreed)
        first.configuration.hold = .withMusic
        #expect(try first.makeOffer(.agreedFormats).version == 2)
        first.rollBack()
        #expect(first.agreed == agreed && first.configuration.hold == nil)
        #expect(try first.makeOffer(.agreedFormats).version == 3)
        first.rollBack()
        #expect(try first.makeOffer(.agreedFormats).version == 3)
    }

    @Test func `a session id fits 64 bits with a sign`() throws {
        var session = OfferAnswer(.audio(), id: .max)
        #expect(try session.makeOffer().origin?.sessionID == "9223372036854775807")
    }

    @Test func `the same version and the same text change nothing, another text does, whatever its version`() throws {
        var session = OfferAnswer(.audio([.pcmu, .pcma]))
        let answer = try session.answer(Self.description("m=audio 5000 RTP/AVP 0 8\n"))
        let before = session.agreed
        #expect(try session.answer(Self.description("m=audio 5000 RTP/AVP 0 8\n")) == answer)
        #expect(session.agreed?.changes(since: before) == [:])
        // Firefox, JsSIP and Sonus have been seen to forget the version (RFC 3264, section 8, forbids it).
        let held = try session.answer(Self.description("m=audio 5000 RTP/AVP 8\na=sendonly\n"))
        #expect(held.media[0].direction == .receiveOnly && held.version == 2)
        let expected: Set<MediaChange> = [.sendCodec, .sendFormats, .receiveFormats, .direction, .hold]
        #expect(session.agreed?.changes(since: before) == [0: expected])
    }

    @Test func `a refused offer leaves configuration and agreement as they were, on both sides`() throws {
        var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
        try first.exchange(with: &second)
        let before = (first.configuration, first.agreed, second.configuration, second.agreed)
        first.configuration.media[0].formats = [.g722]
        try second.receiveOffer(first.makeOffer())
        let refusal = failure { () throws(SDPError) in try second.makeAnswer() }
        #expect(refusal?.code == .notAcceptable && refusal?.message.contains("G722") ?? false)
        #expect(second.state == .theirOffer)
        second.rollBack()
        first.rollBack()
        #expect(first.configuration == before.0 && first.agreed == before.1)
        #expect(second.configuration == before.2 && second.agreed == before.3)
        #expect(try first.exchange(with: &second, .agreedFormats) == [])
    }

    @Test func `what was wished while their offer waited stays when it is refused`() throws {
        var session = OfferAnswer(.audio())
        try session.receiveOffer(Self.description("m=video 5000 RTP/AVP 31\n"))
        session.configuration.hold = .silent
        session.rollBack()
        #expect(session.configuration.hold == .silent)
    }

    @Test(arguments: [
        ("", "m= lines"), (pcmu + pcmu, "m= lines"), ("m=video 5000 RTP/AVP 0\n", "is video"),
        ("m=audio 5000 RTP/AVPF 0\n", "travels by"), ("m=audio 5000 RTP/SAVP 0\n", "travels by"),
        ("m=audio 5000 RTP/AVP 18\n", "none of the formats"),
        ("m=audio 5000 RTP/AVP 101\na=rtpmap:101 telephone-event/8000\n", "none of the formats"),
        ("m=audio 5000 RTP/AVP 99\n", "none of the formats"), ("m=audio x RTP/AVP 0\n", "not understood"),
        ("m=audio 5000 RTP/AVP\n", "not understood"), (pcmu + "c=IN IP4 239.1.1.1/1\n", "multicast"),
        (pcmu + "c=IN IP6 ff15::101\n", "multicast"),
    ])
    func `an answer that does not fit the offer is refused, and the offer goes on waiting`(
        media: String,
        reason: String
    ) throws {
        var session = OfferAnswer(.audio([.pcmu, .events(101)]))
        _ = try session.makeOffer()
        let answer = try Self.description(media)
        let error = failure { () throws(SDPError) in try session.receiveAnswer(answer) }
        #expect(error?.code == .answerDoesNotFit && error?.message.contains(reason) ?? false, "\(error?.message ?? "")")
        #expect(session.state == .ourOffer && session.agreed == nil)
        try session.receiveAnswer(Self.description(Self.pcmu))
        #expect(session.agreed?.audio != nil)
    }

    @Test func `an answer or an offer without an address, or of another version of SDP, is refused`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.makeOffer()
        let nowhere = try SessionDescription(parsing: "v=0\n\(Self.pcmu)")
        let other = try SessionDescription(parsing: "v=1\nc=IN IP4 192.0.2.2\n\(Self.pcmu)")
        #expect(failure { () throws(SDPError) in try session.receiveAnswer(nowhere) }?.code == .answerDoesNotFit)
        #expect(failure { () throws(SDPError) in try session.receiveAnswer(other) }?.code == .invalidLine)
        session.rollBack()
        #expect(failure { () throws(SDPError) in try session.receiveOffer(other) }?.code == .invalidLine)
        try session.receiveOffer(nowhere)
        let error = failure { () throws(SDPError) in try session.makeAnswer() }
        #expect(error?.code == .notAcceptable && error?.message.contains("no address") ?? false)
    }

    @Test func `formats that an answer adds are not sent, and those of the offer are`() throws {
        var session = OfferAnswer(.audio([.pcmu, .pcma]))
        _ = try session.makeOffer()
        try session.receiveAnswer(Self.description("m=audio 5000 RTP/AVP 18 8\n"))
        #expect(session.agreed?.audio?.sending.codecs == [.pcma] && session.agreed?.audio?.receiving.codecs == [.pcma])
    }

    @Test func `a number that an answer does not describe means what the offer said`() throws {
        var session = OfferAnswer(.audio([.opus(), .pcmu]))
        _ = try session.makeOffer()
        try session.receiveAnswer(Self.description("m=audio 5000 RTP/AVP 96\n"))
        #expect(session.agreed?.audio?.sending.codecs.names == ["96 opus/48000"])
    }

    @Test func `media off in the answer is no failure`() throws {
        var (session, config) = (OfferAnswer(.audio([.pcmu])), SessionConfiguration.audio([.pcmu]))
        _ = try session.makeOffer()
        try session.receiveAnswer(Self.description("m=audio 0 RTP/AVP\n"))
        #expect(session.agreed?.media == [] && session.agreed?.audio == nil)
        // An offer of what is agreed leaves it off, one of everything asks for it again, in its place.
        #expect(try session.makeOffer(.agreedFormats).section(0) == ["m=audio 0 RTP/AVP 0"])
        session.rollBack()
        config.media[0].port = 40002
        session.configuration = config
        #expect(try session.makeOffer().section(0)[0] == "m=audio 40002 RTP/AVP 0")
        try session.receiveAnswer(Self.description(Self.pcmu))
        #expect(session.agreed?.changes(since: nil) == [0: [.started]])
    }

    @Test(arguments: [
        "m=video 5002 RTP/AVP 31 32", "m=image 5002 udptl t38", "m=text 5002 RTP/AVP 98",
        "m=application 5002 UDP/BFCP *",
        "m=message 5002 TCP/MSRP *", "m=x-hologram 5002 RTP/AVP 0", "m=audio 5002 RTP/SAVP 0",
        "m=audio 5002 TCP/RTP/AVP 0",
        "m=audio 5002 UDP/TLS/RTP/SAVPF 0", "m=audio 5002 X/Y/Z a b", "m=audio 5002 RTP/AVP 18",
        "m=audio 5002 RTP/AVP 96",
        "m=audio 0 RTP/AVP 0", "m=audio 0 RTP/AVP", "m=audio 5002 RTP/AVP 0\nc=IN IP4 224.2.1.1/127",
        "m=audio 5002 RTP/AVP 0\nc=IN IP6 ff15::101", "m=audio 5002 RTP/AVP 0\na=rtcp-mux-only",
    ])
    func `a line that cannot be taken is refused by port 0 and stays`(line: String) throws {
        for (offer, place) in [(line + "\n" + Self.pcmu, 0), (Self.pcmu + line + "\n", 1)] {
            var session = OfferAnswer(.audio([.pcmu]) { $0.isMultiplexed = false })
            let answer = try session.answer(Self.description(offer))
            let refused = answer.section(place)
            let words = line.split(separator: "\n")[0].split(separator: " ")
            #expect(refused == ["\(words[0]) 0 \(words[2]) \(words.count > 3 ? words[3] : "0")"])
            #expect(answer.media[1 - place].port == 40000 && session.agreed?.media.map(\.lineIndex) == [1 - place])
            // It is off in our offers, too.
            let again = try session.makeOffer()
            #expect(again.section(place) == refused && again.media.count == 2)
        }
        var alone = OfferAnswer(.audio([.pcmu]) { $0.isMultiplexed = false })
        try alone.receiveOffer(Self.description(line + "\n"))
        let isOff = line.hasPrefix("m=audio 0")
        let error = failure { () throws(SDPError) in try alone.makeAnswer() }
        #expect(isOff ? error == nil : error?.code == .notAcceptable)
        #expect(isOff ? alone.agreed?.media == [] : alone.agreed == nil)
    }

    @Test func `an offer with fewer lines, or with one that is not understood, is refused`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.description(Self.pcmu + "m=video 5002 RTP/AVP 31\n"))
        let fewer = try Self.description(Self.pcmu)
        #expect(failure { () throws(SDPError) in try session.receiveOffer(fewer) }?.code == .invalidOffer)
        let broken = try Self.description(Self.pcmu + "m=video\n")
        #expect(failure { () throws(SDPError) in try session.receiveOffer(broken) }?.code == .invalidLine)
        #expect(session.state == .stable)
    }

    @Test func `a slot that is off is used again for its kind, and others get lines of their own`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.description(Self.pcmu + "m=video 5002 RTP/AVP 31\n"))
        var video = MediaConfiguration(
            port: 40010,
            formats: [PayloadFormat(payloadType: 31, encodingName: "H261", clockRate: 90000)]
        )
        video.kind = "video"
        var text = MediaConfiguration(
            port: 40020,
            formats: [PayloadFormat(payloadType: 98, encodingName: "t140", clockRate: 1000)]
        )
        text.kind = "text"
        session.configuration.media += [text, video]
        // What is agreed is not touched by wishes.
        #expect(try session.makeOffer(.agreedFormats).media.map(\.port) == [40000, 0])
        session.rollBack()
        session.configuration.media += [text, video]
        let offer = try session.makeOffer()
        #expect(
            offer.media.map(\.kind) == ["audio", "video", "text"] && offer.media.map(\.port) == [40000, 40010, 40020]
        )
        try session.receiveAnswer(Self.description(Self.pcmu + "m=video 5002 RTP/AVP 31\nm=text 0 RTP/AVP 98\n"))
        #expect(session.agreed?.media.map(\.kind) == ["audio", "video"])
        // Turned off, it keeps its line.
        session.configuration.media[2].port = 0
        #expect(try session.makeOffer().media.map(\.port) == [40000, 0, 40020])
    }

    @Test func `a line may change its kind in an offer of the other side`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.description(Self.pcmu))
        let before = session.agreed
        // Fax in the place of audio (RFC 3264, section 8.3.3): not taken, the call goes on as it was.
        try session.receiveOffer(Self.description("m=image 5000 udptl t38\n"))
        #expect(failure { () throws(SDPError) in try session.makeAnswer() }?.code == .notAcceptable)
        session.rollBack()
        #expect(session.agreed == before)
        // Audio moves to a line of its own.
        let answer = try session.answer(Self.description("m=image 5000 udptl t38\n" + Self.pcmu))
        #expect(answer.media.map(\.port) == [0, 40000])
        #expect(session.agreed?.changes(since: before) == [0: [.ended], 1: [.started]])
        #expect(try session.makeOffer().media.map(\.port) == [0, 40000])
    }

    @Test func `sixteen lines are all that a session has`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        let lines = String(repeating: "m=video 5002 RTP/AVP 31\n", count: 15)
        _ = try session.answer(Self.description(Self.pcmu + lines))
        session.configuration.media.append(MediaConfiguration(port: 40002, formats: [.pcma]))
        let offer = try session.makeOffer()
        #expect(offer.media.count == 16 && offer.media[1].kind == "audio" && offer.media[1].port == 40002)
        session.rollBack()
        for index in 0..<16 {
            session.configuration.media.append(MediaConfiguration(port: 40004 + UInt16(index), formats: [.pcma]))
        }
        #expect(failure { () throws(SDPError) in try session.makeOffer() }?.code == .limitExceeded)
    }

    @Test func `of a secured and a plain line the one that we prefer is taken`() throws {
        let offer = try Self.description("m=audio 5000 RTP/AVP 0\nm=audio 5002 RTP/SAVP 0\na=crypto:1 X inline:a\n")
        let cases: [([MediaProtocol], [UInt16])] = [
            ([.rtpSAVP, .rtpAVP], [0, 40000]), ([.rtpAVP, .rtpSAVP], [40000, 0]), ([.rtpSAVP], [0, 40000]),
            ([.rtpAVP], [40000, 0]),
        ]
        for (protocols, ports) in cases {
            var session = OfferAnswer(.audio([.pcmu]) { $0.protocols = protocols })
            #expect(try session.answer(offer).media.map(\.port) == ports)
            // The line that carries the call goes on, whatever is preferred by now.
            session.configuration.media[0].protocols = [.rtpAVP, .rtpSAVP]
            #expect(try session.answer(offer).media.map(\.port) == ports)
        }
    }

    @Test func `a medium that is secured does not go on in the clear`() throws {
        var session = OfferAnswer(.audio([.pcmu]) { $0.protocols = [.rtpSAVP, .rtpAVP] })
        _ = try session.answer(Self.description("m=audio 5000 RTP/SAVP 0\n"))
        let before = session.agreed
        for plain in ["m=audio 5000 RTP/AVP 0\n", "m=audio 0 RTP/SAVP 0\nm=audio 5000 RTP/AVP 0\n"] {
            try session.receiveOffer(Self.description(plain))
            let error = failure { () throws(SDPError) in try session.makeAnswer() }
            #expect(error?.code == .notAcceptable && error?.message.contains("in the clear") ?? false)
            session.rollBack()
        }
        #expect(session.agreed == before)
        // Our own offers stay with it, too, as long as it is wished at all.
        session.configuration.media[0].protocols = [.rtpAVP, .rtpSAVP]
        #expect(try session.makeOffer().media[0].transport == .rtpSAVP)
        session.rollBack()
        session.configuration.media[0].protocols = [.dtlsSAVP]
        #expect(try session.makeOffer().media[0].transport == .dtlsSAVP)
    }

    @Test func `keys and path of both sides are told as they were written`() throws {
        var session = OfferAnswer(.audio([.pcmu]) { $0.protocols = [.rtpSAVP] })
        try session.receiveOffer(
            Self.description(
                "a=fingerprint:sha-256 AA\nm=audio 5002 RTP/SAVP 0\na=crypto:1 X inline:a\na=crypto:2 Y inline:b\n"
            )
        )
        #expect(session.pendingOffer?.media[0].keyingAttributes.cryptoLines.map(\.tag) == [1, 2])
        session.configuration.media[0].attributes = [
            SDPAttribute("crypto", "2 Y inline:c"), SDPAttribute("label", "x"),
        ]
        let answer = try session.makeAnswer()
        #expect(answer.section(0).contains("a=crypto:2 Y inline:c") && answer.media[0].transport == .rtpSAVP)
        let audio = try #require(session.agreed?.audio)
        #expect(audio.transport == .rtpSAVP && audio.localSecurity == [SDPAttribute("crypto", "2 Y inline:c")])
        #expect(audio.remoteSecurity.map(\.name) == ["fingerprint", "crypto", "crypto"])
    }

    @Test(arguments: [
        (true, true, "a=rtcp-mux\n", true), (true, false, "a=rtcp-mux\n", false), (true, true, "", false),
        (false, true, "a=rtcp-mux\n", false),
        (true, true, "a=rtcp-mux-only\n", true),
    ])
    func `one port is shared only when both want it`(isOffered: Bool, isWished: Bool, line: String, expected: Bool)
        throws
    {
        // As the one who answers.
        if isOffered {
            var session = OfferAnswer(
                .audio([.pcmu]) {
                    $0.isMultiplexed = isWished; $0.controlPort = 40007
                }
            )
            let answer = try session.answer(Self.description(Self.pcmu + line + "a=rtcp:5005\n"))
            let audio = try #require(session.agreed?.audio)
            #expect(answer.media[0].isMultiplexed == expected && audio.isMultiplexed == expected)
            #expect(
                audio.remoteControl?.port == (expected ? 5000 : 5005)
                    && audio.localControl.port == (expected ? 40000 : 40007)
            )
            #expect(answer.section(0).contains("a=rtcp:40007") == !expected)
        }
        // As the one who offers.
        var session = OfferAnswer(.audio([.pcmu]) { $0.isMultiplexed = isOffered && isWished })
        _ = try session.makeOffer()
        try session.receiveAnswer(Self.description(Self.pcmu + line))
        let audio = try #require(session.agreed?.audio)
        #expect(audio.isMultiplexed == expected && audio.remoteControl?.port == (expected ? 5000 : 5001))
    }

    @Test func `types that are RTCP's on a shared port are not taken there`() throws {
        var session = OfferAnswer(.audio([.opus(64)]))
        let answer = try session.answer(
            Self.description("m=audio 5000 RTP/AVP 72\na=rtpmap:72 opus/48000/2\na=rtcp-mux\n")
        )
        #expect(!answer.media[0].isMultiplexed && session.agreed?.audio?.receiving.codecs.map(\.payloadType) == [72])
        // Nor offered, shared or not.
        var offering = OfferAnswer(.audio([.opus(72)]))
        #expect(try offering.makeOffer().media[0].formats.map(\.payloadType) == [96])
    }

    @Test(
        arguments: [
            ("", nil, nil, nil), ("", 20, nil, 20), ("a=ptime:30\n", 20, nil, 30),
            ("a=ptime:30\na=maxptime:20\n", nil, 20, 20),
            ("a=maxptime:10\n", 20, 10, 10), ("a=maxptime:60\na=ptime:20\na=ptime:40\n", nil, 60, 20),
        ] as [(String, Int?, Int?, Int?)]
    )
    func `packets are as long as the other side wants them, and never longer than it takes`(
        lines: String,
        own: Int?,
        maximum: Int?,
        expected: Int?
    ) throws {
        var session = OfferAnswer(.audio([.pcmu]) { $0.packetTime = own })
        let answer = try session.answer(Self.description(Self.pcmu + lines))
        #expect(session.agreed?.audio?.packetTime == expected && session.agreed?.audio?.maximumPacketTime == maximum)
        #expect(answer.media[0].packetTime == own)
    }

    @Test func `the other side's bit rate is told`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.description("m=audio 5000 RTP/AVP 0\nb=AS:64\n"))
        let before = session.agreed
        #expect(before?.audio?.maximumBitRate == 64_000)
        _ = try session.answer(Self.description("m=audio 5000 RTP/AVP 0\nb=TIAS:48000\n"))
        #expect(session.agreed?.changes(since: before) == [0: [.bitRate]])
    }

    @Test func `the answer has the times of the offer`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        let answer = try session.answer(
            SessionDescription(parsing: "v=0\nc=IN IP4 192.0.2.2\nt=2873397496 2873404696\n\(Self.pcmu)")
        )
        #expect(answer.texts.contains("t=2873397496 2873404696"))
    }

    @Test func `a copy answers for itself, as the branches of a fork do`() throws {
        var calling = OfferAnswer(.audio())
        _ = try calling.makeOffer()
        var branch = calling
        try branch.receiveAnswer(Self.description("m=audio 6000 RTP/AVP 8\n"))
        #expect(calling.state == .ourOffer && branch.state == .stable)
        try calling.receiveAnswer(Self.description(Self.pcmu))
        #expect(calling.agreed?.audio?.sending.codecs == [.pcmu] && branch.agreed?.audio?.sending.codecs == [.pcma])
    }

    @Test func `only bytes of the offer and of the configuration decide what is written`() throws {
        func run() throws -> [UInt8] {
            var session = OfferAnswer(.audio())
            let answer = try session.answer(
                Self.description("m=audio 5000 RTP/AVP 0 8 101\na=rtpmap:101 telephone-event/8000\n")
            )
            return answer.bytes + (try session.makeOffer()).bytes
        }
        #expect(try run() == run())
    }
}
