import Testing

@testable import SDP

/// Examples of RFC 4317, each by its section; what Alice and Bob write there is given to us as the other one.
@Suite struct RFC4317ExampleTests {
    static func alice(_ version: Int, address: String = "host.atlanta.example.com") -> String {
        "v=0\no=alice 2890844526 \(version) IN IP4 host.atlanta.example.com\ns=\nc=IN IP4 \(address)\nt=0 0\n"
    }

    static func bob(_ version: Int, address: String = "host.biloxi.example.com") -> String {
        "v=0\no=bob 2808844564 \(version) IN IP4 host.biloxi.example.com\ns=\nc=IN IP4 \(address)\nt=0 0\n"
    }

    private static let both = """
        m=audio 49170 RTP/AVP 0 8 97
        a=rtpmap:0 PCMU/8000
        a=rtpmap:8 PCMA/8000
        a=rtpmap:97 iLBC/8000
        m=video 51372 RTP/AVP 31 32
        a=rtpmap:31 H261/90000
        a=rtpmap:32 MPV/90000
        """

    private static func session(_ formats: [PayloadFormat], port: UInt16 = 49174) -> OfferAnswer {
        OfferAnswer(.audio(formats, address: "host.biloxi.example.com", port: port) { $0.isMultiplexed = false })
    }

    private func first(_ description: SessionDescription) -> [String] {
        description.sections.indices.map { description.section($0)[0] }
    }

    @Test func `2-1, audio is taken in one codec, video is refused`() throws {
        var bob = Self.session([.pcmu])
        let answer = try bob.answer(Self.alice(2_890_844_526) + Self.both)
        #expect(first(answer) == ["m=audio 49174 RTP/AVP 0", "m=video 0 RTP/AVP 31"])
        #expect(bob.agreed?.media.count == 1)
        #expect(bob.agreed?.audio?.remote == .init(host: "host.atlanta.example.com", port: 49170))
        #expect(bob.agreed?.audio?.remoteControl?.port == 49171)
    }

    @Test func `2-2, several codecs are taken, then one is chosen and video is dropped`() throws {
        var bob = Self.session([.pcmu, .pcma], port: 49172)
        let answer = try bob.answer(Self.alice(2_890_844_526) + Self.both)
        #expect(first(answer) == ["m=audio 49172 RTP/AVP 0 8", "m=video 0 RTP/AVP 31"])
        let before = bob.agreed
        let second = """
            m=audio 51372 RTP/AVP 0
            a=rtpmap:0 PCMU/8000
            m=video 0 RTP/AVP 31
            a=rtpmap:31 H261/90000
            """
        let answered = try bob.answer(Self.alice(2_890_844_527) + second)
        #expect(first(answered) == ["m=audio 49172 RTP/AVP 0", "m=video 0 RTP/AVP 31"])
        #expect(answered.version == answer.version + 1)
        #expect(bob.agreed?.changes(since: before) == [0: [.remoteAddress, .sendFormats, .receiveFormats]])
    }

    @Test func `2-4, events on a line of their own`() throws {
        var configuration = SessionConfiguration.audio([.iLBC], port: 49172)
        configuration.media.append(MediaConfiguration(port: 49174, formats: [.events(98)]))
        configuration.media[1].direction = .receiveOnly
        var bob = OfferAnswer(configuration)
        let offer = """
            m=audio 49170 RTP/AVP 0 97
            a=rtpmap:0 PCMU/8000
            a=rtpmap:97 iLBC/8000
            m=audio 49172 RTP/AVP 98
            a=rtpmap:98 telephone-event/8000
            a=sendonly
            """
        let answer = try bob.answer(Self.alice(2_890_844_526) + offer)
        #expect(first(answer) == ["m=audio 49172 RTP/AVP 97", "m=audio 49174 RTP/AVP 98"])
        #expect(answer.media.map(\.direction) == [.sendReceive, .receiveOnly])
        #expect(bob.agreed?.media[1].receiving.telephoneEvents.map(\.payloadType) == [98])
        #expect(bob.agreed?.media[1].receiving.codecs == [])
    }

