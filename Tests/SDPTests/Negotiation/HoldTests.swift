import Testing

@testable import SDP

@Suite struct HoldTests {
    private static func offer(_ direction: String, address: String = "192.0.2.2", extra: String = "") -> String {
        "v=0\no=- 7 1 IN IP4 192.0.2.2\ns=-\nc=IN IP4 \(address)\nt=0 0\nm=audio 5000 RTP/AVP 0\na=\(direction)\n\(extra)"
    }

    /// RFC 3264, section 6.1, with and without a hold of our own; pjproject has had the rows of a held side wrong.
    @Test(
        arguments: [
            ("sendrecv", nil, MediaDirection.sendReceive), ("sendonly", nil, .receiveOnly),
            ("recvonly", nil, .sendOnly),
            ("inactive", nil, .inactive),
            ("sendrecv", .withMusic, .sendOnly), ("sendonly", .withMusic, .inactive),
            ("recvonly", .withMusic, .sendOnly),
            ("inactive", .withMusic, .inactive),
            ("sendrecv", .silent, .inactive), ("sendonly", .silent, .inactive), ("recvonly", .silent, .inactive),
            ("inactive", .silent, .inactive),
        ] as [(String, SessionConfiguration.Hold?, MediaDirection)]
    )
    func `an offered direction has one answer`(
        offered: String,
        hold: SessionConfiguration.Hold?,
        expected: MediaDirection
    ) throws {
        var session = OfferAnswer(.audio([.pcmu]))
        session.configuration.hold = hold
        let answer = try session.answer(Self.offer(offered))
        #expect(answer.media.map(\.direction) == [expected])
        let audio = try #require(session.agreed?.audio)
        #expect(audio.direction == expected && audio.isHeldLocally == (hold != nil))
        #expect(audio.isHeldRemotely == ["sendonly", "inactive"].contains(offered))
    }

    /// What is agreed on is what both allow, also where an answer opens a way that was not offered.
    @Test func `an answer narrows what was offered, and never widens it`() throws {
        for offered in MediaDirection.allCases {
            for answered in MediaDirection.allCases {
                var session = OfferAnswer(.audio([.pcmu]) { $0.direction = offered })
                _ = try session.makeOffer()
                try session.receiveAnswer(try SessionDescription(parsing: Self.offer(answered.rawValue)))
                let direction = session.agreed?.audio?.direction
                #expect(direction?.sends == (offered.sends && answered.receives))
                #expect(direction?.receives == (offered.receives && answered.sends))
                #expect(session.agreed?.audio?.isHeldRemotely == (offered.sends && !answered.receives))
            }
        }
    }

    @Test(arguments: [SessionConfiguration.Hold.withMusic, .silent])
    func `a hold offers less, and its end what was wished before`(hold: SessionConfiguration.Hold) throws {
        for wish in MediaDirection.allCases {
            var session = OfferAnswer(.audio([.pcmu]) { $0.direction = wish })
            session.configuration.hold = hold
            let held = try session.makeOffer().media[0].direction
            #expect(held == MediaDirection(sends: wish.sends && hold == .withMusic, receives: false))
            session.rollBack()
            session.configuration.hold = nil
            #expect(try session.makeOffer().media[0].direction == wish)
        }
    }

    /// RFC 6337, section 5.3: UA1 holds, UA2 holds, UA1 resumes, UA2 resumes.
    @Test func `each side's hold is its own, and ends when that side ends it`() throws {
        var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
        func holds() -> [Bool?] {
            [first, second].flatMap { [$0.agreed?.audio?.isHeldLocally, $0.agreed?.audio?.isHeldRemotely] }
        }
        try first.exchange(with: &second)
        #expect(holds() == [false, false, false, false])

        first.configuration.hold = .withMusic
        #expect(try first.exchange(with: &second, .agreedFormats) == [.direction, .hold])
        #expect(
            first.agreed?.local.media[0].direction == .sendOnly
                && first.agreed?.remote.media[0].direction == .receiveOnly
        )
        #expect(holds() == [true, false, false, true])

