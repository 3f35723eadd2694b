import Testing

@testable import SDP

/// The examples of RFC 3264, section 10.
@Suite struct RFC3264ExampleTests {
    private static let h261 = PayloadFormat(payloadType: 31, encodingName: "H261", clockRate: 90000)
    private static let mpv = PayloadFormat(payloadType: 32, encodingName: "MPV", clockRate: 90000)
    private static let g723 = PayloadFormat(payloadType: 4, encodingName: "G723", clockRate: 8000)
    private static let g729 = PayloadFormat(payloadType: 18, encodingName: "G729", clockRate: 8000)
    private static let events = PayloadFormat(payloadType: 110, encodingName: "telephone-events", clockRate: 8000)

    private static func medium(_ kind: String, _ port: UInt16, _ formats: [PayloadFormat]) -> MediaConfiguration {
        var medium = MediaConfiguration(port: port, formats: formats)
        medium.kind = kind
        medium.isMultiplexed = false
        return medium
    }

    private static func lines(_ description: SessionDescription) -> [String] {
        description.sections.indices.map { description.section($0)[0] }
    }

    /// Section 10.1.
    @Test func `basic exchange, on both sides`() throws {
        var alice = OfferAnswer(
            SessionConfiguration(
                address: "host.anywhere.com",
                media: [
                    Self.medium("audio", 49170, [.pcmu]), Self.medium("video", 51372, [Self.h261]),
                    Self.medium("video", 53000, [Self.mpv]),
                ]
            )
        )
        var bob = OfferAnswer(
            SessionConfiguration(
                address: "host.example.com",
                media: [Self.medium("audio", 49920, [.pcmu]), Self.medium("video", 53000, [Self.mpv])]
            )
        )
        let offer = try alice.makeOffer()
        #expect(
            Self.lines(offer) == ["m=audio 49170 RTP/AVP 0", "m=video 51372 RTP/AVP 31", "m=video 53000 RTP/AVP 32"]
        )
        let answer = try bob.answer(offer)
        #expect(Self.lines(answer) == ["m=audio 49920 RTP/AVP 0", "m=video 0 RTP/AVP 31", "m=video 53000 RTP/AVP 32"])
        try alice.receiveAnswer(answer)
        #expect(alice.agreed?.media.map(\.lineIndex) == [0, 2] && bob.agreed?.media.map(\.lineIndex) == [0, 2])

        // Bob takes audio at another port, and wants events on a line of their own.
        bob.configuration.media[0].port = 65422
        bob.configuration.media.append(Self.medium("audio", 51434, [Self.events]))
        bob.configuration.media[2].direction = .receiveOnly
        alice.configuration.media.append(Self.medium("audio", 53122, [Self.events]))
        let before = alice.agreed
        let second = try bob.makeOffer()
        #expect(second.version == answer.version + 1)
        #expect(
            Self.lines(second) == [
                "m=audio 65422 RTP/AVP 0", "m=video 0 RTP/AVP 31", "m=video 53000 RTP/AVP 32",
                "m=audio 51434 RTP/AVP 110",
            ]
        )
        #expect(second.section(3) == ["m=audio 51434 RTP/AVP 110", "a=rtpmap:110 telephone-events/8000", "a=recvonly"])
        let answered = try alice.answer(second)
        #expect(
            Self.lines(answered) == [
                "m=audio 49170 RTP/AVP 0", "m=video 0 RTP/AVP 31", "m=video 53000 RTP/AVP 32",
                "m=audio 53122 RTP/AVP 110",
            ]
        )
        #expect(answered.media[3].direction == .sendOnly)
        try bob.receiveAnswer(answered)
        #expect(alice.agreed?.changes(since: before) == [0: [.remoteAddress], 3: [.started]])
        #expect(bob.agreed?.media.last?.direction == .receiveOnly)
    }

    /// Section 10.2.
    @Test func `one of several codecs, on both sides`() throws {
        let inactive = """
            v=0
            o=alice 2890844526 2890844526 IN IP4 host.anywhere.com
            s=-
            c=IN IP4 host.anywhere.com
            t=0 0
            m=audio 62986 RTP/AVP 0 4 18
            a=rtpmap:0 PCMU/8000
            a=rtpmap:4 G723/8000
            a=rtpmap:18 G729/8000
            a=inactive
            """
        var bob = OfferAnswer(.audio([.pcmu, Self.g723]) { $0.port = 54344 })
        let answer = try bob.answer(inactive)
        #expect(
            answer.section(0) == [
                "m=audio 54344 RTP/AVP 0 4", "a=rtpmap:0 PCMU/8000", "a=rtpmap:4 G723/8000", "a=inactive",
            ]
        )
        var alice = OfferAnswer(
            .audio([.pcmu, Self.g723, Self.g729], address: "host.anywhere.com") {
                $0.direction = .inactive
                $0.isMultiplexed = false
                $0.port = 62986
            }
        )
        let offer = try alice.makeOffer()
        #expect(offer.section(0) == (try SessionDescription(parsing: inactive)).section(0))
        try alice.receiveAnswer(answer)
        #expect(
            alice.agreed?.audio?.sending.codecs == [.pcmu, Self.g723] && alice.agreed?.audio?.direction == .inactive
        )

        alice.configuration.media[0].formats = [Self.g723]
        alice.configuration.media[0].direction = .sendReceive
        let before = bob.agreed
        let second = try alice.makeOffer()
        #expect(second.section(0) == ["m=audio 62986 RTP/AVP 4", "a=rtpmap:4 G723/8000", "a=sendrecv"])
        let answered = try bob.answer(second)
        #expect(answered.section(0) == ["m=audio 54344 RTP/AVP 4", "a=rtpmap:4 G723/8000", "a=sendrecv"])
        #expect(answered.version == answer.version + 1)
        try alice.receiveAnswer(answered)
        #expect(bob.agreed?.audio?.direction == .sendReceive && bob.agreed?.audio?.sending.codecs == [Self.g723])
        // "inactive" looks like a hold to who gets it; bob's is over.
        let expected: Set<MediaChange> = [.sendCodec, .sendFormats, .receiveFormats, .direction, .hold]
        #expect(bob.agreed?.changes(since: before).values.first == expected)
    }
}