    @Test func `2-6, of two audio lines the second is taken`() throws {
        var bob = Self.session([.iLBC, .events(101)], port: 49170)
        let offer = """
            m=audio 49170 RTP/AVP 0
            a=rtpmap:0 PCMU/8000
            m=audio 51372 RTP/AVP 97 101
            a=rtpmap:97 iLBC/8000
            a=rtpmap:101 telephone-event/8000
            """
        let answer = try bob.answer(Self.alice(2_890_844_526) + offer)
        #expect(first(answer) == ["m=audio 0 RTP/AVP 0", "m=audio 49170 RTP/AVP 97 101"])
        #expect(bob.agreed?.audio?.lineIndex == 1)
    }

    @Test func `2-7, the answer's own number is the one we send with`() throws {
        var alice = Self.session([.pcmu, .pcma, .iLBC])
        _ = try alice.makeOffer()
        let answer = "m=audio 49172 RTP/AVP 99\na=rtpmap:99 iLBC/8000\n"
        try alice.receiveAnswer(try SessionDescription(parsing: Self.bob(2_808_844_564) + answer))
        #expect(alice.agreed?.audio?.sending.codecs.map(\.payloadType) == [99])
        #expect(alice.agreed?.audio?.receiving.codecs.map(\.payloadType) == [97])
    }

    @Test func `3-1, hold and resume by the other side, with a new address`() throws {
        var alice = Self.session([.pcmu, .iLBC], port: 49170)
        _ = try alice.makeOffer()
        let line = "m=audio 49172 RTP/AVP 97\na=rtpmap:97 iLBC/8000\n"
        try alice.receiveAnswer(try SessionDescription(parsing: Self.bob(2_808_844_564) + line))
        let talking = try #require(alice.agreed)
        let held = try alice.answer(
            Self.bob(2_808_844_565, address: "placeholder.biloxi.example.com") + line + "a=sendonly\n"
        )
        #expect(held.media.map(\.direction) == [.receiveOnly])
        #expect(alice.agreed?.audio?.isHeldRemotely == true && alice.agreed?.audio?.isHeldLocally == false)
        #expect(alice.agreed?.audio?.direction == .receiveOnly)
        let changes = try #require(alice.agreed?.changes(since: talking)[0])
        #expect(changes.isSuperset(of: [.remoteAddress, .direction, .hold]) && !changes.contains(.sendCodec))
        let resumed = try alice.answer(Self.bob(2_808_844_566) + line.replacing("49172", with: "49170"))
        #expect(resumed.media.map(\.direction) == [.sendReceive] && resumed.version == held.version + 1)
        #expect(alice.agreed?.audio?.isHeldRemotely == false && alice.agreed?.audio?.remote?.port == 49170)
    }

    @Test func `3-2, hold with two streams`() throws {
        var configuration = SessionConfiguration.audio([.iLBC], port: 49170)
        configuration.media.append(MediaConfiguration(port: 49172, formats: [.events(98)]))
        configuration.media[1].direction = .sendOnly
        var alice = OfferAnswer(configuration)
        _ = try alice.makeOffer()
        let lines = """
            m=audio 49172 RTP/AVP 97
            a=rtpmap:97 iLBC/8000
            DIRECTION
            m=audio 49174 RTP/AVP 98
            a=rtpmap:98 telephone-event/8000
            a=recvonly
            """
        let accepted = Self.bob(2_808_844_564) + lines.replacing("DIRECTION", with: "a=sendrecv")
        try alice.receiveAnswer(try SessionDescription(parsing: accepted))
        let held = try alice.answer(Self.bob(2_808_844_565) + lines.replacing("DIRECTION", with: "a=sendonly"))
        #expect(held.media.map(\.direction) == [.receiveOnly, .sendOnly])
        #expect(alice.agreed?.media.map(\.isHeldRemotely) == [true, false])
    }

