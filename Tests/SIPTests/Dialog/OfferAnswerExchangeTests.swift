import CallBasics
import Testing

@testable import SIP

/// Which message is offer, which is answer, and what may not be.
@Suite struct OfferAnswerExchangeTests {
    typealias Carrier = OfferAnswerExchange.Carrier

    /// RFC 6337, table 1: the offer's message and that of its answer.
    @Test(
        arguments: [
            (.invite, .success), (.invite, .provisional), (.success, .ack), (.provisional, .prack),
            (.prack, .prackSuccess), (.update, .updateSuccess),
        ] as [(Carrier, Carrier)]
    )
    func `each pattern works in both directions`(offer: Carrier, answer: Carrier) throws {
        var local = OfferAnswerExchange()
        #expect(local.mayOffer && local.send(offer, hasDescription: true) == .offer)
        #expect(local.isLocalOfferPending && !local.mayOffer)
        #expect(try local.receive(answer, hasDescription: true) == .answer)
        #expect(local.mayOffer)
        var remote = OfferAnswerExchange()
        #expect(try remote.receive(offer, hasDescription: true) == .offer)
        #expect(remote.isRemoteOfferPending && remote.send(answer, hasDescription: true) == .answer)
        #expect(remote.mayOffer)
    }

    @Test func `an answer in a provisional response is only repeated by the 2xx`() throws {
        var caller = OfferAnswerExchange()
        _ = caller.send(.invite, hasDescription: true)
        #expect(try caller.receive(.provisional, hasDescription: true) == .answer)
        #expect(try caller.receive(.provisional, hasDescription: true) == .ignored)
        #expect(try caller.receive(.success, hasDescription: true) == .ignored)
        #expect(try caller.receive(.success, hasDescription: false) == .none)
        // The next INVITE begins anew.
        _ = caller.send(.invite, hasDescription: false)
        #expect(try caller.receive(.success, hasDescription: true) == .offer)
        #expect(caller.mustAnswer(in: .ack) && caller.send(.ack, hasDescription: true) == .answer)
    }

    @Test func `the last message that could bring the answer must`() throws {
        var caller = OfferAnswerExchange()
        _ = caller.send(.invite, hasDescription: true)
        #expect(try caller.receive(.provisional, hasDescription: false) == .none)
        #expect(throws: OfferAnswerExchange.Refusal.missingAnswer) {
            try caller.receive(.success, hasDescription: false)
        }
        var called = OfferAnswerExchange()
        _ = try called.receive(.invite, hasDescription: false)
        _ = called.send(.success, hasDescription: true)
        #expect(throws: OfferAnswerExchange.Refusal.missingAnswer) { try called.receive(.ack, hasDescription: false) }
        var early = OfferAnswerExchange()
        _ = try early.receive(.invite, hasDescription: true)
        #expect(!early.mustAnswer(in: .provisional) && early.mustAnswer(in: .success))
    }

    @Test(arguments: [.invite, .update] as [Carrier])
    func `offers that meet are refused, and one that comes before the last was answered`(carrier: Carrier) throws {
        var ours = OfferAnswerExchange()
        _ = ours.send(.update, hasDescription: true)
        #expect(throws: OfferAnswerExchange.Refusal.pending) { try ours.receive(carrier, hasDescription: true) }
        #expect(try ours.receive(.updateSuccess, hasDescription: true) == .answer)
        var theirs = OfferAnswerExchange()
        _ = try theirs.receive(.invite, hasDescription: true)
        #expect(throws: OfferAnswerExchange.Refusal.busy) { try theirs.receive(carrier, hasDescription: true) }
        #expect(theirs.send(.success, hasDescription: true) == .answer)
    }

    @Test func `a bare INVITE meets our offer, too`() {
        var exchange = OfferAnswerExchange()
        _ = exchange.send(.invite, hasDescription: true)
        #expect(throws: OfferAnswerExchange.Refusal.pending) { try exchange.receive(.invite, hasDescription: false) }
    }

    @Test func `what was refused leaves the way free`() throws {
        var exchange = OfferAnswerExchange()
        _ = exchange.send(.invite, hasDescription: true)
        exchange.withdraw()
        #expect(exchange.mayOffer && exchange.send(.update, hasDescription: true) == .offer)
        #expect(exchange.send(.invite, hasDescription: true) == .ignored)
    }

    @Test func `whatever comes in whatever order, one offer at most is open`() {
        var generator = SeededGenerator(seed: 5)
        var exchange = OfferAnswerExchange()
        for _ in 0..<20_000 {
            let carrier = Carrier.allCases[Int(generator.next() % UInt64(Carrier.allCases.count))]
            let (isSent, hasDescription) = (generator.next() % 2 == 0, generator.next() % 3 > 0)
            if isSent {
                _ = exchange.send(carrier, hasDescription: hasDescription)
            } else {
                _ = try? exchange.receive(carrier, hasDescription: hasDescription)
            }
            #expect(!(exchange.isLocalOfferPending && exchange.isRemoteOfferPending))
            if generator.next() % 50 == 0 { exchange.withdraw() }
        }
    }

    // RFC 3261, section 14.1.
    @Test func `each side waits in its own range after 491, in steps of 10 ms`() {
        var generator = SeededGenerator(seed: 1)
        for (isOwner, range) in [(true, 2100...4000), (false, 0...2000)] {
            let waits = (0..<2000).map { _ in Int(GlareWait.draw(isOwner: isOwner, &generator).milliseconds) }
            #expect(waits.allSatisfy { range.contains($0) && $0 % 10 == 0 } && Set(waits).count > 150)
        }
    }
}
