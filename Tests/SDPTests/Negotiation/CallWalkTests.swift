import Testing

@testable import SDP

/// One call from its first offer to its end, with all that can happen to its media in between.
@Suite struct CallWalkTests {
    @Test func `a call is made, held by each side, changed, refused a change, and resumed`() throws {
        var caller = OfferAnswer(
            .audio([.opus(), .pcmu, .events(100, 48000), .events(101)]) { $0.packetTime = 20 },
            id: 1
        )
        var callee = OfferAnswer(
            .audio(
                [.opus(120), .pcmu, .pcma, .g722, .events(121, 48000), .events(122)],
                address: "192.0.2.2",
                port: 50000
            ),
            id: 2
        )

        // INVITE without an offer: the 200 has it, the ACK its answer.
        let offer = try callee.makeOffer()
        #expect(offer.media[0].formatNames == ["120", "0", "8", "9", "121", "122"])
        try callee.receiveAnswer(caller.answer(offer))
        var (first, second) = (try #require(caller.agreed), try #require(callee.agreed))
        #expect(first.changes(since: nil) == [0: [.started]])
        let audio = try #require(first.audio)
        #expect(
            audio.sending.codecs.names == ["120 opus/48000", "0 PCMU/8000"]
                && audio.receiving.codecs.names == audio.sending.codecs.names
        )
        #expect(
            audio.local == .init(host: "192.0.2.1", port: 40000)
                && audio.remote == .init(host: "192.0.2.2", port: 50000)
        )
        #expect(audio.isMultiplexed && audio.localControl.port == 40000 && audio.remoteControl?.port == 50000)
        #expect(second.audio?.packetTime == 20 && audio.direction == .sendReceive)

        func check(_ local: Set<MediaChange>, _ remote: Set<MediaChange>, line: Int = #line) throws {
            #expect(Set(caller.agreed?.changes(since: first)[0] ?? []) == local, "line \(line)")
            #expect(Set(callee.agreed?.changes(since: second)[0] ?? []) == remote, "line \(line)")
            (first, second) = (try #require(caller.agreed), try #require(callee.agreed))
        }

        // A session refresh: nothing changes.
        try caller.exchange(with: &callee, .agreedFormats)
        try check([], [])

        // The caller holds, then the callee.
        caller.configuration.hold = .withMusic
        try caller.exchange(with: &callee, .agreedFormats)
        try check([.direction, .hold], [.direction, .hold])
        callee.configuration.hold = .silent
        try callee.exchange(with: &caller, .agreedFormats)
        try check([.direction, .hold], [.direction, .hold])
        #expect(first.audio?.isHeldLocally == true && first.audio?.isHeldRemotely == true)

        // The caller resumes; the callee's hold stays.
        caller.configuration.hold = nil
        try caller.exchange(with: &callee, .agreedFormats)
        try check([.hold], [.hold])
        #expect(
            first.audio?.direction == .inactive && first.audio?.isHeldRemotely == true
                && second.audio?.isHeldLocally == true
        )
        callee.configuration.hold = nil
        try callee.exchange(with: &caller, .agreedFormats)
        try check([.direction, .hold], [.direction, .hold])
        #expect(first.audio?.direction == .sendReceive)

        // The callee wants PCMU only, by a re-INVITE.
        callee.configuration.media[0].formats = [.pcmu, .events(122)]
        try callee.exchange(with: &caller)
        try check([.sendCodec, .sendFormats, .receiveFormats], [.sendCodec, .sendFormats, .receiveFormats])
        #expect(
            first.audio?.sending.codecs == [.pcmu] && first.audio?.sending.telephoneEvents.map(\.payloadType) == [122]
        )

        // The caller wants G.722, which the callee refuses: 488, and the call goes on.
        let version = first.local.version
        caller.configuration.media[0].formats = [.g722]
        try callee.receiveOffer(caller.makeOffer())
        #expect(failure { () throws(SDPError) in try callee.makeAnswer() }?.code == .notAcceptable)
        callee.rollBack()
        caller.rollBack()
        try check([], [])

        // The caller's address changes, and it holds in the same offer; the other side hears of both at once.
        caller.configuration.address = "198.51.100.1"
        caller.configuration.media[0].port = 41000
        caller.configuration.hold = .withMusic
        try caller.exchange(with: &callee, .agreedFormats)
        try check([.localAddress, .direction, .hold], [.remoteAddress, .direction, .hold])
        #expect(first.local.version == version + 2)
        #expect(
            first.local.origin?.address == "192.0.2.1"
                && second.audio?.remote == .init(host: "198.51.100.1", port: 41000)
        )

        // Resumed by an offer that the other side asked for, with all codecs again: Opus has its number of before.
        caller.configuration.hold = nil
        callee.configuration.media[0].formats = [.pcmu, .opus(96), .events(122)]
        try caller.exchange(with: &callee)
        try check(
            [.sendCodec, .sendFormats, .receiveFormats, .direction, .hold],
            [.sendCodec, .sendFormats, .receiveFormats, .direction, .hold]
        )
        #expect(first.audio?.sending.codecs.names == ["120 opus/48000", "0 PCMU/8000"])

        // Audio is turned off, and on again in its place.
        callee.configuration.media[0].port = 0
        try callee.exchange(with: &caller)
        #expect(caller.agreed?.changes(since: first) == [0: [.ended]] && caller.agreed?.audio == nil)
        callee.configuration.media[0].port = 50000
        try callee.exchange(with: &caller)
        #expect(caller.agreed?.audio?.lineIndex == 0 && caller.agreed?.remote.media.count == 1)
    }
}
