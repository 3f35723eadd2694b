import CallBasics
import TestSupport
import Testing

@testable import SDP

/// Searches for the way that begin anew within a session (RFC 8839, section 4.4.1).
@Suite(.tags(.rfc)) struct PathRestartTests {
    private typealias Session = AgreedICE.Session

    private static func side(_ address: String, _ name: String) -> OfferAnswer {
        var medium = MediaConfiguration(port: 4000, formats: [.pcmu])
        let password = "password-of-\(name)-for-all-of-the-call"
        medium.ice = OwnICE(ICECredentials(userFragment: name, password: password), isFull: true)
        return OfferAnswer(configuration: SessionConfiguration(address: address, media: [medium]), sessionID: 1)
    }

    /// Two sides that have agreed once.
    private struct Pair {
        var sides = [PathRestartTests.side("192.0.2.1", "alices-n"), PathRestartTests.side("192.0.2.2", "bobs-nam")]

        var generator = SeededGenerator(seed: 1)

        init() throws { try exchange(from: 0) }

        /// Has one side offer, and the other answer.
        mutating func exchange(from offerer: Int, _ scope: OfferAnswer.Scope = .everything) throws {
            try sides[1 - offerer].receiveOffer(sides[offerer].makeOffer(scope, using: &generator))
            try sides[offerer].receiveAnswer(sides[1 - offerer].makeAnswer(using: &generator))
        }

        /// What both have agreed on, as the first has it.
        func session() throws -> Session {
            let sessions = try sides.map { try #require($0.agreed?.audio?.ice?.session) }
            #expect(sessions[0] == Session(local: sessions[1].remote, remote: sessions[1].local))
            return sessions[0]
        }
    }

    /// Names and passwords of both sides are others.
    private static func areNew(_ one: Session, _ other: Session) -> Bool {
        [(one.local, other.local), (one.remote, other.remote)]
            .allSatisfy { $0.userFragment != $1.userFragment && $0.password != $1.password }
    }

    @Test func `a hold, a refresh and an offer of the other side go on with the search of before`() throws {
        var pair = try Pair()
        let first = try pair.session()
        pair.sides[0].configuration.hold = .withMusic
        try pair.exchange(from: 0)
        try pair.exchange(from: 0, .agreedFormats)
        try pair.exchange(from: 1)
        #expect(try pair.session() == first)
    }

    @Test(arguments: [0, 1]) func `whoever has another address begins a new search, once`(mover: Int) throws {
        var pair = try Pair()
        let first = try pair.session()
        pair.sides[mover].configuration.address = "198.51.100.7"
        try pair.exchange(from: mover)
        let second = try pair.session()
        #expect(Self.areNew(first, second))
        try pair.exchange(from: mover)
        try pair.exchange(from: 1 - mover)
        #expect(try pair.session() == second)
        // Who offered first goes on to control.
        #expect(pair.sides.map { $0.agreed?.audio?.ice?.isControlling } == [true, false])
        // The name begins as the first did, and what is new in it is not of before.
        #expect(second.local.userFragment.hasPrefix("alices-n") && second.local.userFragment.count == 12)
        pair.sides[mover].configuration.address = "198.51.100.8"
        try pair.exchange(from: mover)
        let third = try pair.session()
        #expect(Self.areNew(first, third) && Self.areNew(second, third))
        #expect(third.local.userFragment.hasPrefix("alices-n") && third.local.userFragment.count == 12)
    }

    @Test func `who has moved, and answers first, begins the new search with an own offer`() throws {
        var pair = try Pair()
        let first = try pair.session()
        pair.sides[0].configuration.address = "198.51.100.7"
        // An answer cannot begin one.
        try pair.exchange(from: 1)
        #expect(try pair.session() == first)
        try pair.exchange(from: 0)
        #expect(Self.areNew(first, try pair.session()))
    }

    @Test func `a new search that was refused is offered again, by other names`() throws {
        var pair = try Pair()
        let first = try pair.session()
        pair.sides[0].configuration.address = "198.51.100.7"
        let refused = try pair.sides[0].makeOffer(using: &pair.generator)
        pair.sides[0].rollBack()
        #expect(try pair.session() == first)
        pair.sides[0].configuration.address = "198.51.100.7"
        let offer = try pair.sides[0].makeOffer(using: &pair.generator)
        let told = [refused, offer].map { $0.media[0].keyingAttributes.iceCredentials?.userFragment }
        #expect(told[0] != told[1] && !told.contains(first.local.userFragment))
    }

    @Test func `a side that only answers has new names, too, when a browser begins anew`() throws {
        var pair = try Pair()
        pair.sides[1].configuration.media[0].ice?.isFull = false
        try pair.exchange(from: 0)
        let first = try pair.session()
        pair.sides[0].configuration.address = "198.51.100.7"
        try pair.exchange(from: 0)
        #expect(Self.areNew(first, try pair.session()))
    }
}
