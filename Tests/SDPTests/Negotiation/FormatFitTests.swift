import Testing

@testable import SDP

@Suite struct FormatFitTests {
    private static func offer(_ formats: [PayloadFormat], _ change: (inout MediaConfiguration) -> Void = { _ in })
        throws -> SessionDescription
    {
        var session = OfferAnswer(.audio(formats, address: "192.0.2.2", change))
        return try session.makeOffer()
    }

    private static func format(
        _ number: UInt8,
        _ name: String,
        _ rate: Int = 8000,
        _ parameters: String? = nil,
        channels: Int = 1
    ) -> PayloadFormat {
        PayloadFormat(
            payloadType: number,
            encodingName: name,
            clockRate: rate,
            channelCount: channels,
            parameters: parameters
        )
    }

    @Test func `the answer has the numbers of the offer, whatever ours are`() throws {
        var session = OfferAnswer(.audio([.pcma, .opus(96), .events(97), .iLBC]))
        let answer = try session.answer(
            Self.offer([Self.format(120, "ILBC", 8000), .opus(121, nil), Self.format(122, "telephone-event"), .pcma])
        )
        #expect(
            answer.media[0].formats.names == [
                "120 iLBC/8000", "121 opus/48000", "122 telephone-event/8000", "8 PCMA/8000",
            ]
        )
        #expect(session.agreed?.audio?.sending.codecs.map(\.payloadType) == [120, 121, 8])
    }

    @Test func `the order is the offerer's, or ours by a switch`() throws {
        var session = OfferAnswer(.audio([.pcma, .pcmu, .events()]))
        let offer = try Self.offer([.events(), .pcmu, .g722, .pcma])
        #expect(try session.answer(offer).media[0].formatNames == ["101", "0", "8"])
        #expect(session.agreed?.audio?.sending.codecs.first == .pcmu)
        session.configuration.formatOrder = .ours
        #expect(try session.answer(offer).media[0].formatNames == ["8", "0", "101"])
        #expect(session.agreed?.audio?.sending.codecs.first == .pcma)
    }

    @Test(arguments: [
        (format(0, "PCMU"), format(0, "pcmu"), true), (format(96, "L16", 44100), format(97, "l16", 44100), true),
        (format(96, "L16", 44100), format(97, "L16", 44100, channels: 2), false),
        (format(96, "L16", 44100), format(97, "L16", 48000), false),
        (format(96, "opus", 48000), format(97, "OPUS", 48000, channels: 2), true),
        (format(96, "opus", 16000), format(97, "opus", 48000, channels: 2), false),
        (format(96, "speex"), format(96, "speex", 16000), false), (format(96, "a"), format(96, "ab"), false),
    ])
    func `one codec is one name in any case, one clock rate, and one count of channels`(
        theirs: PayloadFormat,
        ours: PayloadFormat,
        isSame: Bool
    ) {
        #expect(FormatPair.matching([theirs], [ours], by: FormatFit.standard).count == (isSame ? 1 : 0))
    }

    @Test func `Opus is written with two channels`() throws {
        #expect(try Self.offer([Self.format(96, "opus", 48000)]).section(0)[1] == "a=rtpmap:96 opus/48000/2")
    }

    @Test(
        arguments: [
            ("G729", nil, nil, nil, nil), ("G729", "annexb=no", nil, "annexb=no", "annexb=no"),
            ("G729", nil, "annexb=no", "annexb=no", "annexb=no"),
            ("G729", "annexb=yes", "annexb=NO", "annexb=no", "annexb=no"),
            ("G729", "annexb=yes", nil, "annexb=yes", nil),
            ("iLBC", nil, nil, "mode=30", "mode=30"), ("iLBC", "mode=20", "mode=20", "mode=20", "mode=20"),
            ("iLBC", "mode=20", nil, "mode=30", "mode=30"),
            ("iLBC", "mode=30", "mode=20", "mode=30", "mode=30"),
            ("opus", "stereo=1", "useinbandfec=1", "stereo=1", "useinbandfec=1"),
            ("AMR", "octet-align=1", "octet-align=1;mode-set=7", "octet-align=1", "octet-align=1;mode-set=7"),
            ("AMR", nil, "octet-align=0", nil, "octet-align=0"), ("x-new", "a", "b", "a", "b"),
        ] as [(String, String?, String?, String?, String?)]
    )
    func `parameters of a codec go together`(
        name: String,
        theirs: String?,
        ours: String?,
        sending: String?,
        receiving: String?
    ) {
        let fit = FormatFit.standard(Self.format(96, name, 8000, theirs), Self.format(96, name, 8000, ours))
        #expect(fit == FormatFit(sending: sending, receiving: receiving))
    }

    @Test(
        arguments: [
            ("octet-align=1", nil), ("octet-align=1", "octet-align=0"), (nil, "crc=1"), ("interleaving=2", nil),
            ("robust-sorting=1", "robust-sorting=0"),
        ] as [(String?, String?)]
    )
    func `AMR of another layout is another format`(theirs: String?, ours: String?) {
        for name in ["AMR", "amr-wb"] {
            #expect(FormatFit.standard(Self.format(96, name, 8000, theirs), Self.format(96, name, 8000, ours)) == nil)
        }
    }

    @Test func `each of two layouts finds its own, in offers and in answers`() throws {
        let both = [Self.format(96, "AMR", 8000, "octet-align=1"), Self.format(97, "AMR", 8000)]
        var session = OfferAnswer(.audio(both))
        let answer = try session.answer(
            Self.offer([Self.format(100, "AMR"), Self.format(101, "AMR", 8000, "octet-align=1")])
        )
        #expect(answer.media[0].formats.map(\.parameters) == [nil, "octet-align=1"])
        var offering = OfferAnswer(.audio(both))
        _ = try offering.makeOffer()
        try offering.receiveAnswer(try Self.offer([Self.format(97, "AMR")]))
        #expect(offering.agreed?.audio?.receiving.codecs.map(\.payloadType) == [97])
    }

    @Test func `a codec's own rule decides`() throws {
        let evs = Self.format(96, "EVS", 16000, "br=24.4")
        var session = OfferAnswer(configuration: .audio([evs]), sessionID: 1) { theirs, ours in
            guard ours.isNamed("EVS") else { return FormatFit.standard(theirs, ours) }
            guard theirs.parameter("br") == ours.parameter("br") else { return nil }
            return FormatFit(sending: "both", receiving: "both")
        }
        let answer = try session.answer(
            Self.offer([Self.format(110, "EVS", 16000, "br=13.2"), Self.format(111, "EVS", 16000, "br=24.4")])
        )
        #expect(answer.media[0].formats.names == ["111 EVS/16000"] && answer.media[0].formats[0].parameters == "both")
    }

    @Test(arguments: [
        // Offered and ours, by their rates; what the answer has.
        ([8000], [48000, 8000], [PayloadFormat.opus()], [8000]),
        ([48000, 8000], [48000, 8000], [.opus()], [48000]),
        ([48000, 8000], [48000, 8000], [.opus(), .pcmu], [48000, 8000]),
        ([48000, 8000], [48000, 8000], [.pcmu], [8000]),
        ([16000], [16000, 8000], [.pcmu], [16000]),
        ([16000], [8000], [.pcmu], []),
        ([48000, 16000, 8000], [8000], [.opus(), .pcmu], [8000]),
    ])
    func `events are taken for the clock rates of the codecs, else at 8000, else as they come`(
        offered: [Int],
        own: [Int],
        codecs: [PayloadFormat],
        expected: [Int]
    ) throws {
        let theirs = offered.enumerated().map { PayloadFormat.events(100 + UInt8($0), $1, nil) }
        let ours = own.enumerated().map { PayloadFormat.events(110 + UInt8($0), $1, "0-16") }
        var session = OfferAnswer(.audio(codecs + ours))
        _ = try session.answer(Self.offer(codecs + theirs))
        let audio = try #require(session.agreed?.audio)
        #expect(
            audio.receiving.telephoneEvents.map(\.clockRate) == expected
                && audio.sending.telephoneEvents.map(\.clockRate) == expected
        )
        #expect(audio.receiving.telephoneEvents.allSatisfy { $0.parameters == "0-15" })
    }

    @Test func `events without one in common are left out`() throws {
        var session = OfferAnswer(.audio([.pcmu, .events(101, 8000, "0-15")]))
        let answer = try session.answer(Self.offer([.pcmu, .events(101, 8000, "32-36")]))
        #expect(answer.media[0].formatNames == ["0"])
    }

    @Test func `events alone are no audio, unless they are all that we want`() throws {
        var session = OfferAnswer(.audio([.pcmu, .events()]))
        try session.receiveOffer(Self.offer([.pcma, .events()]))
        #expect(failure { () throws(SDPError) in try session.makeAnswer() }?.code == .notAcceptable)
        var keys = OfferAnswer(.audio([.events()]))
        #expect(try keys.answer(Self.offer([.events(99)])).media[0].formatNames == ["99"])
        try keys.receiveOffer(Self.offer([.pcma, .events()]))
        #expect(failure { () throws(SDPError) in try keys.makeAnswer() }?.code == .notAcceptable)
    }

    @Test func `comfort noise is taken for the clock rates of the codecs`() throws {
        let wide = Self.format(105, "CN", 16000)
        var session = OfferAnswer(.audio([.pcmu, .noise, wide]))
        _ = try session.answer(Self.offer([.pcmu, .noise, wide]))
        #expect(session.agreed?.audio?.receiving.comfortNoise == [.noise])
        #expect(session.agreed?.audio?.sending.codecs == [.pcmu])
    }

    @Test(
        arguments: [
            ("111/111", [PayloadFormat.opus()], "111/111"), ("111", [.opus()], "111"), (nil, [.opus()], ""),
            ("111/0", [.opus()], nil), ("111/0", [.opus(), .pcmu], "111/0"),
            ("111/x", [.opus()], nil), ("111/111", [.pcmu], nil), ("/", [.opus()], nil),
        ] as [(String?, [PayloadFormat], String?)]
    )
    func `redundancy is taken when all that it repeats is`(parameters: String?, own: [PayloadFormat], expected: String?)
        throws
    {
        let red = Self.format(63, "red", 48000, "96/96", channels: 2)
        var session = OfferAnswer(.audio(own + [red]))
        let text = """
            v=0
            c=IN IP4 192.0.2.2
            m=audio 5000 RTP/AVP 63 111 0
            a=rtpmap:63 red/48000/2
            a=rtpmap:111 opus/48000/2
            """ + (parameters.map { "\na=fmtp:63 \($0)" } ?? "")
        let answer = try session.answer(text)
        let found = answer.media[0].formats.first { $0.isNamed("red") }
        #expect(found.map { $0.parameters ?? "" } == expected)
        #expect(session.agreed?.audio?.sending.redundancy.map(\.payloadType) == (expected == nil ? [] : [63]))
    }

    @Test func `redundancy follows the numbers of what it repeats`() throws {
        var (first, second) = (
            OfferAnswer(.audio([.opus(111), PayloadFormat(redundant: .opus(111), payloadType: 63)])),
            OfferAnswer(
                .audio([.opus(96), PayloadFormat(redundant: .opus(96), payloadType: 97)], address: "192.0.2.2")
            )
        )
        try first.exchange(with: &second)
        #expect(second.agreed?.audio?.receiving.redundancy.map(\.parameters) == ["111/111"])
        // Opus has the number 111 in this session: the second's own offer repeats that.
        let offer = try second.makeOffer()
        #expect(
            offer.media[0].formats.map(\.payloadType) == [111, 63] && offer.media[0].formats[1].parameters == "111/111"
        )
        second.rollBack()
        // An answer without the codec has no redundancy, either.
        _ = try first.makeOffer()
        let other = failure { () throws(SDPError) in
            try first.receiveAnswer(
                try SessionDescription(parsing: "v=0\nc=IN IP4 192.0.2.2\nm=audio 5000 RTP/AVP 63\na=fmtp:63 111/111\n")
            )
        }
        #expect(other?.code == .answerDoesNotFit)
    }

    @Test func `a number never gets another meaning`() throws {
        var (first, second) = (
            OfferAnswer(.audio([.opus(96), .events(101)])),
            OfferAnswer(.audio([.opus(110), .events(111)], address: "192.0.2.2"))
        )
        try first.exchange(with: &second)
        // 96 and 101 are taken in this session, though the wishes give them to others.
        second.configuration.media[0].formats = [
            Self.format(96, "iLBC"), .opus(97), .events(98), Self.format(101, "speex"),
        ]
        let offer = try second.makeOffer()
        #expect(
            offer.media[0].formats.names == [
                "97 iLBC/8000", "96 opus/48000", "101 telephone-event/8000", "98 speex/8000",
            ]
        )
        // What a refused offer gave a number keeps it.
        second.rollBack()
        second.configuration.media[0].formats = [Self.format(97, "GSM-EFR"), Self.format(98, "SPEEX"), .opus(1)]
        #expect(try second.makeOffer().media[0].formats.names == ["99 GSM-EFR/8000", "98 SPEEX/8000", "96 opus/48000"])
    }

    @Test func `static types keep their numbers, and a wish for one that means something else is not met`() throws {
        let formats = [Self.format(8, "opus", 48000), .pcma, Self.format(0, "PCMU"), Self.format(99, "PCMU"), .pcmu]
        #expect(
            try Self.offer(formats).media[0].formats.names == [
                "96 opus/48000", "8 PCMA/8000", "0 PCMU/8000", "99 PCMU/8000", "97 PCMU/8000",
            ]
        )
    }

    @Test func `there are as many dynamic numbers as there are`() throws {
        let many = (0..<62).map { Self.format(96, "x\($0)") }
        #expect(Set(try Self.offer(Array(many.prefix(61))).media[0].formats.map(\.payloadType)).count == 61)
        var session = OfferAnswer(.audio(many))
        #expect(failure { () throws(SDPError) in try session.makeOffer() }?.code == .invalidConfiguration)
    }

    @Test func `the other side may give a number another meaning, and is followed`() throws {
        var session = OfferAnswer(.audio([.opus(96), .iLBC]))
        _ = try session.answer(Self.offer([.opus(96)]))
        // A server that puts another phone in the place of the first does so.
        _ = try session.answer(Self.offer([Self.format(96, "iLBC"), .opus(100)]))
        #expect(session.agreed?.audio?.receiving.codecs.names == ["96 iLBC/8000", "100 opus/48000"])
        #expect(try session.makeOffer().media[0].formats.names == ["100 opus/48000", "96 iLBC/8000"])
    }

    @Test func `a change of codecs is offered whole, a hold as it was described`() throws {
        var (first, second) = (
            OfferAnswer(.audio([.opus(), .pcmu])), OfferAnswer(.audio([.pcmu, .opus(97)], address: "192.0.2.2"))
        )
        try first.exchange(with: &second)
        #expect(try first.makeOffer(.agreedFormats).media[0].formatNames == ["96", "0"])
        first.rollBack()
        first.configuration.media[0].formats = [.pcmu, .g722]
        #expect(try first.makeOffer(.agreedFormats).media[0].formatNames == ["96", "0"])
        first.rollBack()
        first.configuration.media[0].formats = [.pcmu, .g722]
        #expect(try first.makeOffer().media[0].formatNames == ["0", "9"])
    }
}
