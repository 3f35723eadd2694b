import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// What is lost or comes in another order is sent again, by the library's own clock.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct DTLSLossRealTimeTests {
    /// A handshake has four datagrams; the last of them nobody sends again unless asked.
    @Test(arguments: 0...3) func `any datagram may be lost`(lost: Int) throws {
        let pair = try DTLSPair()
        var seen = 0
        pair.exchangeInRealTime { datagrams, _ in
            datagrams.filter { _ in
                seen += 1
                return seen != lost + 1
            }
        }
        #expect(pair.isConnected && pair.sent.count > 4, "\(pair.states)")
    }

    @Test func `a third of all records may be lost`() throws {
        for seed in 1...2 as ClosedRange<UInt64> {
            let pair = try DTLSPair()
            var generator = SeededGenerator(seed: seed)
            pair.exchangeInRealTime { datagrams, _ in
                datagrams.flatMap { records(of: $0) }.filter { _ in generator.next() % 3 != 0 }
            }
            #expect(pair.isConnected, "\(pair.states)")
        }
    }

    @Test func `records may come singly, in reversed order, and twice`() throws {
        let pair = try DTLSPair()
        pair.exchangeInRealTime { datagrams, _ in
            datagrams.flatMap { records(of: $0) }.reversed().flatMap { [$0, $0] }
        }
        #expect(pair.isConnected, "\(pair.states)")
    }

    @Test func `the first timeout is short, and each is twice the one before`() throws {
        let pair = try DTLSPair()
        let first = pair.active.takeDatagrams()
        for limit in [50, 100, 200] {
            let timeout = try #require(pair.timeouts[0])
            #expect(timeout <= .milliseconds(limit) && timeout > .milliseconds(limit / 2), "\(timeout)")
            pair.active.handleTimeout()
            let early = pair.active.takeDatagrams()
            #expect(early.isEmpty)
            pass(timeout)
            pair.active.handleTimeout()
            let again = pair.active.takeDatagrams()
            #expect(again.map(\.count) == first.map(\.count))
        }
        #expect(pair.timeouts[1] == nil)
    }
}