    @Test func `4-1, a second audio line is added at another host`() throws {
        var configuration = SessionConfiguration.audio([.pcmu, .iLBC], port: 49170)
        configuration.media.append(MediaConfiguration(port: 49172, formats: [.events(98)]))
        configuration.media[1].direction = .sendOnly
        var alice = OfferAnswer(configuration)
        alice.configuration.media[1].port = 0
        _ = try alice.makeOffer()
        let line = "m=audio 49170 RTP/AVP 97\na=rtpmap:97 iLBC/8000\n"
        try alice.receiveAnswer(try SessionDescription(parsing: Self.bob(2_808_844_564) + line))
        alice.configuration.media[1].port = 49172
        let second = """
            m=audio 48282 RTP/AVP 98
            c=IN IP4 mediaserver.biloxi.example.com
            a=rtpmap:98 telephone-event/8000
            a=recvonly
            """
        let answer = try alice.answer(Self.bob(2_808_844_565) + line + second)
        #expect(first(answer) == ["m=audio 49170 RTP/AVP 97", "m=audio 49172 RTP/AVP 98"])
        #expect(alice.agreed?.media[1].remote == .init(host: "mediaserver.biloxi.example.com", port: 48282))
        #expect(alice.agreed?.media[1].direction == .sendOnly)
    }

    @Test func `4-3, video is dropped, audio is not touched`() throws {
        var configuration = SessionConfiguration.audio([.iLBC], port: 49170)
        var video = MediaConfiguration(
            port: 49172,
            formats: [PayloadFormat(payloadType: 31, encodingName: "H261", clockRate: 90000)]
        )
        video.kind = "video"
        configuration.media.append(video)
        var alice = OfferAnswer(configuration)
        _ = try alice.makeOffer()
        let audio = "m=audio 49174 RTP/AVP 97\na=rtpmap:97 iLBC/8000\n"
        let on = Self.bob(2_808_844_564) + audio + "m=video 49170 RTP/AVP 31\na=rtpmap:31 H261/90000\n"
        try alice.receiveAnswer(try SessionDescription(parsing: on))
        let before = alice.agreed
        #expect(before?.media.map(\.kind) == ["audio", "video"])
        let answer = try alice.answer(
            Self.bob(2_808_844_565) + audio + "m=video 0 RTP/AVP 31\na=rtpmap:31 H261/90000\n"
        )
        #expect(first(answer) == ["m=audio 49170 RTP/AVP 97", "m=video 0 RTP/AVP 31"])
        #expect(alice.agreed?.changes(since: before) == [1: [.ended]])
    }

    @Test func `5-1, no media at first, then audio is added`() throws {
        var bob = Self.session([.iLBC], port: 49172)
        let answer = try bob.answer(Self.alice(2_890_844_526))
        #expect(answer.media.isEmpty && bob.agreed?.media == [])
        let offer = try bob.makeOffer()
        #expect(first(offer) == ["m=audio 49172 RTP/AVP 97"] && offer.version == answer.version + 1)
        try bob.receiveAnswer(
            try SessionDescription(
                parsing: Self.alice(2_890_844_527) + "m=audio 49170 RTP/AVP 97\na=rtpmap:97 iLBC/8000\n"
            )
        )
        #expect(bob.agreed?.audio?.direction == .sendReceive)
    }

    @Test func `5-2, an offer to nowhere is answered, and the address comes later`() throws {
        var bob = Self.session([.iLBC], port: 49170)
        let line = "m=audio 23442 RTP/AVP 97\na=rtpmap:97 iLBC/8000\n"
        _ = try bob.answer(Self.alice(2_890_844_526, address: "0.0.0.0") + line)
        #expect(bob.agreed?.audio?.remote == nil && bob.agreed?.audio?.direction == .receiveOnly)
        #expect(bob.agreed?.audio?.isHeldRemotely == true)
        let answer = try bob.answer(Self.alice(2_890_844_527) + line)
        #expect(answer.media.map(\.direction) == [.sendReceive])
        #expect(bob.agreed?.audio?.remote == .init(host: "host.atlanta.example.com", port: 23442))
    }
}