        // "it may initiate its own hold by sending a new offer containing a=sendonly", answered by "inactive".
        second.configuration.hold = .withMusic
        try second.exchange(with: &first, .agreedFormats)
        #expect(
            second.agreed?.local.media[0].direction == .sendOnly
                && second.agreed?.remote.media[0].direction == .inactive
        )
        #expect(holds() == [true, true, true, true] && first.agreed?.audio?.direction == .inactive)

        // "If UA1 is first to go off hold, it will then send an offer with a=sendrecv. UA2 will respond with a=sendonly."
        first.configuration.hold = nil
        try first.exchange(with: &second, .agreedFormats)
        #expect(
            first.agreed?.local.media[0].direction == .sendReceive
                && first.agreed?.remote.media[0].direction == .sendOnly
        )
        #expect(holds() == [false, true, true, false] && first.agreed?.audio?.direction == .receiveOnly)

        second.configuration.hold = nil
        try second.exchange(with: &first, .agreedFormats)
        #expect(second.agreed?.remote.media[0].direction == .sendReceive)
        #expect(holds() == [false, false, false, false] && first.agreed?.audio?.direction == .sendReceive)
    }

    /// RFC 6337, section 5.3: "If it previously initiated a hold, then it should offer that again. If it had not, then it
    /// should offer sendrecv, even if it had previously been forced to answer something else."
    @Test func `an offer that an INVITE without one asks for shows our wish, whatever was answered before`() throws {
        for scope in [OfferAnswer.Scope.everything, .agreedFormats] {
            var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
            try first.exchange(with: &second)
            first.configuration.hold = .withMusic
            try first.exchange(with: &second, .agreedFormats)
            #expect(try second.makeOffer(scope).media[0].direction == .sendReceive)
            second.rollBack()
            #expect(try first.makeOffer(scope).media[0].direction == .sendOnly)
            first.rollBack()
            first.configuration.hold = .silent
            #expect(try first.makeOffer(scope).media[0].direction == .inactive)
        }
    }

    /// RFC 6337, section 5.3: an answer to "inactive" can only be "inactive", and tells nothing of a wish.
    @Test func `who answers a silent hold has not held`() throws {
        var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
        try first.exchange(with: &second)
        first.configuration.hold = .silent
        try first.exchange(with: &second, .agreedFormats)
        #expect(first.agreed?.audio?.isHeldRemotely == false && second.agreed?.audio?.isHeldRemotely == true)
        second.configuration.hold = .withMusic
        try second.exchange(with: &first, .agreedFormats)
        #expect(first.agreed?.audio?.isHeldRemotely == true)
        // The other side's hold is remembered over an exchange that cannot tell it.
        try first.exchange(with: &second, .agreedFormats)
        #expect(first.agreed?.audio?.isHeldRemotely == true && first.agreed?.audio?.isHeldLocally == true)
    }

    @Test(arguments: ["0.0.0.0", "::", "0:0:0:0:0:0:0:0", "invalid", "anon.INVALID"])
    func `an address that is none is a hold, and the address of before is kept for its end`(nowhere: String) throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.offer("sendrecv"))
        let before = try #require(session.agreed)
        let family = nowhere.contains(":") ? "IP6" : "IP4"
        let held = Self.offer("sendrecv", address: nowhere).replacing("c=IN IP4", with: "c=IN \(family)")
        let answer = try session.answer(held)
        #expect(answer.media.map(\.direction) == [.receiveOnly])
        #expect(session.agreed?.changes(since: before) == [0: [.direction, .hold]])
        #expect(session.agreed?.audio?.isHeldRemotely == true && session.agreed?.audio?.direction.sends == false)
        _ = try session.answer(Self.offer("sendrecv"))
        #expect(session.agreed?.changes(since: before) == [:])
    }

    @Test func `no address yet is no hold when ICE will find one`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.answer(Self.offer("sendrecv", address: "0.0.0.0", extra: "a=ice-ufrag:abcd\na=ice-pwd:x\n"))
        let audio = try #require(session.agreed?.audio)
        #expect(
            !audio.isHeldRemotely && audio.direction == .sendReceive && audio.remote == nil
                && audio.remoteControl == nil
        )
    }

    @Test func `nothing is sent to an answer without an address, and the call goes on`() throws {
        var session = OfferAnswer(.audio([.pcmu]))
        _ = try session.makeOffer()
        try session.receiveAnswer(try SessionDescription(parsing: Self.offer("sendrecv", address: "0.0.0.0")))
        #expect(session.agreed?.audio?.direction == .receiveOnly && session.agreed?.audio?.remote == nil)
    }

    @Test func `a hold holds every medium`() throws {
        var configuration = SessionConfiguration.audio([.pcmu])
        configuration.media.append(MediaConfiguration(port: 40002, formats: [.pcma]))
        configuration.hold = .withMusic
        var session = OfferAnswer(configuration)
        #expect(try session.makeOffer().media.map(\.direction) == [.sendOnly, .sendOnly])
    }
}
